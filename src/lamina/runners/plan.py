"""A plan, one batch of tools, one answer.

Laws: a plan is made once and never asked again; what of it is wrong is told and not run. What the
tools gave stands in the question's own message, one wrapper for each tool, uncached and gone with
the next turn. Without a plan the question is answered all the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from lamina.assembly.inclusion import sort_by_include
from lamina.codec import mend_text
from lamina.errors import LaminaError, WindowExceeded
from lamina.ports import Approver, Providers, SessionKeeper, ToolHost
from lamina.runners.answer import Answer, CitedSource
from lamina.runners.batch import Batch, FinishedCall, render_done
from lamina.runners.call_planner import MOST_CALLS, CallPlanner, PlannedCalls, plan_key
from lamina.runners.caller import CheckedCall, check_call
from lamina.runners.citations import (
    SEARCHED,
    list_sources,
    record_search,
    recorded_sources,
    render_hits,
    with_citations,
)
from lamina.runners.composer import with_composer
from lamina.runners.runner import SUPERSEDED, AgentRunner
from lamina.runners.search_tool import OFFERED, SearchTools
from lamina.runners.text_room import TextRoom, prepare_smaller, say_without_room
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable, Attachments
from lamina.sources.note_hits import merge_found
from lamina.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.values.entry import PROBLEM
from lamina.values.event import UsageReported, WarningIssued
from lamina.values.message import ToolCall, ToolResult, ToolText
from lamina.values.note import NoteSearchResult, Scope
from lamina.values.settings import Target
from lamina.values.tool import OfferedTool

# Entries of the journal: what was planned, before it is run; and what was run for a request.
PLAN = "lamina.plan"
PLANNED = "lamina.planned"
FINAL = "The call was not run: the tools of this question are done; answer with what they gave."


class PlanRunner(AgentRunner):
    """Asks which tools to run, runs them together, and asks for the answer. With a `search`, the
    notes in `scope` can be searched, too, and the answer has its sources. A tool that needs a
    person's word is run only if there is an `approver`; without one its call is denied, and the
    model is told so. What is said meanwhile (`send_message`) comes after the answer."""

    def __init__(
        self,
        session: Session,
        providers: Providers,
        tools: ToolHost,
        *,
        search: WorkspaceSearch | None = None,
        scope: Scope = EVERYWHERE,
        top: int = TOP,
        approver: Approver | None = None,
    ) -> None:
        super().__init__(session, providers, tools, approver=approver)
        self._planner = CallPlanner(session, providers)
        self._searching = SearchTools(search, scope=scope, top=top) if search else None
        self._found: NoteSearchResult | None = None
        self._sources: tuple[CitedSource, ...] | None = None
        # What is to be noted of a request, also of one that had to be made anew.
        self._notes: dict[str, dict[str, Any]] = {}

    async def close(self) -> None:
        """Closes the session, and lets go of what is kept for its plans."""
        if isinstance(self._providers, SessionKeeper):
            await self._providers.release_session(plan_key(self.session))
        await super().close()

    # -- inside ----------------------------------------------------------------------------------

    async def _take_up(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        await self.session.give_up(SUPERSEDED)
        self._found, self._sources, self._notes = None, None, {}
        hydrated = await self.session.turns.read_attachments(with_composer(text, attach))
        done = await self._run_plan(text, hydrated, self.session.target(target))
        return await self._ask(text, target, hydrated, done)

    async def _take_up_next(self, text: str) -> Turn:
        return await self._take_up(text, (), None)

    async def _take_again(self) -> Turn:
        turn = await super()._take_again()
        self._found, self._notes = None, {}
        self._sources = recorded_sources(self.session, turn)
        return turn

    async def _work(self, turn: Turn) -> Answer:
        if turn.pending:
            # An agent's turn that was left in the middle.
            return await super()._work(turn)
        turn = await self._answer(turn)
        while said := self._steering or self._following:
            turn = await self._answer(await self._take_up_said(said))
        answer = self._ended("called" if turn.pending else "answered", turn)
        if self._sources is None:
            return answer
        answer = replace(answer, found=self._found)
        return await with_citations(answer, self._sources, self._emit)

    async def _answer(self, turn: Turn) -> Turn:
        """Sends a question whose tools are done. A list of tools that stands from other turns is
        not taken away for it, so that the prefix stays; calls are refused once, in words."""
        turn = await self._send(turn) if turn.message is None else turn
        if not turn.pending:
            return turn
        names = ", ".join(call.name for call in turn.pending)
        await self._emit(WarningIssued(text=f"the answer called {names}, which was not run"))
        refused = [
            ToolResult(call_id=call.id, name=call.name, text=FINAL, is_error=True)
            for call in turn.pending
        ]
        try:
            turn = await self._send(await turn.resume(refused))
        except WindowExceeded as error:
            await self._emit(WarningIssued(text=f"there is no room to ask again: {error}"))
        if turn.pending:
            await self.session.give_up(FINAL)
        return turn

    async def _send(self, turn: Turn) -> Turn:
        sent = await super()._send(turn)
        if sent.id != turn.id:
            # It was too long and made anew; what it rests on is the same.
            await self._note_request(sent.id)
        return sent

    # -- the plan --------------------------------------------------------------------------------

    async def _run_plan(
        self, text: str, hydrated: Attachments, target: Target
    ) -> Sequence[FinishedCall]:
        """Makes a plan and runs it; what came of its calls."""
        offered = await self._offer(text, target)
        plan = await self._make_plan(text, hydrated, offered, target) if offered else None
        if plan is None:
            return ()
        calls, refused = check_plan(plan.calls, offered)
        record = {
            "target": target.name,
            "calls": [_described(call.meant) for call in calls],
            "refused": [_described(call) | {"why": why} for call, why in refused],
            "usage": msgspec.to_builtins(plan.usage),
            "cost": plan.cost,
            "prompt": plan.prompt,
        }
        # Before anything runs: what a tool does may stand, whatever happens here.
        await self.session.note(PLAN, record)
        for call, why in refused:
            await self._emit(WarningIssued(text=f"planned and not run: {call.name}: {why}"))
        batch = Batch(self.session, self._tools, self._searching, self._approver, self._emit)
        try:
            await batch.run(calls)
        except BaseException:
            # Stopped, or nobody could be asked: what ran until then is written down.
            with anyio.CancelScope(shield=True):
                await self.session.note(PLANNED, _record_done("", batch.done))
            raise
        return batch.done

    async def _offer(self, text: str, target: Target) -> dict[str, OfferedTool]:
        """The tools that a plan may call: those that are in, those chosen for the question, and the
        search."""
        await self._list_tools()
        # The answer calls nothing; the list that stands is left as it is.
        self._toolset = None
        state = self.session.state
        roll = sort_by_include(tuple(self._offered.values()), state.members, "tool")
        chosen = await self.session.turns.selector.choose_tools(state, text, roll)
        for warning in chosen.warnings:
            await self._emit(WarningIssued(text=warning))
        wanted = {item.item for item in chosen.items}
        every = state.settings.tool_policy == "all"
        found = [*roll.present, *(tool for tool in roll.agent if every or tool.id in wanted)]
        if self._searching is not None and state.members.get(OFFERED.id) != "removed":
            found.insert(0, OFFERED)
        offered: dict[str, OfferedTool] = {}
        for tool in found:
            offered.setdefault(tool.definition.name, tool)
        if target.max_tools and len(offered) > target.max_tools:
            over = len(offered) - target.max_tools
            await self._emit(
                WarningIssued(text=f"{over} tools are too many for a plan, and left out")
            )
            offered = dict(list(offered.items())[: target.max_tools])
        return offered

    async def _make_plan(
        self, text: str, hydrated: Attachments, offered: Mapping[str, OfferedTool], target: Target
    ) -> PlannedCalls | None:
        """The plan; None if there is none, which is told and costs only its tools."""
        definitions = [tool.definition for tool in offered.values()]
        try:
            plan = await self._planner.plan(text, hydrated, definitions, target)
        except LaminaError as error:
            self._tally.requests += not isinstance(error, WindowExceeded)
            problem = mend_text(str(error))
            await self.session.note(PROBLEM, {"where": "plan", "problem": problem})
            await self._emit(WarningIssued(text=f"planning failed, so no tools are run: {problem}"))
            return None
        self._tally.requests += 1
        await self._emit(UsageReported(request="plan", usage=plan.usage, cost=plan.cost))
        return plan

    # -- the answer ------------------------------------------------------------------------------

    async def _ask(
        self, text: str, target: str | None, hydrated: Attachments, done: Sequence[FinishedCall]
    ) -> Turn:
        """Prepares the question with what tools gave, as far as there is room for it."""
        founds = [call.found for call in done if call.found is not None]
        found = merge_found(founds) if founds else None
        for warning in found.warnings if found else ():
            await self._emit(WarningIssued(text=warning))
        others = render_done(done)
        room = TextRoom(self.session, target, text, hydrated)
        hits = found.hits if found else ()
        # Searches and other tools share the room; what one leaves is the other's.
        spare = max(room.tokens // 2, room.tokens - room.cost(others)) if others else room.tokens
        shown = room.take_hits(hits, spare)
        block = (render_hits(shown),) if found and (shown or not hits) else ()
        others, told = room.shorten(others, room.tokens - room.cost(block))
        for each in told:
            await self._emit(WarningIssued(text=each))
        texts = (*block, *others)

        async def prepare(kept: tuple[ToolText, ...]) -> Turn:
            return await self._prepare(text, (), target, kept, hydrated)

        turn, kept = await prepare_smaller(prepare, texts)
        if kept < len(texts):
            names = ", ".join(text.name for text in texts[kept:])
            await self._emit(WarningIssued(text=f"there is no room for what these gave: {names}"))
        if found is not None:
            shown = shown if kept else ()
            if len(shown) < len(hits):
                await self._emit(WarningIssued(text=say_without_room(len(hits), len(shown))))
            self._found = replace(found, hits=shown, without_room=len(hits) - len(shown))
            self._sources = list_sources(shown)
            scope = self._searching.scope if self._searching else EVERYWHERE
            self._notes[SEARCHED] = record_search("", scope, found, shown, self._sources)
        if done:
            self._notes[PLANNED] = _record_done("", done)
        await self._note_request(turn.id)
        return turn

    async def _note_request(self, request: str) -> None:
        for kind, record in self._notes.items():
            await self.session.note(kind, record | {"request": request})


def check_plan(
    calls: Sequence[ToolCall], offered: Mapping[str, OfferedTool]
) -> tuple[tuple[CheckedCall, ...], tuple[tuple[ToolCall, str], ...]]:
    """The calls of a plan that can be run, and the others with what is wrong with them."""
    definitions = {name: tool.definition for name, tool in offered.items()}
    right: dict[tuple[str, str], CheckedCall] = {}
    wrong: list[tuple[ToolCall, str]] = []
    for call in calls:
        checked = check_call(call, definitions, offered)
        key = (checked.meant.name, checked.meant.arguments)
        if checked.tool is None:
            wrong.append((call, checked.problem))
        elif key in right:
            wrong.append((call, "the same call stands before it"))
        elif len(right) == MOST_CALLS:
            wrong.append((call, f"a plan has at most {MOST_CALLS} calls"))
        else:
            right[key] = checked
    return tuple(right.values()), tuple(wrong)


def _described(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _record_done(request: str, done: Sequence[FinishedCall]) -> dict[str, Any]:
    """What was run for a request, without its texts."""
    calls = [
        _described(call.call) | {"outcome": call.outcome, "seconds": round(call.seconds, 3)}
        for call in done
    ]
    return {"request": request, "calls": calls}
