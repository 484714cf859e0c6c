"""Defines journal entries: an append-only tree that contains everything needed for a rebuild."""

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
# Increased whenever the rendered text or its order changes: 2 puts personal parts after shared
# ones, 3 has different wording (`core/text/wording.py`). All versions can still be rendered, so
# that a session continues with the bytes it has.
RENDERER = 3
RENDERERS = (1, 2, 3)
# Increased whenever a wire produces other bytes for the same segments.
WIRE_FORM = 1


class EntryBase(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False):
    """The common fields of all entries. `at` is the first key of every entry in canonical format;
    readers of damaged journals rely on it, so no entry field may have a name that sorts before
    it."""

    id: str
    parent: str | None
    at: float
    # Data from another system that has no field in Lamina; it survives import and export.
    extra: dict[str, Any] = {}


class SessionEntry(EntryBase, frozen=True, kw_only=True, tag="session"):
    """The header of a session, with its initial configuration."""

    session: str
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    options: Options = Options()
    settings: Settings = Settings()
    # The items that apply to every turn.
    included: tuple[Item, ...] = ()
    workspace: str = ""
    # The name and location of the agent it was opened with. (Not `agent`: see above.)
    with_agent: str = ""
    with_agent_at: str = ""
    # The agent's include modes at that time; they then belong to the session. Absent in headers
    # written before these were recorded.
    include_modes: dict[ItemId, Include] | None = None
    # The session this one was forked from, and the format it was imported from.
    forked_from: str = ""
    # For a copy of a damaged session: its last entry at the time. Entries before it may be missing.
    repaired_until: str = ""
    source: str = ""
    format: int = FORMAT
    # Absent in headers older than the second renderer.
    renderer: int = 1


class ItemEntry(EntryBase, frozen=True, kw_only=True, tag="item"):
    """The content of one item version, stored once."""

    item: Item


class TransformEntry(EntryBase, frozen=True, kw_only=True, tag="context_transform"):
    """An applied patch, and its transformer."""

    transformer: str
    patch: Patch


class EphemeralEntry(EntryBase, frozen=True, kw_only=True, tag="ephemeral"):
    """Text for one request only, and operations on a copy of the envelope. Never part of a rebuilt
    context."""

    tool_texts: tuple[ToolText, ...] = ()
    messages: tuple[Message, ...] = ()
    patches: tuple[OnceOps, ...] = ()
    # The hooks that made it, and its display for a person.
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()


class MessageEntry(EntryBase, frozen=True, kw_only=True, tag="message"):
    """A message: a question, an answer, or tool results."""

    message: Message
    interrupted: bool = False
    # For imported answers, which answer no request of this session.
    usage: Usage | None = None
    model: str = ""
    # For results cut or shortened before they were sent: the blob with the whole result, by call.
    whole_results: dict[str, str] = {}


class RequestEntry(EntryBase, frozen=True, kw_only=True, tag="request"):
    """A request as it was about to be sent. The digests of its segments in wire order are those of
    the request `base` up to `kept`, followed by `digests`; storing all of them would make a journal
    grow with the square of the session's length."""

    target: str
    context: RequestContext
    # The leaf before all entries written for this request: preparing it again instead of committing
    # starts a sibling there.
    before: str
    base: str | None
    kept: int
    digests: tuple[str, ...]
    promotion: Promotion = "lazy"
    cached_run: int
    tokens: int
    cached_tokens: int
    calibration: float = 1.0
    # Whether the provider already refused this question as too long.
    retry: bool = False
    # The producer of the bytes: the wire and its format, and the renderer if it differs from the
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
    # The routing name, if different, that directs a request to the machine with its prefix: shared
    # by sessions with the same beginning, and kept by forks.
    routing_key: str = ""
    # The digests of all segments, of everything else on the wire that the journal decides, and of
    # the model book's facts about the target.
    prompt_digest: str = ""
    parameters_digest: str = ""
    target_digest: str = ""


