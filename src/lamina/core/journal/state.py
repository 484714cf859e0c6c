"""Defines the state of a session at one entry of its tree, and the item versions that stand in it.

Laws: a state is the fold of the path to its leaf, and contains nothing else. The library, the
current turn and the last requests are values of their own. A session keeps the renderer of its last
request until its prefix is dead anyway. An item counts as laid down if and only if its block stands
in the envelope.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal.reasons import RecordedReason
from lamina.core.values.collections import FrozenMap
from lamina.core.values.entry import (
    RENDERER,
    RENDERERS,
    DecisionEntry,
    InboxEntry,
    Membership,
    RequestEntry,
    ResultEntry,
    SessionEntry,
)
from lamina.core.values.envelope import Envelope, Options
from lamina.core.values.item import Include, Item, ItemId
from lamina.core.values.message import LoadedTool, Message, ToolDefinition, ToolResult, Use
from lamina.core.values.patch import (
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
)
from lamina.core.values.settings import OPTION_SETTINGS, Settings
from lamina.core.values.usage import Usage


class LaidVersions(Struct, frozen=True, kw_only=True):
    """The versions of an item whose blocks stand in the envelope, in order, and the one that
    applies; none if it was superseded. `in_library` says that it is already there and needs no
    boundary."""

    versions: tuple[str, ...]
    current: str
    in_library: bool = False


class StandingItems(Struct, frozen=True, kw_only=True):
    """The items that stood in an envelope, so that envelopes grown from it need not be searched."""

    envelope: Envelope
    standing: Mapping[ItemId, LaidVersions]

    def versions_in(self, envelope: Envelope, item: ItemId) -> tuple[str, ...]:
        """Return the versions of an item whose blocks stand in `envelope`, a later one."""
        if not has_grown(self.envelope, envelope):
            return find_versions(envelope, item)
        laid = self.standing.get(item)
        versions = laid.versions if laid else ()
        new = envelope.cached.since(len(self.envelope.cached))
        uses = (use for message in new if message.context for use in message.context.uses)
        return (*versions, *(u.version for u in uses if u.item == item and u.form == "full"))


def has_grown(before: Envelope, after: Envelope) -> bool:
    """Return whether all earlier content still stands, with nothing but messages added."""
    shared = after.cached.shared_with(before.cached)
    return after.library is before.library and shared == len(before.cached)


def find_versions(envelope: Envelope, item: ItemId) -> tuple[str, ...]:
    """Return the versions of an item whose blocks stand in `envelope`, by searching all of it."""
    laid = find_laid_versions(envelope, {}).get(item)
    return laid.versions if laid else ()


def lay_uses(
    standing: Mapping[ItemId, LaidVersions], uses: Iterable[Use]
) -> Mapping[ItemId, LaidVersions]:
    """Return the standing items after a message with these uses was appended."""
    after = dict(standing)
    for use in uses:
        before = after.get(use.item)
        versions = before.versions if before else ()
        if use.form == "full":
            # A version that stands twice counts only in its last place.
            versions = (*(version for version in versions if version != use.version), use.version)
            after[use.item] = LaidVersions(versions=versions, current=use.version)
        elif before and before.current != use.version:
            after[use.item] = replace(before, current=use.version, in_library=False)
    return after


def find_laid_versions(
    envelope: Envelope, before: Mapping[ItemId, LaidVersions]
) -> Mapping[ItemId, LaidVersions]:
    """Return the items that stand in `envelope`. `before` is the previous result: a version chosen
    by name alone ("changed back") and one that was superseded stay so while the blocks stand."""
    library = {
        laid.item: LaidVersions(versions=(laid.version,), current=laid.version, in_library=True)
        for laid in envelope.library
    }
    contexts = (message.context for message in envelope.cached)
    uses = (use for context in contexts if context for use in context.uses if use.form == "full")
    after = dict(lay_uses(library, uses))
    for item, then in before.items():
        now = after.get(item)
        if now is None or then.current == now.current:
            continue
        if then.current in now.versions or (not then.current and then.versions == now.versions):
            after[item] = replace(now, current=then.current)
    return after


def apply_lay_ops(
    standing: Mapping[ItemId, LaidVersions], patch: Patch
) -> Mapping[ItemId, LaidVersions]:
    """Return the standing items after a patch's operations on single versions: one that is laid
    down applies from then on, a superseded one no longer does."""
    laid = {op.item: op.version for op in patch.ops if isinstance(op, ItemLay)}
    gone = {(op.item, op.version) for op in patch.ops if isinstance(op, ItemSupersede)}
    if not (laid or gone):
        return standing
    after = dict(standing)
    for item, version in laid.items():
        if (versions := after.get(item)) and version in versions.versions:
            after[item] = replace(versions, current=version)
    for item, version in gone:
        if (versions := after.get(item)) and versions.current == version:
            after[item] = replace(versions, current="")
    return after


def laid_items(op: PatchOp) -> list[tuple[ItemId, str]]:
    """Return the item versions that an operation lays down; their contents must exist."""
    match op:
        case ItemLay(item=item, version=version):
            return [(item, version)]
        case LibraryConsolidate(items=items):
            return [(laid.item, laid.version) for laid in items]
        case (
            MessagesCachedReplace(messages=messages)
            | MessagesCachedAppend(messages=messages)
            | MessagesUncachedAppend(messages=messages)
        ):
            contexts = [message.context for message in messages]
            uses = [use for context in contexts if context for use in context.uses]
            return [(use.item, use.version) for use in uses if use.form == "full"]
        case _:
            return []


class KnownItem(Struct, frozen=True, kw_only=True):
    """The stored facts about an item after it was part of a turn."""

    priority: int
    essential: bool
    added: int
    named: int


class Library(Struct, frozen=True, kw_only=True):
    """The items of a session: their contents, which of them stand, and people's decisions about
    them.

    `items` contains every version that was part of the session, `item_entries` the entry with each
    of them. `standing` describes what is laid down, `known` holds facts about items after they were
    part of a turn.

    `pinned` maps each item to the version it had when it was pinned, for when it can no longer be
    read; `forgotten` items leave at the next boundary; `members` are those a person added or
    removed, in order; `always` apply to every turn. `include_modes` are those of the agent's rules,
    references and tools, as the session adopted them from the agent at `modes_from`; None if it
    never recorded any and follows the agent's files.

    `still_out` items are attached but left out for lack of room, and stay out while attached.
    `in_force` are the rules and references named by the latest standing list; None if there is
    none.
    """

    items: FrozenMap[tuple[ItemId, str], Item] = FrozenMap()
    item_entries: FrozenMap[tuple[ItemId, str], str] = FrozenMap()
    standing: Mapping[ItemId, LaidVersions] = {}
    known: Mapping[ItemId, KnownItem] = {}
    pinned: Mapping[ItemId, str] = {}
    forgotten: frozenset[ItemId] = frozenset()
    members: Mapping[ItemId, Membership] = {}
    include_modes: Mapping[ItemId, Include] | None = None
    modes_from: str = ""
    always: tuple[tuple[ItemId, str], ...] = ()
    still_out: frozenset[ItemId] = frozenset()
    in_force: tuple[ItemId, ...] | None = None


class OpenTurn(Struct, frozen=True, kw_only=True):
    """The current turn; between two turns, the remains of the last one.

    `question` is what was typed, which must survive a cut in the middle of the turn; `asked` the id
    of that message while no request was made for it; `start` its index among the cached messages,
    None between turns. `retried` says that the provider refused one of its requests as too long.

    For waiting calls: `called_by` is the request whose answer made them, `results` those of calls
    that already ran, `whole_results` the blobs of uncut results, `searches` the results that found
    tools, `decisions` those made by a person, and `behind_results` messages that come after the
    results.
    """

    question: str = ""
    asked: str = ""
    start: int | None = None
    retried: bool = False
    called_by: str = ""
    results: Mapping[str, ToolResult] = {}
    whole_results: Mapping[str, str] = {}
    searches: tuple[ResultEntry, ...] = ()
    decisions: Mapping[str, DecisionEntry] = {}
    behind_results: tuple[Message, ...] = ()


class RecordedBefore(Struct, frozen=True, kw_only=True):
    """The recorded state when a request was prepared: the number of reasons and cuts, what stood,
    the list of tools and the options. The next request has to explain everything else, including
    what moves back after a request with changes of its own (`returning`)."""

    reasons: int
    cuts: int
    standing: Mapping[ItemId, LaidVersions]
    tools: tuple[ToolDefinition, ...]
    options: Options = Options()
    returning: tuple[RecordedReason, ...] = ()


class LastRequests(Struct, frozen=True, kw_only=True):
    """The request that waits for its answer, the last one sent, and everything recorded since then
    that a comparison with it needs.

    `open` is the waiting one, `before_open` the recorded state when it was prepared.

    `sent` is the last request known to be sent, `sent_usage` its usage as reported, and
    `sent_reply` the provider's id of its answer. `sent_standing` is what stood then (anything gone
    by now has to be reported), `sent_tools` the list of tools and `sent_options` the options sent
    with it.

    `reasons` are those recorded on this path since then, with what they cover; `cuts` how many
    messages were replaced by a summary, each with the reason. `warm_at` is when another branch last
    sent a request that starts with `sent`, if it did: this kept the cache alive. `branched` says
    that the path left another one since then, whose requests may also be in the cache. `left` is
    the previous position of the session, if it asks again for something and has no answer yet.
    """

    open: RequestEntry | None = None
    before_open: RecordedBefore | None = None
    sent: RequestEntry | None = None
    sent_usage: Usage | None = None
    sent_reply: str = ""
    sent_standing: Mapping[ItemId, LaidVersions] = {}
    sent_tools: tuple[ToolDefinition, ...] = ()
    sent_options: Options = Options()
    reasons: tuple[RecordedReason, ...] = ()
    cuts: tuple[tuple[str, int], ...] = ()
    warm_at: float = 0.0
    branched: bool = False
    left: str = ""

    @property
    def cached_at(self) -> float | None:
        """The time when the cache entry left by `sent` was last used; None if nothing was sent."""
        return max(self.sent.at, self.warm_at) if self.sent is not None else None


class State(Struct, frozen=True, kw_only=True):
    """The state of a session at one entry of its tree, which is its `leaf`.

    `session` is the header, `given` the digests of arguments that changed when the session was
    reopened. `turn_count` counts the questions so far.

    `goal` is the session's original goal; `read_files` and `modified_files` are the files that
    compactions removed from view. `pictured` says whether any message or item has images, whose
    bytes a request then needs. `calibration` is the ratio of each target's token counts to our
    estimates. `inbox` are messages that wait for the next turn, by entry. `once` contains changes
    to the next request only.

    For tools: `allowed` run without asking, each with the digest of the definition that was
    allowed; `withdrawn` were removed by a person or a hook, by the model's names for them and with
    the reason, and stay away until someone restores them; `hosted` are listed names of a runner's
    tools, which only that runner can run; `tool_joins` is how often chosen tools joined a list that
    had been sent. `shortened` are results that are not sent in full, by message and call, with the
    digest of each whole result. `loaded` are the tools loaded by standing results, by the model's
    names for them.
    """

    session: SessionEntry
    settings: Settings
    envelope: Envelope
    library: Library = Library()
    turn: OpenTurn = OpenTurn()
    requests: LastRequests = LastRequests()
    leaf: str = ""
    turn_count: int = 0
    given: Mapping[str, str] = {}
    goal: str = ""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    pictured: bool = False
    calibration: Mapping[str, float] = {}
    inbox: Mapping[str, InboxEntry] = {}
    once: tuple[OnceOps, ...] = ()
    allowed: Mapping[ItemId, str] = {}
    withdrawn: Mapping[str, str] = {}
    hosted: frozenset[str] = frozenset()
    tool_joins: int = 0
    shortened: Mapping[tuple[str, str], str] = {}
    loaded: Mapping[str, LoadedTool] = {}

    @property
    def options(self) -> Options:
        """The options for answers, with defaults from the settings."""
        own, settings = self.envelope.options, self.settings
        given = {
            name: value
            for name in OPTION_SETTINGS
            if getattr(own, name) is None and (value := getattr(settings, name)) is not None
        }
        return replace(own, **given) if given else own

    @property
    def settings_in_force(self) -> Settings:
        """The settings, overridden by options."""
        options = {name: getattr(self.envelope.options, name) for name in OPTION_SETTINGS}
        given = {name: value for name, value in options.items() if value is not None}
        return replace(self.settings, **given) if given else self.settings


def options_for_request(state: State) -> Options:
    """Return the options for the request of `state`: those in force, and its own.

    Raises:
        InvalidPatch: an operation for it sets an option out of range.
    """
    options = state.options
    for once in state.once:
        for op in once.ops:
            if isinstance(op, OptionsSet):
                options = op.over(options)
    return options


def known_renderer(request: RequestEntry, header: SessionEntry) -> int:
    """Return the renderer of a request; the current one if this version does not have it."""
    renderer = request.renderer or header.renderer
    return renderer if renderer in RENDERERS else RENDERER


def renderer_in(state: State) -> int:
    """Return the renderer for the next request: that of the last one sent."""
    last = state.requests.sent
    return RENDERER if last is None else known_renderer(last, state.session)
