"""Performs step 3 of a turn: the selector's results are written to the journal and become part of
the turn.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import find_boundary
from lamina.core.assembly.budget import assemble_standing
from lamina.core.assembly.engine_tools import USE_TOOL
from lamina.core.assembly.inclusion import (
    Inclusion,
    is_included,
    membership_added,
    missing_member_error,
    sort_tools,
)
from lamina.core.assembly.request_draft import Page
from lamina.core.assembly.tool_offer import (
    describe_chosen,
    describe_tool,
    is_described,
    is_loaded,
    offers_whole_pool,
    plan_tools,
)
from lamina.core.assembly.turn_items import stands
from lamina.core.layers import Assembler
from lamina.core.text import label_of
from lamina.core.values.agent import Guides
from lamina.core.values.entry import ForgetEntry, IncludeEntry, RequestEntry
from lamina.core.values.item import Attachment, Item, ItemId, key_of
from lamina.core.values.message import Message, ToolCall
from lamina.core.values.patch import Display, Patch, ToolsReplace
from lamina.core.values.request import NOTHING, Attachments, ContextTool, LeftOut
from lamina.core.values.settings import Target
from lamina.core.values.tool import OfferedTool, Toolset
from lamina.engine.record.layouts import Layouts
from lamina.engine.sources.candidates import expanding_results
from lamina.engine.sources.related_items import Pool
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.engine.sources.selector import (
    NO_CHOICE,
    SearchChoice,
    Selector,
    attach_guide,
    runners_up,
    take_while_room,
)


class ChosenTools(Struct, frozen=True, kw_only=True):
    """The tools of a turn: those in the list, those described in its message, and those left
    out.
    """

    tools: tuple[ContextTool, ...] = ()
    # Whether no call of the answer will be run, whatever is in the list.
    answer_only: bool = False
    # The described tools, those left out, and the reports about this for people.
    attachments: Attachments = NOTHING
    # Tools that left the list without the model being informed.
    reports: tuple[LeftOut, ...] = ()


NO_TOOLS = ChosenTools()


def tools_of(request: RequestEntry) -> ChosenTools:
    """Return the tools that a request had, for the one that continues from it."""
    context = request.context
    return ChosenTools(tools=context.tools, answer_only=context.allowed_tools == ())


class TurnChoices:
    """The choices of one turn. Their changes to the session are written with the turn."""

    def __init__(
        self,
        selector: Selector,
        screen: SecretScreen,
        layouts: Layouts,
        page: Page,
        target: Target,
        question: str,
    ) -> None:
        self._selector = selector
        self._screen = screen
        self._layouts = layouts
        self._page = page
        self._target = target
        self._question = question
        self._guides, self._findings = Guides(), tuple[str, ...]()
        self._tool_choice = NO_CHOICE
        # None if they are searched for separately, later.
        self._guide_choice: SearchChoice | None = None

    async def choose(self, attached: Attachments, toolset: Toolset | None) -> None:
        """Search for what fits the question: tools, rules and references, which may bring one
        another along.
        """
        state, selector = self._page.state, self._selector
        self._guides, self._findings = self._screen.guides(
            await selector.guides(state), state.settings.secrets
        )
        tools = Pool()
        mentions = selector.mentions(self._question, self._guides)
        guides = selector.guide_pool(state, attached.attachments, self._guides, mentions)
        if toolset is not None:
            inclusion = sort_tools(state, toolset.tools)
            tools = selector.tool_pool(state, inclusion)
            brings_guides = selector.index is not None and selector.crosses(tools, guides)
            if self._offers_whole_pool(inclusion) and not brings_guides:
                # All are offered, and the tools that fit bring nothing along.
                tools = Pool(settings=tools.settings)
        if selector.crosses(tools, guides):
            self._tool_choice, self._guide_choice = await selector.choose(
                state, self._question, tools, guides
            )
        else:
            # Hooks may change the conversation before rules and references are searched for.
            (self._tool_choice,) = await selector.choose(state, self._question, tools)
            self._guide_choice = None

    def tools(self, toolset: Toolset) -> ChosenTools:
        """Change the list of tools if necessary, and record why every tool is there."""
        page, state = self._page, self._page.state
        inclusion = sort_tools(state, toolset.tools)
        whole = self._offers_whole_pool(inclusion)
        choice, too_large = self._tool_choice, tuple[LeftOut, ...]()
        if not whole:
            choice, too_large = self._with_room(choice, inclusion)
        boundary = find_boundary(state, self._target, page.at)
        plan = plan_tools(
            state, self._target, inclusion, choice.items, boundary,
            searches=self._selector.index is not None, whole=whole,
        )  # fmt: skip
        if plan.definitions is not None:
            op = ToolsReplace(tools=plan.definitions, reason=plan.reason)
            page.transform(plan.transformer, Patch(ops=(op,), display=Display(title=plan.reason)))
            for item in plan.forget:
                if item not in state.library.forgotten:
                    page.write(ForgetEntry, item=item)
        missing = [
            LeftOut(what=item, reason="missing", detail=f"the tool {key_of(item)!r} is not there")
            for item in inclusion.missing
        ]
        refusals = self._refuse_described(inclusion.removed)
        items = {tool.item for tool in plan.tools}
        lower = [left for left in runners_up(choice) if left.what not in items]
        return ChosenTools(
            tools=plan.tools,
            attachments=Attachments(
                attachments=plan.described,
                left_out=(*missing, *refusals, *too_large, *lower),
                warnings=(*choice.warnings, *plan.warnings),
            ),
        )

    def _offers_whole_pool(self, inclusion: Inclusion[OfferedTool]) -> bool:
        state, target = self._page.state, self._target
        boundary = find_boundary(state, target, self._page.at)
        count = self._assembler.definition_tokens
        return offers_whole_pool(state, target, inclusion, boundary, count)

    def _refuse_described(self, removed: Sequence[OfferedTool]) -> list[LeftOut]:
        """Report once that tools described in the conversation were removed; their descriptions
        leave at the next boundary.
        """
        state = self._page.state
        described = [tool for tool in removed if is_described(tool, state)]
        reported = [tool for tool in described if tool.id not in state.library.forgotten]
        for tool in reported:
            self._page.write(ForgetEntry, item=tool.id)
        detail = "the tool {!r} is described above, and was removed"
        return [
            LeftOut(what=tool.id, reason="refused", detail=detail.format(tool.definition.name))
            for tool in reported
        ]

    def _with_room(
        self, choice: SearchChoice, inclusion: Inclusion[OfferedTool]
    ) -> tuple[SearchChoice, tuple[LeftOut, ...]]:
        """Return the choice without tools that would use too much of the remaining room."""
        names = {tool.name for tool in self._page.state.envelope.tool_list}
        items = {item.item for item in choice.items}
        tools = (*inclusion.present, *(tool for tool in inclusion.agent if tool.id in items))
        costs = {
            tool.id: 0 if is_described(tool, self._page.state) else self._cost(describe_tool(tool))
            for tool in tools
            if tool.definition.name not in names
        }
        if not any(costs.get(item) for item in items):
            return choice, ()
        room = self._room_left() - sum(costs.get(tool.id, 0) for tool in inclusion.present)
        return take_while_room(choice, room, lambda item: costs.get(item.item, 0))

    def _room_left(self) -> int:
        """Return the room left in the window after the standing context and the question."""
        state, assembler = self._page.state, self._assembler
        room = self._layouts.room(self._target, state).beside(assemble_standing(state, assembler))
        return room.left - assembler.count_text(self._question)

    def _cost(self, item: Item) -> int:
        """Return how much an item adds to the request."""
        return 0 if stands(self._page.state, item) else self._assembler.item_tokens(item)

    @property
    def _assembler(self) -> Assembler:
        return self._layouts.assembler_for(self._target, self._page.state.settings.promotion)

    async def guides(self, attached: Attachments, tools: ChosenTools) -> Attachments:
        """Return the attachments, with the rules, references and tool descriptions that apply."""
        page, selector = self._page, self._selector
        settings = page.state.settings
        # The items of a missing agent are reported as missing.
        tooled = tools.attachments != NOTHING or page.state.hosted
        if not (selector.guides_turns or settings.relevance_priority or tooled):
            return attached
        guides = self._guides
        missing = self._add_mentioned(guides, {a.item.id for a in attached.attachments})
        own, warnings = await selector.weigh(self._question, attached.attachments, page.state)
        room = 0
        if guides.guides:
            new = (*own, *tools.attachments.attachments)
            room = self._room_left() - sum(self._cost(a.item) for a in new)
        choice = self._guide_choice
        if choice is None:
            pool = selector.guide_pool(page.state, own, guides)
            (choice,) = await selector.choose(page.state, self._question, pool)
        guidance = selector.guide(page.state, own, guides, choice, self._cost, room)
        found = Attachments(left_out=tuple(missing), warnings=(*self._findings, *warnings))
        return replace(attached, attachments=own) + found + guidance + tools.attachments

    async def find_in_results(
        self,
        message: Message,
        calls: Sequence[ToolCall],
        attached: Sequence[Attachment],
        toolset: Toolset | None,
    ) -> Attachments:
        """Return items similar to the results that just arrived for the current turn's calls, and
        that are not part of it yet. Tools are described, and called through `use_tool`: the list
        stays as it is.
        """
        state, selector = self._page.state, self._selector
        offered = toolset.tools if toolset else ()
        names = state.settings.expanding_tools
        if not (results := expanding_results(names, message, calls, offered)):
            return NOTHING
        guides, findings = self._screen.guides(await selector.guides(state), state.settings.secrets)
        tools, pool = dict[ItemId, OfferedTool](), Pool()
        if toolset is not None:
            inclusion = sort_tools(state, toolset.tools)
            tools = {tool.id: tool for tool in inclusion.agent}
            pool = selector.tool_pool(state, inclusion)
            pool = replace(pool, there=pool.there | self._callable(toolset.tools, attached))
        tool_choice, guide_choice = await selector.choose_from_results(
            results, pool, selector.guide_pool(state, attached, guides)
        )
        by_id = {guide.id: guide for guide in guides.guides}
        found = {
            hit.item: attach_guide(by_id[hit.item], hit.provenance) for hit in guide_choice.items
        }
        left: list[LeftOut] = []
        can_call = any(tool.name == USE_TOOL.name for tool in state.envelope.tool_list)
        for hit in tool_choice.items:
            if hit.item not in tools:
                continue
            if can_call:
                item = describe_chosen(tools[hit.item])
                found[hit.item] = Attachment(item=item, provenance=hit.provenance)
            else:
                detail = f"{label_of(hit.item)} is like what {hit.source} gave; the list of tools "
                detail += "stays as it is until the next question"
                left.append(LeftOut(what=hit.item, reason="ranked_lower", detail=detail))
        both = replace(guide_choice, items=guide_choice.items + tool_choice.items)
        costs = {item: self._cost(attachment.item) for item, attachment in found.items()}
        room = self._room_left() - sum(self._assembler.count_text(text) for _, text in results)
        kept, too_large = take_while_room(both, room, lambda hit: costs.get(hit.item, 0))
        return Attachments(
            attachments=tuple(found[hit.item] for hit in kept.items if hit.item in found),
            left_out=(*left, *too_large),
            warnings=(*findings, *guide_choice.warnings, *tool_choice.warnings),
        )

    def _callable(
        self, tools: Sequence[OfferedTool], attached: Sequence[Attachment]
    ) -> frozenset[ItemId]:
        """Return the tools that the current turn can already call."""
        names = {tool.name for tool in self._page.state.envelope.tool_list}
        described = {attachment.item.id for attachment in attached}
        described |= {t.id for t in tools if is_loaded(t, self._page.state)}
        return frozenset(t.id for t in tools if t.definition.name in names or t.id in described)

    def _add_mentioned(self, guides: Guides, attached: set[ItemId]) -> list[LeftOut]:
        """Add the items named in the question to the session; return those that do not exist."""
        page = self._page
        include = {guide.id: guide.include for guide in guides.guides}
        missing: list[LeftOut] = []
        for item in self._selector.mentions(self._question, guides):
            if item in attached:
                continue
            if item not in include:
                if page.state.library.members.get(item) != "manual":
                    detail = str(missing_member_error(item, guides.guides))
                    missing.append(LeftOut(what=item, reason="missing", detail=detail))
            elif not is_included(item, include[item], page.state.library.members):
                page.write(IncludeEntry, item=item, membership=membership_added(include[item]))
                # A person wrote it: it applies, however often the request has to be tried.
                page.began_at = page.state.leaf
        return missing
