"""Plans the list of tools that a request offers, and settles it when the request is made.

Tools come first on every wire, so changing the list costs the whole prefix.

Laws: tools that are always included are in the list. So are all searchable tools, if they are few
and short: such a pool joins whole, with the first request or at a boundary, and stays, so that
nothing is hidden and nothing moves. From a larger pool, chosen tools join while that is cheap: at a
boundary, or a few times while a session is young; where the vendor loads tools late, at a boundary
only. After that they are described where needed, like any item (long ones in brief), and called
through `use_tool`; they join at the next boundary. The engine's own tools come first, from the
first request on; those that find and call others are included unless a pool is offered whole. If
one of them is missing from a sent list, it joins when the list moves anyway, or when a person adds
it again.

No tool is offered that was removed or that cannot be run here. Such a tool leaves at once: it is
barred if a request can say so and the list would otherwise stay; else it is dropped by a break with
that reason. The recorded tools are those offered.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import choose_renderer, find_boundary
from lamina.core.assembly.engine_tools import (
    ENGINE_TOOLS,
    FIND_TOOLS,
    USE_TOOL,
    define_engine_tool,
    engine_names,
)
from lamina.core.assembly.inclusion import Inclusion, is_removed, sort_tools
from lamina.core.assembly.request_draft import Page
from lamina.core.assembly.shortened_results import READ_RESULT
from lamina.core.journal import TOOLS, TOOLS_JOIN, State
from lamina.core.text.tool_descriptions import (
    brief_schema,
    describe_arguments,
    describe_briefly,
    describe_signature,
    first_sentence,
    is_one_word,
)
from lamina.core.values.envelope import Envelope
from lamina.core.values.item import Attachment, Include, Item, ItemId, key_of, tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.patch import Display, Patch, ToolsReplace
from lamina.core.values.request import (
    NOTHING,
    WHOLE_POOL,
    Attachments,
    Boundary,
    ContextTool,
    LeftOut,
)
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import LOCAL_WIRES, Settings, Target
from lamina.core.values.tool import OfferedTool, Toolset

# Prefixes up to this size are worth moving so that a tool can be called directly.
JOIN_TOKENS = 8_192
# At a boundary, chosen tools that were not called in this many messages leave the list.
CALLED_WITHIN = 60
NAMES_SHOWN = 12
# A pool is offered whole if it has at most this many tools, and at most as many tokens as a setting
# and this share of the window allow; see `bench/small_pools.py` for measurements.
MAX_WHOLE_POOL = 24
WHOLE_POOL_PART = 10
# A chosen tool with a longer description (in characters) is described in brief: about 200 tokens,
# the limit for each of the ten tools of a search.
LONG_DESCRIPTION = 800
# Boundaries that add no reason of their own to a list's reason.
_SAID_BEFORE = ("first_request", "tools_change")

# The smallest window in which results are read back: in smaller ones a page would be a few lines.
READER_WINDOW = 8_192


class ToolPlan(Struct, frozen=True, kw_only=True):
    """The plan for the list: the new list with its reason, if it changes; the tools described in
    the message instead; and their entries in the request context."""

    definitions: tuple[ToolDefinition, ...] | None = None
    reason: str = ""
    transformer: str = TOOLS
    described: tuple[Attachment, ...] = ()
    # Tools described earlier and listed from now on: their descriptions may go.
    forget: tuple[ItemId, ...] = ()
    # The existing tools of the list, with the reason for each.
    tools: tuple[ContextTool, ...] = ()
    warnings: tuple[str, ...] = ()


def describe_tool(tool: OfferedTool) -> Item:
    """Return a tool as an item that a model can read."""
    definition = tool.definition
    head = ": ".join(filter(None, (definition.name, definition.description.strip())))
    return Item(id=tool.id, content=f"{head}\n{describe_arguments(definition.parameters)}")


def describe_found(tool: OfferedTool, *, is_first: bool = True) -> Item:
    """Return a tool as one item among many: in brief. After the first few, the sentence is omitted
    too, unless the tool's name is a single word."""
    definition = tool.definition
    name, schema = definition.name, brief_schema(definition.parameters)
    if (is_first or _needs_sentence(tool)) and first_sentence(definition.description):
        content = describe_briefly(name, definition.description, schema)
    else:
        content = describe_signature(name, schema)
    return Item(id=tool.id, content=content)


