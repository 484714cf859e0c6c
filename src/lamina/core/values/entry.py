"""Journal entries: an append-only tree that contains everything a rebuild needs."""

from typing import Any, Literal

from msgspec import Struct

from lamina.core.values.envelope import Options, SystemPart
from lamina.core.values.item import Include, Item, ItemId
from lamina.core.values.message import LoadedTools, Message, ToolDefinition, ToolResult, ToolText
from lamina.core.values.patch import Display, OnceOps, Patch
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.settings import Promotion, Settings
from lamina.core.values.tool import Decision
from lamina.core.values.usage import InputTransformation, Usage

FORMAT = 1
# Raised when a model reads other text, or the same in another order: 2 has what is personal behind
# what is shared, 3 has other words (`core/text/wording.py`). All of these can be laid out, so that
# a session goes on with the bytes it has.
RENDERER = 3
RENDERERS = (1, 2, 3)
# Raised when a wire gives other bytes for the same segments, as the renderer's is for texts.
WIRE_FORM = 1


class EntryBase(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False):
    """`at` is the first key of every entry in canonical form; readers of damaged journals rely on
    it, so no field of an entry may have a name that sorts before it."""

    id: str
    parent: str | None
    at: float
    # Data from another system that has no field in Lamina; it survives import and export.
    extra: dict[str, Any] = {}


class SessionEntry(EntryBase, frozen=True, kw_only=True, tag="session"):
    """The header of a session: what it started with."""

    session: str
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    options: Options = Options()
    settings: Settings = Settings()
    # The items that apply to every turn.
    included: tuple[Item, ...] = ()
    workspace: str = ""
    # The name of the agent it was opened with, and where that was. (Not `agent`: see above.)
    with_agent: str = ""
    with_agent_at: str = ""
    # The include modes that the agent had then; from then on they belong to the session. Absent in
    # headers written before these were recorded.
    include_modes: dict[ItemId, Include] | None = None
    # The session this one was forked from, and the format it was imported from.
    forked_from: str = ""
    # For a copy of a damaged session: its last entry at the time. Entries before it may be missing.
    repaired_until: str = ""
    source: str = ""
    format: int = FORMAT
    # Absent in headers written before there was a second renderer.
    renderer: int = 1


class ItemEntry(EntryBase, frozen=True, kw_only=True, tag="item"):
    """The content of one item version, stored once."""

    item: Item


class TransformEntry(EntryBase, frozen=True, kw_only=True, tag="context_transform"):
    """A patch that was applied, and who made it."""

    transformer: str
    patch: Patch


class EphemeralEntry(EntryBase, frozen=True, kw_only=True, tag="ephemeral"):
    """Texts for one request only, and operations on a copy of the envelope. They are never part of
    a rebuilt context."""

    tool_texts: tuple[ToolText, ...] = ()
    messages: tuple[Message, ...] = ()
    patches: tuple[OnceOps, ...] = ()
    # The hooks that did it, and what a person is shown about it.
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()


class MessageEntry(EntryBase, frozen=True, kw_only=True, tag="message"):
    """A message: a question, an answer, or tool results."""

    message: Message
    interrupted: bool = False
    # For imported answers, which reply to no request of ours.
    usage: Usage | None = None
    model: str = ""
    # For results that were cut or shortened before they were sent: the blob with the whole result,
    # by call.
    whole_results: dict[str, str] = {}


class RequestEntry(EntryBase, frozen=True, kw_only=True, tag="request"):
    """A request as it was about to be sent. The digests of its segments in wire order are those of
    the request `base` up to `kept`, then `digests`; storing them all would make a journal grow with
    the square of the session's length."""

    target: str
    context: RequestContext
    # The leaf before everything that was written for this request: preparing again instead of
    # committing starts a sibling there.
    before: str
    base: str | None
    kept: int
    digests: tuple[str, ...]
    promotion: Promotion = "lazy"
    cached_run: int
    tokens: int
    cached_tokens: int
    calibration: float = 1.0
    # The provider already refused this question once as too long.
    retry: bool = False
    # What produced the bytes: the wire and its form, and the renderer if it differs from the
    # session's. Absent in records written before these were recorded.
    wire: str = ""
    wire_form: int = 1
    renderer: int = 0
    # Whether its model binds thinking, so that only thinking valid at that time was sent.
    binds_thinking: bool = False
    # Whether pictures were replaced by words because its model cannot see them.
    hides_pictures: bool = False
    # The name under which a provider keeps its prefix; a fork gets a new one.
    cache_key: str = ""
    # What routes a request to the machine that has its prefix, if that is another name: sessions
    # that start alike share it, and a fork keeps the one of its origin.
    routing_key: str = ""
    # The digests of all segments, of everything else on the wire that the journal decides, and of
    # the model book's facts about the target.
    prompt_digest: str = ""
    parameters_digest: str = ""
    target_digest: str = ""


class ReplyEntry(EntryBase, frozen=True, kw_only=True, tag="reply"):
    """Closes a request: the reply's data and what the provider reported as its cost. `provider_id`
    is the provider's id for the answer, `missed` its own explanation of a cache miss,
    `transformations` what it removed from the request before the model saw it."""

    request: str
    usage: Usage
    stop: str
    model: str = ""
    verdict: CacheVerdict | None = None
    warnings: tuple[str, ...] = ()
    provider_id: str = ""
    missed: str = ""
    transformations: tuple[InputTransformation, ...] = ()


