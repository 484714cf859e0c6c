"""What the routes of a session take and give, as records: lists and heads of sessions, turns,
items, settings and branches.

The names of these records are the names of types in other languages (OpenAPI, TypeScript).
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


class NewTurn(RequestBody, frozen=True, kw_only=True):
    """A question; what `@` mentions in it is attached as well."""

    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class EditedQuestion(RequestBody, frozen=True, kw_only=True):
    """A question asked otherwise. Without `attach` and `essential`, what was attached to it goes
    along again."""

    question: str
    text: str
    attach: tuple[str, ...] | None = None
    essential: tuple[str, ...] | None = None
    target: str | None = None


class RepeatedAnswer(RequestBody, frozen=True, kw_only=True):
    """An answer asked for again; without one, the last."""

    answer: str | None = None
    target: str | None = None


class ResumedTurn(RequestBody, frozen=True, kw_only=True):
    target: str | None = None


class TurnBegun(Struct, frozen=True, kw_only=True):
    """The turn that was begun; `turns/{turn}/events` tells of it."""

    turn: str


class Aborted(Struct, frozen=True, kw_only=True):
    """Whether there was something to stop."""

    aborted: bool


class SentMessage(RequestBody, frozen=True, kw_only=True):
    """Something said while a turn runs: with its next request, or after its answer."""

    text: str
    deliver: Delivery = "steer"


class MessageTaken(Struct, frozen=True, kw_only=True):
    """Whether a turn runs that the message reaches; otherwise it waits for the next one."""

    running: bool


class DecisionBody(RequestBody, frozen=True, kw_only=True):
    decision: Decision


class DecisionKept(Struct, frozen=True, kw_only=True):
    """What was decided, which calls still wait, and the turn that was taken up if none does."""

    call_id: str
    decision: Decision
    waiting: tuple[str, ...]
    turn: str | None


class TurnFailed(EventBase, frozen=True, kw_only=True, tag="failed"):
    """The turn is over without an answer; always the last event, if it is there."""

    code: str
    message: str


class CompactionDone(EventBase, frozen=True, kw_only=True, tag="compaction"):
    """What a compaction that a person asked for came to."""

    changed: bool
    reason: str
    summary: str
    by: str
    messages: int
    tokens_dropped: int
    problem: str


class Ping(EventBase, frozen=True, kw_only=True, tag="ping"):
    """Nothing happened for a while, and the connection is there."""


class MemberRow(Struct, frozen=True, kw_only=True):
    """A rule, a reference or a tool that applies to every question. One that is `missing` was added
    and is gone from the agent."""

    item: str
    label: str
    include: str
    missing: bool
    about: str


class AvailableRow(AgentItem, frozen=True, kw_only=True):
    """Something that could be added. `removed` says that a person took it out."""

    label: str


class PinnedRow(Struct, frozen=True, kw_only=True):
    """Something that is essential and named with every question."""

    item: str
    label: str


class AdoptedRows(Struct, frozen=True, kw_only=True):
    """What the session took over from its agent's files."""

    changes: tuple[AgentChangeRow, ...]


class ItemRows(Struct, frozen=True, kw_only=True):
    """What the session has, what it could have, what is pinned, how its agent's files differ, and
    what is wrong."""

    items: tuple[MemberRow, ...]
    available: tuple[AvailableRow, ...]
    pins: tuple[PinnedRow, ...]
    changes: tuple[AgentChangeRow, ...]
    problems: tuple[str, ...]


class ItemName(RequestBody, frozen=True, kw_only=True):
    """A member as `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`; of a pin, its path."""

    what: str


SettingKind = Literal["choice", "boolean", "integer", "number", "text", "texts"]


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting: its value now and by default, what it may be, and what it is for. A setting with
    parts is a choice of presets, and each of its parts is a row of its own, as
    `guide_search.top_n`."""

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
    """The settings that change, by name; parts of one by its name with a dot."""

    settings: dict[str, Any]


class ForkBody(RequestBody, frozen=True, kw_only=True):
    """Up to which entry; without one, all of the active path."""

    at: str | None = None
    name: str = ""


class Forked(Struct, frozen=True, kw_only=True):
    session: str


class NavigateBody(RequestBody, frozen=True, kw_only=True):
    """Where to go on; `summary` tells the model what came of the branch that is left. With `end`,
    at the end of the branch that the entry is on."""

    entry: str
    summary: str = ""
    end: bool = False


class Position(Struct, frozen=True, kw_only=True):
    """Where the session goes on. `text` is the question that stood there, to be asked anew."""

    entry: str
    text: str
    leaf: str


class LabelBody(RequestBody, frozen=True, kw_only=True):
    """An empty text takes the label away."""

    text: str


class Labelled(Struct, frozen=True, kw_only=True):
    entry: str
    text: str
