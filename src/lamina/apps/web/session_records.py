"""The records that session routes accept and return: lists and heads of sessions, turns, items,
settings and branches.

Their names become type names in other languages (OpenAPI, TypeScript).
"""

from typing import Any, Literal

from msgspec import Struct, field

from lamina.apps.views.session_items import AgentChangeRow, AgentItem
from lamina.apps.views.session_options import Mode
from lamina.apps.web.http_bodies import RequestBody, RequestQuery
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Delivery
from lamina.core.values.event import EventBase
from lamina.core.values.tool import Decision
from lamina.core.values.usage import Usage

# Idle, a turn is running, calls wait for a person, a request was never answered, or the session
# cannot be read.
SessionState = Literal["idle", "working", "waiting", "interrupted", "unreadable"]
TurnKind = Literal["prompt", "edit", "regenerate", "resume", "compact"]


class SessionCard(Struct, frozen=True, kw_only=True):
    """One session in a list. `cost` is None if no price is known; `unpriced` counts requests that
    it excludes. `cached_share` is None if nothing was reported."""

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
    """A page of sessions, most recently written first. `after` is the cursor of the next page, if
    any; `total` counts all matching sessions."""

    sessions: tuple[SessionCard, ...]
    total: int
    after: str | None


class SessionQuery(RequestQuery, frozen=True, kw_only=True):
    """Words in a session's name or id, the page size, and the session to list after."""

    q: str = ""
    limit: int = 100
    after: str = ""


class NewSession(RequestBody, frozen=True, kw_only=True):
    """A new session. `files` lets the model read and change the folder's files, `web` is where it
    searches the web, `settings` are those that differ from the defaults."""

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
    """The new session; `notices` are for the person."""

    session: str
    notices: tuple[str, ...]


class RenamedSession(RequestBody, frozen=True, kw_only=True):
    name: str


class CallView(Struct, frozen=True, kw_only=True):
    """A call that waits for a decision. `arguments` is the JSON text written by the model; with a
    `decision`, only other calls of its turn still wait."""

    id: str
    name: str
    label: str
    server: str
    about: str
    arguments: str
    decision: str | None


class RunningTurn(Struct, frozen=True, kw_only=True):
    """The running turn, or the last one: `next` is the number of its next event."""

    id: str
    kind: TurnKind
    next: int
    is_running: bool


class SessionHead(Struct, frozen=True, kw_only=True):
    """Everything shown at the top of a session. `title` is its name, or its first question. `rows`
    counts messages of the active path, `other_rows` those on other branches. `busy_elsewhere` says
    that another program has it open: it can be read but not continued."""

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
    """What a deletion removed: bytes of the journal, its own blobs, and the embedded model's
    memory of it."""

    session: str
    bytes: int
    blobs: int
    slot_bytes: int


class SessionNews(Struct, frozen=True, kw_only=True):
    """A change in the state of a session or of its last turn."""

    session: str
    state: SessionState
    turn: str | None


class NewImport(RequestBody, frozen=True, kw_only=True):
    """Another program's file, as text or in base64."""

    name: str
    content: str
    encoding: Literal["text", "base64"] = "text"


class ImportedRow(Struct, frozen=True, kw_only=True):
    """The imported session."""

    session: str
    source: str
    entries: int
    problems: tuple[str, ...]
    laid: tuple[str, ...]


class ExportQuery(RequestQuery, frozen=True, kw_only=True):
    form: Literal["markdown", "jsonl", "json", "requests"] = "markdown"


class NewTurn(RequestBody, frozen=True, kw_only=True):
    """A question; `@` mentions in it are attached as well."""

    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class EditedQuestion(RequestBody, frozen=True, kw_only=True):
    """A question edited and asked again. Without `attach` and `essential`, its attachments are sent
    again."""

    question: str
    text: str
    attach: tuple[str, ...] | None = None
    essential: tuple[str, ...] | None = None
    target: str | None = None


class RepeatedAnswer(RequestBody, frozen=True, kw_only=True):
    """An answer to generate again; by default the last."""

    answer: str | None = None
    target: str | None = None


class ResumedTurn(RequestBody, frozen=True, kw_only=True):
    target: str | None = None


