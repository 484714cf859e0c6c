"""Journal entries: an append-only tree. What they hold is all that a rebuild needs."""

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
    """`at` is the first key of every entry in canonical form, which a reader of damaged journals
    relies on: no field of an entry may be called something that sorts before it."""

    id: str
    parent: str | None
    at: float
    # What another system said of it and Lamina has no field for; it survives import and export.
    extra: dict[str, Any] = {}


class SessionEntry(EntryBase, frozen=True, kw_only=True, tag="session"):
    """The header of a session: what it began with."""

    session: str
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    options: Options = Options()
    settings: Settings = Settings()
    # What applies to every turn.
    included: tuple[Item, ...] = ()
    workspace: str = ""
    # The agent it was opened with, by name, and where that was. (Not `agent`: see above.)
    with_agent: str = ""
    with_agent_at: str = ""
    # The include modes of what that agent had then, which are the session's own from then on.
    # Headers of before these were kept say nothing.
    include_modes: dict[ItemId, Include] | None = None
    # The session this one was forked from, and the format it was imported from.
    forked_from: str = ""
    # Of a copy of a damaged session: its last entry then. In front of it some may be missing.
    repaired_until: str = ""
    source: str = ""
    format: int = FORMAT
    # What headers of before there was a second one do not say.
    renderer: int = 1


class ItemEntry(EntryBase, frozen=True, kw_only=True, tag="item"):
    """The content of one item version, once."""

    item: Item


class TransformEntry(EntryBase, frozen=True, kw_only=True, tag="context_transform"):
    """A patch that was applied, and who made it."""

    transformer: str
    patch: Patch


class EphemeralEntry(EntryBase, frozen=True, kw_only=True, tag="ephemeral"):
    """What is for one request only: texts, and operations on a copy of the envelope. It is never
    part of a rebuilt context."""

    tool_texts: tuple[ToolText, ...] = ()
    messages: tuple[Message, ...] = ()
    patches: tuple[OnceOps, ...] = ()
    # The hooks that did it, and how a person is shown what they did.
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()


class MessageEntry(EntryBase, frozen=True, kw_only=True, tag="message"):
    """A message: a question, an answer, or results of tools."""

    message: Message
    interrupted: bool = False
    # Of answers that were imported: there is no request of ours that they reply to.
    usage: Usage | None = None
    model: str = ""
    # Of results that were cut or shortened before they were sent: by call, the blob with all of it.
    whole_results: dict[str, str] = {}


class RequestEntry(EntryBase, frozen=True, kw_only=True, tag="request"):
    """A request as it was about to be sent. The digests of its segments in wire order are those of
    the request `base` up to `kept`, then `digests`; storing them whole would make a session's
    journal grow with the square of its length."""

    target: str
    context: RequestContext
    # The leaf in front of everything that was written for this request: preparing again instead
    # of committing starts a sibling there.
    before: str
    base: str | None
    kept: int
    digests: tuple[str, ...]
    promotion: Promotion = "lazy"
    cached_run: int
    tokens: int
    cached_tokens: int
    calibration: float = 1.0
    # The provider refused this question once before, as too long.
    retry: bool = False
    # What made bytes of it: the wire and its form, and the renderer if it is not the session's.
    # Records of before these were kept say nothing of them.
    wire: str = ""
    wire_form: int = 1
    renderer: int = 0
    # Whether its model binds thinking, so that just what was valid then was sent.
    binds_thinking: bool = False
    # Whether words stood for its pictures, as its model cannot see them.
    hides_pictures: bool = False
    # The name under which a provider keeps its prefix; a fork has another one from then on.
    cache_key: str = ""
    # What a provider finds the machine by that has its prefix, if that is another name: sessions
    # that begin alike share it, and a fork goes on with the one of what it was forked from.
    routing_key: str = ""
    # Of all segments, of everything else on the wire that the journal decides, and of what the
    # model book said of the target.
    prompt_digest: str = ""
    parameters_digest: str = ""
    target_digest: str = ""


class ReplyEntry(EntryBase, frozen=True, kw_only=True, tag="reply"):
    """Closes a request: what came back and what the provider said it cost. `provider_id` is what it
    calls the answer, `missed` its own word on what its cache did not have, `transformations` what
    it left out of the request before the model saw it."""

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
    """A tool that the model found by a search of its own: the version of the item that describes
    it, and how well it fits."""

    item: ItemId
    version: str
    score: float | None = None


class ResultEntry(EntryBase, frozen=True, kw_only=True, tag="result"):
    """A tool has run while other calls of its turn still wait: it must not run again. The message
    that answers all of them repeats the result. `whole` is the blob with all of it, if it was
    cut; `found` are the tools that a search for `query`, as far as it is noted, brought: `loads`
    those of them that the vendor loads; the others are described behind the results."""

    result: ToolResult
    whole: str = ""
    query: str = ""
    found: tuple[FoundTool, ...] = ()
    loads: LoadedTools | None = None