class ReplyEntry(EntryBase, frozen=True, kw_only=True, tag="reply"):
    """Closes a request, with the reply's data and the cost reported by the provider. `provider_id`
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
    """A tool that the model found by searching: the item version that describes it, and how well it
    matches."""

    item: ItemId
    version: str
    score: float | None = None


class ResultEntry(EntryBase, frozen=True, kw_only=True, tag="result"):
    """The result of a tool that ran while other calls of its turn still wait: it must not run
    again. The message that answers all of them repeats the result. `whole` is the blob with the
    whole result, if it was cut; `found` are the tools returned by a search for `query`, if
    recorded; `loads` are those that the vendor loads; the others are described after the
    results."""

    result: ToolResult
    whole: str = ""
    query: str = ""
    found: tuple[FoundTool, ...] = ()
    loads: LoadedTools | None = None


class DecisionEntry(EntryBase, frozen=True, kw_only=True, tag="decision"):
    """A person's decision about a call. A tool allowed for the session then runs without asking, as
    long as its definition has this digest."""

    call_id: str
    tool: ItemId
    digest: str
    decision: Decision


class SettingsEntry(EntryBase, frozen=True, kw_only=True, tag="settings"):
    """Changed settings, in effect from this entry on. `replaces` names options that are replaced by
    settings of the same name."""

    settings: Settings
    replaces: tuple[str, ...] = ()


class ModelEntry(EntryBase, frozen=True, kw_only=True, tag="model"):
    """A change of target, in effect from this entry on."""

    target: str


class PinEntry(EntryBase, frozen=True, kw_only=True, tag="pin"):
    """A change of pins. Pinned items are essential, named every turn, and survive boundaries."""

    item: ItemId
    version: str = ""
    pinned: bool = True


class LeaveEntry(EntryBase, frozen=True, kw_only=True, tag="leave"):
    """The current turn was abandoned without a final answer; the next message starts another
    one."""


class ForgetEntry(EntryBase, frozen=True, kw_only=True, tag="forget"):
    """A forgotten item, which leaves the library at the next boundary."""

    item: ItemId


# An item's state in a session: added by hand, removed, or as its agent has it.
Membership = Literal["manual", "removed", "default"]


class IncludeEntry(EntryBase, frozen=True, kw_only=True, tag="include"):
    """A rule, reference or tool that a person added to the session or removed from it. `name` is
    the model's name for the tool."""

    item: ItemId
    membership: Membership
    name: str = ""


class AdoptEntry(EntryBase, frozen=True, kw_only=True, tag="adopt"):
    """An adoption of the agent's files: the include modes in effect from here on, and the agent's
    location."""

    include_modes: dict[ItemId, Include]
    with_agent: str = ""
    with_agent_at: str = ""


class LeafEntry(EntryBase, frozen=True, kw_only=True, tag="leaf"):
    """A move to the parent of this entry, where the session continues. `warm_at` is when the last
    request on that path was last sent as the start of another request, on the abandoned branch.
    `left` is the previous position if the session came here to ask again: it returns there unless
    an answer follows here."""

    warm_at: float = 0.0
    left: str = ""


class LabelEntry(EntryBase, frozen=True, kw_only=True, tag="label"):
    """A person's label for an entry; an empty label removes it."""

    target: str
    label: str = ""


class BranchSummaryEntry(EntryBase, frozen=True, kw_only=True, tag="branch_summary"):
    """The outcome of an abandoned branch, passed to the model on the current one."""

    branch: str
    summary: str


class InfoEntry(EntryBase, frozen=True, kw_only=True, tag="info"):
    """The session name given by a person."""

    name: str


class OpeningEntry(EntryBase, frozen=True, kw_only=True, tag="opening"):
    """A reopening of the session with changed arguments, by digest; options and the items that
    apply to every turn are replaced by those here."""

    given: dict[str, str]
    options: Options | None = None
    included: tuple[Item, ...] | None = None


# When a message is delivered: with the next request, or after the answer.
Delivery = Literal["steer", "follow_up"]


class InboxEntry(EntryBase, frozen=True, kw_only=True, tag="inbox"):
    """A message sent while no turn was running; it waits for the next one. With `taken`, the
    message of that entry no longer waits."""

    text: str = ""
    deliver: Delivery = "steer"
    taken: str = ""


# The kind of custom entry that reports an error: its location and the problem.
PROBLEM = "lamina.problem"
# The kind of custom entry that records what was run for a planned request.
PLANNED = "lamina.planned"
# The kind of custom entry for requests outside the turns, with their usage and cost: for planned
# calls, for a summary, and to create an explicit cache; also the cost of storing that cache.
PLAN = "lamina.plan"
SUMMARIZED = "lamina.summarized"
CACHE = "lamina.cache"
STORAGE = "lamina.cache_storage"
# The bytes of a blob, after the entries of a journal exported with its blobs.
BLOB = "lamina.blob"


class CustomEntry(EntryBase, frozen=True, kw_only=True, tag="custom"):
    """Data from an application or another system; never part of a context."""

    kind: str
    data: Any = None


class UnknownEntry(EntryBase, frozen=True, kw_only=True, tag="unknown"):
    """An entry of a type unknown to this version. It keeps its fields and its place in the tree for
    a version that supports it."""

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
