"""The conversation as rows: questions, answers, calls and summaries."""

from typing import Literal

from msgspec import Struct

from lamina.apps.web.http_bodies import RequestQuery
from lamina.core.values.item import Shape
from lamina.core.values.message import Form
from lamina.core.values.request import CacheVerdict
from lamina.core.values.usage import Usage

RowKind = Literal["question", "answer", "results", "added", "compaction", "notice"]
CallState = Literal["done", "error", "running", "waiting", "denied"]


class CallRow(Struct, frozen=True, kw_only=True):
    """A tool call in an answer, and its outcome. `result` is shortened; `is_cut` says that there is
    more to read. `seconds` is None if unknown."""

    id: str
    name: str
    label: str
    arguments: str
    state: CallState
    result: str
    is_cut: bool
    decision: str | None
    seconds: float | None


class AttachedRow(Struct, frozen=True, kw_only=True):
    """An attachment of a question: in full, or only named because it stood above. With `absent`,
    why the model did not get it."""

    item: str
    label: str
    form: Form
    shape: Shape
    absent: str
    # A picture's bytes are at `blobs/{digest}`; empty for other attachments.
    digest: str


class SourceRow(Struct, frozen=True, kw_only=True):
    """A passage that an answer cites as `[^number]`. `place` is its lines; `excerpt` is the
    passage's current text, empty if it no longer exists."""

    number: int
    path: str
    title: str
    heading: str
    link: str
    place: str
    start: int
    end: int
    excerpt: str


class CompactionView(Struct, frozen=True, kw_only=True):
    """A compaction: who made the summary and why, what it replaces, and the tokens of history
    before and after, if known."""

    by: str
    reason: str
    summary: str
    messages: int
    tokens_before: int | None
    tokens_after: int | None
    before: str


class MessageRow(Struct, frozen=True, kw_only=True):
    """One row of the active path. `siblings` are the entries at its place on all branches, itself
    at `place`; `request` is the request of an answer."""

    id: str
    index: int
    kind: RowKind
    at: float
    text: str
    thinking: tuple[str, ...]
    calls: tuple[CallRow, ...]
    attached: tuple[AttachedRow, ...]
    sources: tuple[SourceRow, ...]
    siblings: tuple[str, ...]
    place: int
    label: str
    request: str | None
    target: str
    usage: Usage | None
    cost: float | None
    verdict: CacheVerdict | None
    first_s: float | None
    total_s: float | None
    stop: str
    interrupted: bool
    custom_type: str
    warnings: tuple[str, ...]
    compaction: CompactionView | None


class MessageWindow(Struct, frozen=True, kw_only=True):
    """Some rows of the active path: `first` is the index of the first one, `total` the number of
    all rows."""

    rows: tuple[MessageRow, ...]
    first: int
    total: int
    leaf: str


class MessageQuery(RequestQuery, frozen=True, kw_only=True, rename={"start": "from"}):
    """Which rows: `limit` of them from an index on (counted from the end if negative), or around an
    entry."""

    start: int | None = None
    limit: int = 60
    around: str = ""


class FindQuery(RequestQuery, frozen=True, kw_only=True):
    q: str
    limit: int = 200


class FoundRow(Struct, frozen=True, kw_only=True):
    """A row that contains the words, with some surrounding text."""

    id: str
    index: int
    kind: RowKind
    excerpt: str


class FoundRows(Struct, frozen=True, kw_only=True):
    """`total` counts all rows that contain the words; only the first are listed."""

    rows: tuple[FoundRow, ...]
    total: int


class ResultText(Struct, frozen=True, kw_only=True):
    """The full result of a tool, including parts that were not sent."""

    call: str
    text: str
    characters: int
    is_error: bool