class TurnBegun(Struct, frozen=True, kw_only=True):
    """The turn that was started; `turns/{turn}/events` streams its events."""

    turn: str


class Aborted(Struct, frozen=True, kw_only=True):
    """Whether there was something to stop."""

    aborted: bool


class SentMessage(RequestBody, frozen=True, kw_only=True):
    """A message sent while a turn runs: with its next request, or after its answer."""

    text: str
    deliver: Delivery = "steer"


class MessageTaken(Struct, frozen=True, kw_only=True):
    """Whether the message reaches a running turn; if not, it waits for the next one."""

    running: bool


class DecisionBody(RequestBody, frozen=True, kw_only=True):
    decision: Decision


class DecisionKept(Struct, frozen=True, kw_only=True):
    """The decision, the calls that still wait, and the turn that continues if none does."""

    call_id: str
    decision: Decision
    waiting: tuple[str, ...]
    turn: str | None


class TurnFailed(EventBase, frozen=True, kw_only=True, tag="failed"):
    """The turn ended without an answer; if present, always the last event."""

    code: str
    message: str


class CompactionDone(EventBase, frozen=True, kw_only=True, tag="compaction"):
    """The result of a compaction requested by a person."""

    changed: bool
    reason: str
    summary: str
    by: str
    messages: int
    tokens_dropped: int
    problem: str


class Ping(EventBase, frozen=True, kw_only=True, tag="ping"):
    """Sent while nothing happens, to show that the connection is alive."""


class MemberRow(Struct, frozen=True, kw_only=True):
    """A rule, a reference or a tool that applies to every question. `missing` means that it was
    added, and the agent no longer has it."""

    item: str
    label: str
    include: str
    missing: bool
    about: str


class AvailableRow(AgentItem, frozen=True, kw_only=True):
    """An item that can be added. `removed` says that a person removed it."""

    label: str


class PinnedRow(Struct, frozen=True, kw_only=True):
    """An item that is essential and named with every question."""

    item: str
    label: str


class AdoptedRows(Struct, frozen=True, kw_only=True):
    """The changes that the session adopted from its agent's files."""

    changes: tuple[AgentChangeRow, ...]


class ItemRows(Struct, frozen=True, kw_only=True):
    """The session's items, items it can add, its pins, how its agent's files differ, and
    problems."""

    items: tuple[MemberRow, ...]
    available: tuple[AvailableRow, ...]
    pins: tuple[PinnedRow, ...]
    changes: tuple[AgentChangeRow, ...]
    problems: tuple[str, ...]


class ItemName(RequestBody, frozen=True, kw_only=True):
    """A member as `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`; for a pin, its path."""

    what: str


SettingKind = Literal["choice", "boolean", "integer", "number", "text", "texts"]


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting: its value, default, allowed values, and description. A setting with parts offers
    presets, and each of its parts is a row of its own, such as `guide_search.top_n`."""

    name: str
    group: str
    kind: SettingKind
    value: Any
    default: Any
    choices: tuple[str, ...]
    nullable: bool
    help: str


class SettingRows(Struct, frozen=True, kw_only=True):
    settings: tuple[SettingRow, ...]


class NewSettings(RequestBody, frozen=True, kw_only=True):
    """The changed settings, by name; parts use a dotted name."""

    settings: dict[str, Any]


class ForkBody(RequestBody, frozen=True, kw_only=True):
    """The last entry to copy; without one, the whole active path."""

    at: str | None = None
    name: str = ""


class Forked(Struct, frozen=True, kw_only=True):
    session: str


class NavigateBody(RequestBody, frozen=True, kw_only=True):
    """Where to continue; `summary` summarises the branch being left for the model. With `end`, at
    the end of the branch of that entry."""

    entry: str
    summary: str = ""
    end: bool = False


class Position(Struct, frozen=True, kw_only=True):
    """Where the session continues. `text` is the question at that place, to be asked again."""

    entry: str
    text: str
    leaf: str


class LabelBody(RequestBody, frozen=True, kw_only=True):
    """An empty text removes the label."""

    text: str


class Labelled(Struct, frozen=True, kw_only=True):
    entry: str
    text: str