def describe_chosen(tool: OfferedTool) -> Item:
    """Return a tool as an item chosen for a question: in full, unless that is long."""
    item = describe_tool(tool)
    return item if len(item.content) <= LONG_DESCRIPTION else describe_found(tool)


def standing_description(tool: OfferedTool, state: State) -> Item | None:
    """Return the tool's current description if it stands in the conversation."""
    if (standing := state.library.standing.get(tool.id)) is None:
        return None
    items = (describe_tool(tool), describe_found(tool), describe_found(tool, is_first=False))
    return next((item for item in items if item.version == standing.current), None)


def is_described(tool: OfferedTool, state: State) -> bool:
    """Return whether the current version of the tool is described in the conversation, in full or
    in brief, or was loaded in it."""
    return standing_description(tool, state) is not None or is_loaded(tool, state)


def define_found(tool: OfferedTool, *, is_first: bool = True) -> ToolDefinition:
    """Define a found tool for a vendor that loads tools late."""
    definition = tool.definition
    description = definition.description if is_first or _needs_sentence(tool) else ""
    return ToolDefinition(
        name=definition.name,
        description=first_sentence(description),
        parameters=brief_schema(definition.parameters),
    )


def _needs_sentence(tool: OfferedTool) -> bool:
    return is_one_word(key_of(tool.id).partition("/")[2])


def is_loaded(tool: OfferedTool, state: State) -> bool:
    """Return whether a result in the conversation loads the current version of the tool."""
    loaded = state.loaded.get(tool.definition.name)
    forms = (define_found(tool), define_found(tool, is_first=False))
    return loaded is not None and loaded.item == tool.id and loaded.definition in forms


