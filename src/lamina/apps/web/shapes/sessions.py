"""Sessions: in a list, one by one, and how one is begun."""

from typing import Any, Literal

from msgspec import Struct, field

from lamina.apps.views.options import Mode
from lamina.apps.web.route import RequestBody, RequestQuery
from lamina.core.values.damage import Damage
from lamina.core.values.usage import Usage

# Nothing to do, a turn is under way, calls wait for a person, a request was never answered, or the
# session cannot be read.
SessionState = Literal["idle", "working", "waiting", "interrupted", "unreadable"]
TurnKind = Literal["prompt", "edit", "regenerate", "resume", "compact"]


class SessionCard(Struct, frozen=True, kw_only=True):
    """One session in a list. `cost` is None if nobody knows a price; `unpriced` counts requests
    whose price is not in it. `cached_share` is None if nothing was reported."""

    session: str
    name: str
    state: SessionState
    turn: str | None
    messages: int
    usage: Usage
    cached_share: float | None
    cost: float | None
    unpriced: int
    bytes: int
    written: float
    damage: int
    problem: str


class SessionPage(Struct, frozen=True, kw_only=True):
    """Some sessions, the one written last first. `after` is the cursor of the next page, if there
    is one; `total` counts all that fit the words."""

    sessions: tuple[SessionCard, ...]
    total: int
    after: str | None


class SessionQuery(RequestQuery, frozen=True, kw_only=True):
    """Words that a session's name or id holds, how many, and behind which session."""

    q: str = ""
    limit: int = 100
    after: str = ""


class NewSession(RequestBody, frozen=True, kw_only=True):
    """How a session is begun. `files` lets the model look at the folder's files and change them,
    `web` is where the web is searched, `settings` are those that differ from the defaults."""

    agent: str | None = None
    project: str | None = None
    target: str | None = None
    mode: Mode = "agent"
    files: bool = False
    web: str | None = None
    system: str = ""
    name: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


class SessionCreated(Struct, frozen=True, kw_only=True):
    """The session that was begun; `notices` is what a person should know of it."""

    session: str
    notices: tuple[str, ...]


class RenamedSession(RequestBody, frozen=True, kw_only=True):
    name: str


class CallView(Struct, frozen=True, kw_only=True):
    """A call that waits for a decision. `arguments` is the JSON text that the model wrote; with
    `decision` it was decided, and others of its turn still wait."""

    id: str
    name: str
    label: str
    server: str
    about: str
    arguments: str
    decision: str | None


class RunningTurn(Struct, frozen=True, kw_only=True):
    """The turn that is under way, or was last: `next` is the number that its next event will
    have."""

    id: str
    kind: TurnKind
    next: int
    is_running: bool


class SessionHead(Struct, frozen=True, kw_only=True):
    """Everything that is needed to draw a session's head. `title` is its name, or else its first
    question. `rows` counts messages of the active path, `other_rows` those on other branches.
    `busy_elsewhere` says that another program has it open: it can be read, not gone on with."""

    session: str
    workspace: str
    name: str
    title: str
    target: str
    mode: Mode
    files: bool
    web: str | None
    agent: str
    project: str | None
    window: int
    state: SessionState
    interrupted: bool
    busy_elsewhere: bool
    waiting: tuple[CallView, ...]
    turn: RunningTurn | None
    leaf: str
    rows: int
    other_rows: int
    began: float
    forked_from: str
    source: str
    damage: tuple[Damage, ...]


class DeletedRow(Struct, frozen=True, kw_only=True):
    """What a deletion took away: bytes of the journal, blobs of its own, and what the embedded
    model remembered of it."""

    session: str
    bytes: int
    blobs: int
    slot_bytes: int


class SessionNews(Struct, frozen=True, kw_only=True):
    """A session changed its state, or its last turn did."""

    session: str
    state: SessionState
    turn: str | None


class NewImport(RequestBody, frozen=True, kw_only=True):
    """A file of another program, as text or in base64."""

    name: str
    content: str
    encoding: Literal["text", "base64"] = "text"


class ImportedRow(Struct, frozen=True, kw_only=True):
    """The session that a file became."""

    session: str
    source: str
    entries: int
    problems: tuple[str, ...]
    laid: tuple[str, ...]


class ExportQuery(RequestQuery, frozen=True, kw_only=True):
    form: Literal["markdown", "jsonl", "json", "requests"] = "markdown"