class FoundTool(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A tool that the model found by searching: the version of the item that describes it, and how
    well it matches."""

    item: ItemId
    version: str
    score: float | None = None


class ResultEntry(EntryBase, frozen=True, kw_only=True, tag="result"):
    """A tool has run while other calls of its turn still wait: it must not run again. The message
    that answers all of them repeats the result. `whole` is the blob with the whole result, if it
    was cut; `found` are the tools that a search for `query` returned, if recorded; `loads` are
    those that the vendor loads; the others are described after the results."""

    result: ToolResult
    whole: str = ""
    query: str = ""
    found: tuple[FoundTool, ...] = ()
    loads: LoadedTools | None = None


class DecisionEntry(EntryBase, frozen=True, kw_only=True, tag="decision"):
    """A person's decision about a call. If it allows the tool for the session, the tool runs
    without asking from then on, as long as its definition has this digest."""

    call_id: str
    tool: ItemId
    digest: str
    decision: Decision


class SettingsEntry(EntryBase, frozen=True, kw_only=True, tag="settings"):
    """The settings from here on. `replaces` names options that are replaced by settings of the same
    name."""

    settings: Settings
    replaces: tuple[str, ...] = ()


class ModelEntry(EntryBase, frozen=True, kw_only=True, tag="model"):
    """The session uses another target from here on."""

    target: str


class PinEntry(EntryBase, frozen=True, kw_only=True, tag="pin"):
    """Pinned items are essential, named every turn, and survive boundaries."""

    item: ItemId
    version: str = ""
    pinned: bool = True


class LeaveEntry(EntryBase, frozen=True, kw_only=True, tag="leave"):
    """The current turn was left without a final answer; the next message starts another one."""


class ForgetEntry(EntryBase, frozen=True, kw_only=True, tag="forget"):
    """The item leaves the library at the next boundary."""

    item: ItemId


# A session's state of an item: added by hand, kept out, or as its agent has it.
Membership = Literal["manual", "removed", "default"]


class IncludeEntry(EntryBase, frozen=True, kw_only=True, tag="include"):
    """A person added a rule, a reference or a tool to the session, or removed it. `name` is the
    name by which a model knows the tool."""

    item: ItemId
    membership: Membership
    name: str = ""


class AdoptEntry(EntryBase, frozen=True, kw_only=True, tag="adopt"):
    """The session adopted the files of its agent: the include modes from here on, and the agent's
    location."""

    include_modes: dict[ItemId, Include]
    with_agent: str = ""
    with_agent_at: str = ""


class LeafEntry(EntryBase, frozen=True, kw_only=True, tag="leaf"):
    """The chosen position is the parent of this entry; the session continues there. `warm_at` is
    when the last request on the path there was last sent as the start of another request, on the
    branch that was left. `left` is where the session was, if it came here to ask again: it goes
    back there unless an answer follows here."""

    warm_at: float = 0.0
    left: str = ""


class LabelEntry(EntryBase, frozen=True, kw_only=True, tag="label"):
    """A person's name for an entry; an empty label removes it."""

    target: str
    label: str = ""


class BranchSummaryEntry(EntryBase, frozen=True, kw_only=True, tag="branch_summary"):
    """The outcome of an abandoned branch, passed to the model on this one."""

    branch: str
    summary: str


class InfoEntry(EntryBase, frozen=True, kw_only=True, tag="info"):
    """The session's name, given by a person."""

    name: str


class OpeningEntry(EntryBase, frozen=True, kw_only=True, tag="opening"):
    """The session was reopened with other arguments than the last time, by digest; options and the
    items that apply to every turn are replaced by those here."""

    given: dict[str, str]
    options: Options | None = None
    included: tuple[Item, ...] | None = None


# When a message is picked up: with the next request, or after the answer.
Delivery = Literal["steer", "follow_up"]


class InboxEntry(EntryBase, frozen=True, kw_only=True, tag="inbox"):
    """A message sent while no turn was running; it waits for the next one. With `taken`, the
    message of that entry no longer waits."""

    text: str = ""
    deliver: Delivery = "steer"
    taken: str = ""


# The kind of a custom entry that reports an error: where, and the problem.
PROBLEM = "lamina.problem"
# Custom entries of this kind record what was run for a planned request.
PLANNED = "lamina.planned"
# Requests outside the turns, with their usage and cost: one that planned calls, one for a summary,
# one that created an explicit cache; and the cost of storing that cache.
PLAN = "lamina.plan"
SUMMARIZED = "lamina.summarized"
CACHE = "lamina.cache"
STORAGE = "lamina.cache_storage"
# The bytes of a blob, after the entries of a journal that was exported with its blobs.
BLOB = "lamina.blob"


class CustomEntry(EntryBase, frozen=True, kw_only=True, tag="custom"):
    """Data of an application or another system; not part of any context."""

    kind: str
    data: Any = None


class UnknownEntry(EntryBase, frozen=True, kw_only=True, tag="unknown"):
    """An entry of a type that this version does not know. It keeps its fields and its place in the
    tree for a version that does."""

    kind: str
    fields: dict[str, Any] = {}


Entry = (
    SessionEntry
    | ItemEntry
    | TransformEntry
    | EphemeralEntry
    | MessageEntry
    | RequestEntry
    | ReplyEntry
    | ResultEntry
    | DecisionEntry
    | SettingsEntry
    | PinEntry
    | ForgetEntry
    | IncludeEntry
    | AdoptEntry
    | LeaveEntry
    | ModelEntry
    | LeafEntry
    | LabelEntry
    | BranchSummaryEntry
    | InfoEntry
    | OpeningEntry
    | InboxEntry
    | CustomEntry
    | UnknownEntry
)


def start_entry(session: str, at: float, **fields: Any) -> SessionEntry:
    """Return the header of a new session."""
    return SessionEntry(
        id="000000", parent=None, at=at, session=session, renderer=RENDERER, **fields
    )
