"""Step 3 of a turn: what the selector finds is written down and becomes part of the turn."""

from msgspec import Struct
from msgspec.structs import replace

from lamina.engine.composing import stands
from lamina.engine.hydrating import Hydrated
from lamina.engine.including import call_roll, is_in, membership_added
from lamina.engine.laying import Workbench
from lamina.engine.planning import find_boundary
from lamina.engine.selecting import Selector
from lamina.engine.tooling import plan_tools
from lamina.engine.writing import Pen
from lamina.values.entry import ForgetEntry, IncludeEntry
from lamina.values.item import Attachment, key_of
from lamina.values.patch import Display, Patch, ToolsReplace
from lamina.values.request import ContextTool, LeftOut
from lamina.values.settings import Target
from lamina.values.tool import Toolset


class ChosenTools(Struct, frozen=True, kw_only=True):
    """The tools of a turn: those of the list, those described in its message, what was left."""

    tools: tuple[ContextTool, ...] = ()
    allowed: tuple[str, ...] | None = None
    described: tuple[Attachment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Choosing:
    """The choices of one turn. What they change of the session is written with the turn."""

    def __init__(
        self, selector: Selector, bench: Workbench, pen: Pen, target: Target, question: str
    ) -> None:
        self._selector = selector
        self._bench = bench
        self._pen = pen
        self._target = target
        self._question = question

    async def tools(self, toolset: Toolset | None) -> ChosenTools:
        """Changes the list of tools if it has to, and says why each of them is there."""
        pen, state = self._pen, self._pen.state
        if toolset is None:
            last = state.last_sent
            names = {each.name for each in state.envelope.tools}
            kept = last.context.tools if last else ()
            return ChosenTools(tools=tuple(each for each in kept if each.name in names))
        roll = call_roll(toolset.tools, state.members, "tool")
        chosen = await self._selector.choose_tools(state, self._question, roll)
        boundary = find_boundary(state, self._target, pen.at)
        plan = plan_tools(state, self._target, roll, chosen.items, boundary)
        if plan.definitions is not None:
            op = ToolsReplace(tools=plan.definitions, reason=plan.reason)
            pen.transform(plan.transformer, Patch(ops=(op,), display=Display(title=plan.reason)))
            for item in plan.forget:
                if item not in state.forgotten:
                    pen.write(ForgetEntry, item=item)
        missing = [
            LeftOut(what=item, reason="missing", detail=f"the tool {key_of(item)!r} is not there")
            for item in roll.missing
        ]
        lower = [
            LeftOut(
                what=each.item,
                reason="ranked_lower",
                detail=f"{key_of(each.item)}{score_of(each.score)}: others fit the question better",
            )
            for each in chosen.next_best
        ]
        return ChosenTools(
            tools=plan.tools,
            allowed=plan.allowed,
            described=plan.described,
            left_out=(*missing, *lower),
            warnings=(*chosen.warnings, *plan.warnings),
        )

    async def guides(self, found: Hydrated, tools: ChosenTools) -> Hydrated:
        """What is attached, with the rules, references and descriptions of tools that apply."""
        pen, selector = self._pen, self._selector
        guides = await selector.guides()
        include = {each.id: each.include for each in guides.guides}
        for item in selector.mentions(self._question, guides):
            if not is_in(item, include.get(item, "manual"), pen.state.members):
                said = membership_added(include.get(item, "manual"))
                pen.write(IncludeEntry, item=item, membership=said)
        state = pen.state
        assembler = self._bench.assembler_for(self._target, state.settings.promotion)

        def room(attachment: Attachment) -> int:
            item = attachment.item
            return 0 if stands(state, item) else assembler.item_tokens(item)

        weighed = await selector.weigh(self._question, found.attachments, state)
        left = 0
        if guides.guides:
            end = len(state.envelope.cached)
            standing = assembler.assemble(state.envelope, state.items, end).tokens
            left = self._bench.room(self._target, state).limit - standing
            left -= assembler.count_text(self._question) + sum(map(room, weighed))
        guidance = await selector.guide(state, self._question, weighed, guides, room, left)
        return Hydrated(
            attachments=(*weighed, *guidance.attachments, *tools.described),
            left_out=(*found.left_out, *guidance.left_out, *tools.left_out),
            warnings=(*found.warnings, *guidance.warnings, *tools.warnings),
        )


def score_of(score: float | None) -> str:
    return f" ({score:.2f})" if score is not None else ""


__all__ = ["ChosenTools", "Choosing", "replace"]