def is_small_pool(
    pool: Sequence[ToolDefinition],
    settings: Settings,
    count: Callable[[ToolDefinition], int],
    target: Target | None = None,
) -> bool:
    """Return whether the searchable tools are few and short enough to be offered whole. `count`
    counts the tokens of one tool; without a target only the settings limit them."""
    if not 0 < len(pool) <= MAX_WHOLE_POOL:
        return False
    if settings.tool_policy != "sticky" or not settings.tool_search.search:
        return False
    windows = [settings.window, target.window if target else None]
    room = [window // WHOLE_POOL_PART for window in windows if window is not None]
    return sum(map(count, pool)) <= min([settings.whole_pool_tokens, *room])


def offers_whole_pool(
    state: State,
    target: Target,
    inclusion: Inclusion[OfferedTool],
    boundary: Boundary | None,
    count: Callable[[ToolDefinition], int],
) -> bool:
    """Return whether the next request offers all searchable tools. A sent list that came from a
    search stays as it is until a boundary."""
    last = state.requests.sent
    origins = {tool.origin for tool in last.context.tools} if last is not None else {WHOLE_POOL}
    if boundary is None and WHOLE_POOL not in origins:
        return False
    # The result reader comes before them.
    size = 1 + len(inclusion.present) + len(inclusion.agent)
    if target.max_tools and size > target.max_tools:
        return False
    pool = [tool.definition for tool in inclusion.agent]
    return is_small_pool(pool, state.settings, count, target)


def plan_tools(
    state: State,
    target: Target,
    inclusion: Inclusion[OfferedTool],
    chosen: Sequence[SelectedItem],
    boundary: Boundary | None,
    *,
    searches: bool = True,
    whole: bool = False,
) -> ToolPlan:
    """Return the next request's offer from the callable tools (`inclusion`): those chosen by
    search, or all of them (`whole`). `searches` says whether the model can search for the rest."""
    return _Planner(state, target, inclusion, chosen, boundary, searches, whole).plan()


class _Planner:
    def __init__(
        self,
        state: State,
        target: Target,
        inclusion: Inclusion[OfferedTool],
        chosen: Sequence[SelectedItem],
        boundary: Boundary | None,
        searches: bool,
        whole: bool,
    ) -> None:
        self.state = state
        self.whole = whole
        self.policy = state.settings.tool_policy
        self.most = target.max_tools
        self.loads_late = target.loads_late
        self.boundary = boundary
        self.hits = {hit.item: hit for hit in chosen}
        self.present = {tool.definition.name: tool for tool in inclusion.present}
        self.agent = {tool.definition.name: tool for tool in inclusion.agent}
        by_id = {tool.id: tool for tool in inclusion.agent}
        hits = [by_id[item] for item in self.hits if item in by_id]
        choice = inclusion.agent if whole or self.policy == "all" else hits
        self.chosen = {tool.definition.name: tool for tool in choice}
        # Chosen tools found by search: they can be described instead.
        self.hit_names = {name for name, tool in self.chosen.items() if tool.id in self.hits}
        self.there = self.present | self.agent
        self.manual = {tool.id for tool in inclusion.manual}
        self.standing = {tool.name: tool for tool in state.envelope.tool_list}
        # The embedded model calls every tool it is offered; a tool for tools is beyond it.
        is_local = target.wire in LOCAL_WIRES
        window = min(target.window, state.settings.window or target.window)
        # The engine's own tools find and call others, and read results.
        self.own = engine_names(
            {*self.there, *state.withdrawn},
            speaks=(
                self.policy == "sticky"
                and bool(self.agent)
                and not whole
                and not is_local
                and state.settings.tool_joins is not None
            ),
            searches=searches and state.settings.tool_search.search,
            reads=bool(self.there) and not is_local and window >= READER_WINDOW,
        )
        self.speaks_for_others = USE_TOOL.name in self.own

    def plan(self) -> ToolPlan:
        candidates = [name for name in self.present | self.chosen if name not in self.standing]
        new = [name for name in candidates if name in self.present or not self._is_loaded(name)]
        joins = self._may_join(new)
        described: tuple[str, ...] = ()
        if not joins:
            described = tuple(name for name in new if name in self.chosen)
            new = [name for name in new if name in self.present]
        names, over = self._within_limit(self._list(new, described))
        described += tuple(name for name in over if name in self.hit_names)
        definitions = tuple(self._definition(name) for name in names)
        changes = definitions != self.state.envelope.tool_list
        names = names if changes else list(self.standing)
        ids = [self.there[name].id for name in names if name in self.there]
        return ToolPlan(
            definitions=definitions if changes else None,
            reason=self._reason(names) if changes else "",
            transformer=TOOLS_JOIN if changes and self._is_join(new) else TOOLS,
            described=tuple(self._describe(name) for name in described),
            forget=tuple(item for item in ids if item in self.state.library.standing),
            tools=tuple(self._context(name) for name in names if name in self.there),
            warnings=self._warnings(over) if changes else (),
        )

    def _is_loaded(self, name: str) -> bool:
        """Return whether a chosen tool can already be called because a result loaded it."""
        return (
            self.policy == "sticky" and self.loads_late and is_loaded(self.chosen[name], self.state)
        )

    def _may_join(self, new: Sequence[str]) -> bool:
        """Return whether chosen tools join the list; they do if it has to change anyway."""
        state, settings = self.state, self.state.settings
        last = state.requests.sent
        if last is None or self.boundary is not None or not self.speaks_for_others:
            return True
        if USE_TOOL.name not in self.standing:
            # No tool in the list could call tools that are only described.
            return True
        if any(name in self.present for name in new) or self._changed():
            return True
        if self.loads_late:
            # There, moving a prefix costs as much as reading it a dozen times.
            return False
        return state.tool_joins < (settings.tool_joins or 0) and last.tokens <= JOIN_TOKENS

    def _is_join(self, new: Sequence[str]) -> bool:
        return (
            self.boundary is None
            and any(name in self.chosen for name in new)
            and not any(name in self.present for name in new)
        )

    def _list(self, new: Sequence[str], described: Sequence[str]) -> list[str]:
        """Return the names in the list, in order of first use. Without a reason to move, the list
        stays."""
        unsent = self.state.requests.sent is None
        moves = bool(new or self._changed())
        first = [name for name in self.own if name not in self.standing]
        if self.policy == "exact":
            in_use = {*self.present, *self.chosen, *self.own}
            names = [name for name in self.standing if name in in_use] + list(new)
            moves = unsent or self.boundary is not None or names != list(self.standing)
            return [*first, *names] if moves else names
        late = self._described_before(described) if moves or self.boundary else []
        idle = self._idle() if self.boundary else set()
        is_back = any(map(self._is_added, first))
        if not (moves or late or idle or is_back or (first and (unsent or self.boundary))):
            return list(self.standing)
        keeps = [n for n in self.standing if (n in self.there and n not in idle) or n in self.own]
        return [*first, *keeps, *new, *late]

    def _is_added(self, name: str) -> bool:
        """Return whether a person restored an engine tool that they had removed."""
        return self.state.library.members.get(tool_id("", name)) == "manual"

    def _within_limit(self, names: list[str]) -> tuple[list[str], list[str]]:
        """Return the names that a provider accepts, and those over its limit: first the result
        reader, then the latest tools chosen by search, then the last of those always included."""
        if not self.most or len(names) <= self.most:
            return names, []
        last = [name for name in self.own if name == READ_RESULT.name]
        last += [name for name in reversed(names) if name in self.agent]
        last += [n for n in reversed(names) if n not in self.agent and n not in self.own]
        last += [name for name in self.own if name == FIND_TOOLS.name]
        over = set(last[: len(names) - self.most])
        return [n for n in names if n not in over], [n for n in names if n in over]

    def _described_before(self, described: Sequence[str]) -> list[str]:
        """Return tools described for earlier questions and called or chosen again afterwards."""
        candidates = self._called() - {*self.standing, *described, *self.chosen}
        tools = [
            name for name, tool in self.agent.items() if tool.id in self.state.library.standing
        ]
        return [name for name in tools if name in candidates]

    def _idle(self) -> set[str]:
        """Return listed tools that were chosen for some question and are no longer useful."""
        return {*self.standing} & {*self.agent} - {*self.chosen} - self._called()

    def _called(self) -> set[str]:
        cached = self.state.envelope.cached
        latest = cached.since(max(0, len(cached) - CALLED_WITHIN))
        calls = [call for message in latest for call in message.calls]
        others = [call.arguments for call in calls if call.name == USE_TOOL.name]
        return {call.name for call in calls} | {
            name for name in self.agent if any(f'"{name}"' in text for text in others)
        }

    def _changed(self) -> list[str]:
        return [
            name
            for name, definition in self.standing.items()
            if name in self.there and self.there[name].definition != definition
        ]

    def _definition(self, name: str) -> ToolDefinition:
        if name in self.there:
            return self.there[name].definition
        if standing := self.standing.get(name):
            return standing
        return define_engine_tool(name, choose_renderer(self.state, self.boundary))

    def _reason(self, names: Sequence[str]) -> str:
        leavers = [name for name in self.standing if name not in names]
        others = (USE_TOOL.name, FIND_TOOLS.name)
        joiners = [
            name
            for name in names
            if name not in self.standing and (name not in others or self._is_added(name))
        ]
        changes = {
            "new": [n for n in joiners if n not in self.own] or joiners,
            "changed": self._changed(),
            "barred until now": [n for n in leavers if n not in {**self.there, **ENGINE_TOOLS}],
            "not for this model": [n for n in leavers if n in ENGINE_TOOLS and n not in self.there],
            "not chosen any more": [name for name in leavers if name in self.there],
        }
        text = "; ".join(f"{word}: {list_names(tools)}" for word, tools in changes.items() if tools)
        text = text or "described in the conversation can be called"
        if self.boundary is not None and self.boundary.kind not in _SAID_BEFORE:
            text = f"{text} ({self.boundary.reason})"
        return f"tools {text}"

    def _warnings(self, over: Sequence[str]) -> tuple[str, ...]:
        silent = [name for name in over if name not in self.hit_names and name in self.there]
        if not silent:
            return ()
        return (
            f"{len(silent)} tools are not offered, because a request takes {self.most}: "
            f"{list_names(silent)}; choose tools by search (include: agent)",
        )

    def _describe(self, name: str) -> Attachment:
        tool = self.chosen[name]
        item = standing_description(tool, self.state) or describe_chosen(tool)
        return Attachment(item=item, provenance=self.hits[tool.id].provenance)

    def _context(self, name: str) -> ContextTool:
        tool = self.there[name]
        if name in self.present:
            include: Include = "manual" if tool.id in self.manual else "always"
            return ContextTool(item=tool.id, name=name, include=include)
        row = ContextTool(item=tool.id, name=name, include="agent", kept=name not in self.chosen)
        hit = self.hits.get(tool.id)
        if self.whole:
            return replace(row, score=hit.score if hit else None, origin=WHOLE_POOL)
        if hit is None:
            return row
        return replace(row, score=hit.score, origin=hit.origin, source=hit.source, kept=False)


def list_names(names: Sequence[str]) -> str:
    """Return names for display, only the first few if there are many."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


# A tool supplied as a definition belongs to no server.
NO_SERVER = ""


class Implementations(Struct, frozen=True, kw_only=True):
    """The parties that run calls: a runner with these tools; a runner without tools
    (`without_tools`), so that only tools defined by an application can run, in the application; or,
    with neither, the sender of the request, which runs all tools."""

    toolset: Toolset | None = None
    without_tools: bool = False


def settle_tools(page: Page, target: Target, implementations: Implementations) -> Attachments:
    """Remove tools from the list that were removed or cannot be run, and report them."""
    envelope = page.state.envelope
    if not (envelope.tools or envelope.listed or page.state.requests.sent_tools):
        return NOTHING  # as in every session without tools, twice a turn
    return _Settlement(page, target, implementations).settle()


class _Settlement:
    def __init__(self, page: Page, target: Target, implementations: Implementations) -> None:
        self.page = page
        self.state = state = page.state
        self.target = target
        toolset = implementations.toolset
        last = state.requests.sent
        self.ids = {tool.name: tool.item for tool in last.context.tools} if last else {}
        self.ids |= {t.definition.name: t.id for t in toolset.tools} if toolset else {}
        self.removed = {*state.withdrawn} | {
            name for name, item in self.ids.items() if state.library.members.get(item) == "removed"
        }
        self.unhosted = state.hosted if implementations.without_tools else frozenset[str]()
        self.runnable = None
        if toolset is not None:
            self.runnable = {tool.definition.name for tool in toolset.tools}
            inclusion = sort_tools(state, toolset.tools)
            if inclusion.agent:
                # There are tools to search for.
                self.runnable |= ENGINE_TOOLS.keys()
            elif inclusion.present:
                # There are results to read.
                self.runnable.add(READ_RESULT.name)

    def settle(self) -> Attachments:
        envelope = self.state.envelope
        before = envelope.tool_list
        tools = tuple(filter(self._fits, before))
        barred: tuple[str, ...] = ()
        if self._can_bar(tools):
            tools = self.state.requests.sent_tools
            barred = tuple(tool.name for tool in tools if not self._fits(tool))
        if (tools, barred) != (before, barred_names(envelope)):
            reason = self._reason(tools, barred)
            op = ToolsReplace(tools=tools, barred=barred, reason=reason)
            self.page.transform(TOOLS, Patch(ops=(op,), display=Display(title=reason)))
        return self._report(envelope)

    def _fits(self, tool: ToolDefinition) -> bool:
        name = tool.name
        if name in self.removed or name in self.unhosted:
            return False
        return self.runnable is None or name in self.runnable

    def _can_bar(self, fit: tuple[ToolDefinition, ...]) -> bool:
        """Return whether the list can stay as sent, with the other tools barred: if there is no
        other difference and no other reason to move it."""
        state = self.state
        if not self.target.bars_tools or state.settings.tool_policy == "exact":
            return False
        sent = state.requests.sent_tools
        if state.requests.sent is None or tuple(filter(self._fits, sent)) != fit:
            return False
        as_sent = replace(state, envelope=replace(state.envelope, tools=sent, listed=()))
        return find_boundary(as_sent, self.target, self.page.at) is None

    def _reason(self, tools: Sequence[ToolDefinition], barred: Sequence[str]) -> str:
        envelope = self.state.envelope
        listed = {tool.name for tool in envelope.tool_list}
        before = [tool.name for tool in envelope.tools]
        offered = [tool.name for tool in tools if tool.name not in barred]
        leavers = [name for name in before if name not in offered]
        leavers += [name for name in barred if name not in listed]
        # The engine's own tools go with those they serve.
        leavers = [name for name in leavers if name not in ENGINE_TOOLS] or leavers
        changes = {
            "removed": [name for name in leavers if name in self.removed],
            "gone": [name for name in leavers if name not in self.removed],
            "back": [name for name in offered if name not in before and name not in ENGINE_TOOLS],
        }
        parts = [f"{word}: {list_names(names)}" for word, names in changes.items() if names]
        if not parts:
            idle = [name for name in barred_names(envelope) if name not in barred]
            parts = [f"barred until now: {list_names(idle)}"]
        stay = " (the list stays, and they are not to be called)" if barred and leavers else ""
        return f"tools {'; '.join(parts)}{stay}"

    def _report(self, before: Envelope) -> Attachments:
        """Report tools that were offered, in the last request or until now, and no longer are."""
        state, last = self.state, self.state.requests.sent
        offered = {tool.name for tool in self.page.state.envelope.tools}
        sent = [tool.name for tool in state.requests.sent_tools]
        earlier = [name for name in sent if last and last.context.allows(name)]
        leavers = [n for n in (*earlier, *(tool.name for tool in before.tools)) if n not in offered]
        left_out = []
        for name in dict.fromkeys(leavers):
            item = self.ids.get(name) or tool_id(NO_SERVER, name)
            if name in self.removed:
                why = state.withdrawn.get(name)
                detail = f"the tool {name!r} was removed{f': {why}' if why else ''}"
            elif self._is_gone(name):
                detail = f"nothing here can run the tool {name!r}"
            else:
                continue
            left_out.append(LeftOut(what=item, reason="removed", detail=detail))
        gone = [tool.name for tool in before.tools if self._is_gone(tool.name)]
        gone = [name for name in gone if name not in self.removed and name not in offered]
        warning = f"not offered, because nothing here can run it: {list_names(gone)}"
        return Attachments(left_out=tuple(left_out), warnings=(warning,) if gone else ())

    def _is_gone(self, name: str) -> bool:
        if name in ENGINE_TOOLS:
            return False
        return name in self.unhosted or (self.runnable is not None and name not in self.runnable)


def barred_names(envelope: Envelope) -> tuple[str, ...]:
    """Return the listed tools that must not be called."""
    if not envelope.listed:
        return ()
    offered = {tool.name for tool in envelope.tools}
    return tuple(tool.name for tool in envelope.listed if tool.name not in offered)


def allowed_tools(envelope: Envelope, *, answer_only: bool) -> tuple[str, ...] | None:
    """Return the tools that may be called, or None if every listed tool may."""
    if answer_only and envelope.tool_list:
        return ()
    return tuple(tool.name for tool in envelope.tools) if envelope.listed else None


def describe_offer(
    state: State, known: Sequence[ContextTool], toolset: Toolset | None
) -> tuple[ContextTool, ...]:
    """Return the tools on the wire, in order, with the reason for each: from `known`, or from the
    last request."""
    names = [tool.name for tool in state.envelope.tool_list]
    if not names:
        return ()
    last = state.requests.sent.context.tools if state.requests.sent else ()
    rows = {tool.name: tool for tool in last} | {tool.name: tool for tool in known}
    offered = {tool.definition.name: tool for tool in toolset.tools} if toolset else {}
    return tuple([rows.get(name) or _plain_row(name, offered.get(name)) for name in names])


def _plain_row(name: str, tool: OfferedTool | None) -> ContextTool:
    if tool is None:
        return ContextTool(item=tool_id(NO_SERVER, name), name=name)
    return ContextTool(item=tool.id, name=name, include=tool.include)


def removed_items(state: State, toolset: Toolset | None) -> frozenset[ItemId]:
    """Return existing tools that were removed from the session."""
    tools = toolset.tools if toolset else ()
    return frozenset(tool.id for tool in tools if is_removed(state, tool))