class DecisionEntry(EntryBase, frozen=True, kw_only=True, tag="decision"):
    """What a person decided of a call. Allowed for the session, the tool runs unasked from now on,
    as long as its definition has this digest."""

    call_id: str
    tool: ItemId
    digest: str
    decision: Decision


class SettingsEntry(EntryBase, frozen=True, kw_only=True, tag="settings"):
    """The settings from here on. `replaces` names options that give way to settings of the same
    name."""

    settings: Settings
    replaces: tuple[str, ...] = ()


class ModelEntry(EntryBase, frozen=True, kw_only=True, tag="model"):
    """The session talks to another target from here on."""

    target: str


class PinEntry(EntryBase, frozen=True, kw_only=True, tag="pin"):
    """Pinned items are essential, named every turn, and survive boundaries."""

    item: ItemId
    version: str = ""
    pinned: bool = True


class LeaveEntry(EntryBase, frozen=True, kw_only=True, tag="leave"):
    """The turn under way was left without a final answer; the next message begins another."""


class ForgetEntry(EntryBase, frozen=True, kw_only=True, tag="forget"):
    """The item leaves the library at the next boundary."""

    item: ItemId


# What a session says of an item: in by hand, kept out, or as its agent has it.
Membership = Literal["manual", "removed", "default"]


class IncludeEntry(EntryBase, frozen=True, kw_only=True, tag="include"):
    """A person added a rule, a reference or a tool to the session, or took it out. `name` is what a
    model knows the tool by."""

    item: ItemId
    membership: Membership
    name: str = ""


class AdoptEntry(EntryBase, frozen=True, kw_only=True, tag="adopt"):
    """The session took over what the files of its agent said: the include modes from here on, and
    where the agent was."""

    include_modes: dict[ItemId, Include]
    with_agent: str = ""
    with_agent_at: str = ""


class LeafEntry(EntryBase, frozen=True, kw_only=True, tag="leaf"):
    """The position that was chosen is the parent of this entry; the session goes on there.
    `warm_at` is when the last request on the path there was last sent as the beginning of another
    one, on the branch that was left. `left` is where the session was, if it came here to ask again:
    it goes back there unless there is an answer here."""

    warm_at: float = 0.0
    left: str = ""


class LabelEntry(EntryBase, frozen=True, kw_only=True, tag="label"):
    """A person's name for an entry; an empty one takes it away."""

    target: str
    label: str = ""


class BranchSummaryEntry(EntryBase, frozen=True, kw_only=True, tag="branch_summary"):
    """What came of a branch that was left, told to the model on this one."""

    branch: str
    summary: str


class InfoEntry(EntryBase, frozen=True, kw_only=True, tag="info"):
    """What a person calls the session."""

    name: str


class OpeningEntry(EntryBase, frozen=True, kw_only=True, tag="opening"):
    """The session was opened again and other things were given than the last time, by digest;
    options and what applies to every turn are replaced by those here."""

    given: dict[str, str]
    options: Options | None = None
    included: tuple[Item, ...] | None = None


# When a message is taken up: with the next request, or after the answer.
Delivery = Literal["steer", "follow_up"]


class InboxEntry(EntryBase, frozen=True, kw_only=True, tag="inbox"):
    """A message that was sent while no turn was under way: it waits for the next one. With `taken`,
    the message of that entry waits no more."""

    text: str = ""
    deliver: Delivery = "steer"
    taken: str = ""


# The kind of a custom entry that says what went wrong: where, and the problem.
PROBLEM = "lamina.problem"
# What was run for a planned request: custom entries of this kind.
PLANNED = "lamina.planned"
# Requests beside the turns, with their usage and cost: one that planned calls, one for a summary,
# one that created an explicit cache; and what storing that one cost.
PLAN = "lamina.plan"
SUMMARIZED = "lamina.summarized"
CACHE = "lamina.cache"
STORAGE = "lamina.cache_storage"
# The bytes of a blob, behind the entries of a journal that was exported with what it refers to.
BLOB = "lamina.blob"


class CustomEntry(EntryBase, frozen=True, kw_only=True, tag="custom"):
    """Data of an application or of another system; not part of any context."""

    kind: str
    data: Any = None


class UnknownEntry(EntryBase, frozen=True, kw_only=True, tag="unknown"):
    """An entry of a type that this version does not know. It keeps its place in the tree and its
    fields, for one that does."""

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
    """The header of a new session."""
    return SessionEntry(
        id="000000", parent=None, at=at, session=session, renderer=RENDERER, **fields
    )
