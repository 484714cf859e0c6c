"""Answers a question with a plan: one batch of tools, then one answer.

Laws: a plan with invalid calls is requested once more, with the problems, and never again; invalid
calls are reported and not run. Calls run together, and an error in one becomes its result. A call
that needs a person's approval runs only if a person can be asked: there is no answer yet in which
it could wait.

Tool results are placed in the question's own message, one wrapper for each search and each other
tool, uncached and absent from the next turn. The question is answered even without a plan.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import anyio
import msgspec
from msgspec import Struct

from lamina.core.assembly.inclusion import is_removed, sort_tools
from lamina.core.assembly.tool_offer import is_small_pool
from lamina.core.codec import mend_text
from lamina.core.layers.layout import wording_in
from lamina.core.ports import Approver, ToolHost
from lamina.core.text.wording import Wording
from lamina.core.values.entry import PLAN, PLANNED, PROBLEM
from lamina.core.values.event import ToolFinished, ToolStarted, UsageReported
from lamina.core.values.message import ToolCall, ToolDefinition, ToolResult, ToolText
from lamina.core.values.settings import Target
from lamina.core.values.tool import DENIED, OfferedTool
from lamina.engine.runners.agent import AgentMode, ToolList
from lamina.engine.runners.answer import Answer, PlanPreview
from lamina.engine.runners.approvals import ask_person, needs_decision
from lamina.engine.runners.call_planner import (
    MAX_CALLS,
    CallPlanner,
    PlannedCalls,
    describe_problems,
)
from lamina.engine.runners.caller import (
    REMOVED,
    CheckedCall,
    check_call,
)
from lamina.engine.runners.citations import (
    LOCAL_SEARCH,
    SearchOutput,
    recorded_sources,
    render_searches,
)
from lamina.engine.runners.composer import with_composer
from lamina.engine.runners.mode import RunContext, RunMode
from lamina.engine.runners.note_search_tool import OFFERED, SearchTools
from lamina.engine.runners.text_room import TextRoom, prepare_smaller
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.session_ports import Emit
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable, Attachments
from lamina.engine.sources.note_search import EVERYWHERE
from lamina.engine.task_groups import patient_group
from lamina.errors import LaminaError, SpendError, UsageError, WindowExceeded

Outcome = Literal["ran", "failed", "denied", "stopped"]


class FinishedCall(Struct, frozen=True, kw_only=True):
    """The outcome of a call; `whole` is the full text of a cut one. `search` is the result of a
    search, which has a separate block.
    """

    call: ToolCall
    outcome: Outcome
    text: str
    whole: str = ""
    seconds: float = 0.0
    search: SearchOutput | None = None


class Batch:
    """The calls of one plan. `search` answers calls to the tool of the same name, the host runs the
    others.
    """

    def __init__(
        self,
        session: Session,
        host: ToolHost,
        search: SearchTools | None,
        approver: Approver | None,
        emit: Emit,
    ) -> None:
        self._session = session
        self._host = host
        self._search = search
        self._approver = approver
        self._emit = emit
        self._outcomes: dict[str, FinishedCall] = {}

    @property
    def outcomes(self) -> tuple[FinishedCall, ...]:
        """The outcomes so far, in the order of the calls."""
        return tuple(self._outcomes[call] for call in sorted(self._outcomes, key=_number))

    async def run(self, calls: Sequence[CheckedCall]) -> None:
        policy = self._session.settings.ask_before_tools
        allowances = self._session.state.allowed
        open_calls = [call for call in calls if needs_decision(call.tool, policy, allowances)]
        async with patient_group() as group:
            for call in calls:
                if call not in open_calls:
                    group.start_soon(self._call, call)
            for call in open_calls:
                if await self._may_run(call):
                    group.start_soon(self._call, call)

    async def _may_run(self, checked: CheckedCall) -> bool:
        session, approver, emit = self._session, self._approver, self._emit
        if approver:
            decision = await ask_person(session, approver, checked.waiting, emit, planned=True)
            if decision != "deny":
                return True
        problem = DENIED if approver else wording_in(session.state).call_unapproved
        await self._keep(FinishedCall(call=checked.intended, outcome="denied", text=problem))
        return False

    async def _call(self, checked: CheckedCall) -> None:
        call = checked.intended
        await self._emit(ToolStarted(call=call, label=checked.tool.label))
        began = anyio.current_time()
        text = wording_in(self._session.state).call_cut_short
        self._outcomes[call.id] = FinishedCall(call=call, outcome="stopped", text=text)
        if self._search is not None and call.name == LOCAL_SEARCH:
            secrets = self._session.settings.secrets
            output = await self._search.search(checked.arguments, secrets)
        else:
            output = await self._host.call(call.name, checked.arguments)
        text, whole = core_of(self._session).turns.results.screen_cut(
            call.name, mend_text(output.text), output.whole
        )
        await self._keep(
            FinishedCall(
                call=call,
                outcome="failed" if output.is_error else "ran",
                text=text,
                whole=whole,
                seconds=anyio.current_time() - began,
                search=output if isinstance(output, SearchOutput) else None,
            )
        )

    async def _keep(self, outcome: FinishedCall) -> None:
        call, is_error = outcome.call, outcome.outcome != "ran"
        self._outcomes[call.id] = outcome
        result = ToolResult(call_id=call.id, name=call.name, text=outcome.text, is_error=is_error)
        await self._emit(ToolFinished(result=result, seconds=outcome.seconds))


def _number(call_id: str) -> int:
    return int(call_id.rpartition("-")[2])


def searches_of(calls: Sequence[FinishedCall]) -> tuple[SearchOutput, ...]:
    """Return the search results: those of the notes, then the others."""
    outputs = [call.search for call in calls if call.search]
    return tuple(sorted(outputs, key=lambda output: output.name != LOCAL_SEARCH))


def render_done(calls: Sequence[FinishedCall]) -> tuple[ToolText, ...]:
    """Return the tool results, one text for each tool, with the arguments of each call; searches
    have separate blocks.
    """
    texts: dict[str, list[str]] = {}
    for call in calls:
        if call.search is None:
            text = f"Error: {call.text}" if call.outcome in ("failed", "stopped") else call.text
            arguments = " ".join(call.call.arguments.split())
            head = f"Arguments: {arguments}\n" if arguments.strip("{} ") else ""
            texts.setdefault(call.call.name, []).append(f"{head}{text}")
    return tuple(ToolText(name=name, text="\n\n".join(parts)) for name, parts in texts.items())


class PlanMode(RunMode):
    """A planned question: asks which tools to run, runs them together, and asks for the answer.
    Messages sent in the meantime come after it.
    """

    def __init__(
        self,
        run: RunContext,
        tools: ToolList,
        *,
        search: SearchTools | None = None,
        approver: Approver | None = None,
    ) -> None:
        super().__init__(run)
        self._tools = tools
        self._search = search
        self._approver = approver
        self._planner = CallPlanner(run.session, run.providers)
        self._agent = AgentMode(run, tools, approver=approver, follow=self._ask)
        # Whether it continues an agent's unfinished turn.
        self._as_agent = False

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        self._as_agent = False
        return await self._ask(text, attach, target)

    async def resume(self) -> Turn:
        turn = await self._agent.resume()
        self._as_agent = bool(turn.pending_calls)
        self._take_sources(turn)
        return turn

    async def ask_again(self, answer: str | None) -> Turn:
        turn = await self._agent.ask_again(answer)
        # An agent's answer is requested with its tools, which it may call.
        self._as_agent = turn.context.allowed_tools != () and bool(turn.context.tools)
        self._take_sources(turn)
        return turn

    def _take_sources(self, turn: Turn) -> None:
        sources = recorded_sources(self._run.session, turn)
        if sources is not None or not self._as_agent:
            self._run.sources = sources

    async def after(self, turn: Turn) -> Turn | Answer:
        if self._as_agent:
            return await self._agent.after(turn)
        if turn.pending_calls:
            turn = await self._refuse_calls(turn)
        if (following := await self._run.inbox.take(self._ask)) is not None:
            return following
        return await self._run.answer(turn)

    async def preview(
        self, text: str, attach: Iterable[Attachable], target: str | None
    ) -> PlanPreview:
        session = self._run.session
        planner = session.target(target)
        attachments = await self._run.core.turns.read_attachments(with_composer(text, attach))
        by_name = await self._offer(text, planner)
        tools = [tool.definition for tool in by_name.values()]
        request = self._planner.request(text, attachments, tools, planner)
        return PlanPreview(
            target=planner,
            prompt=request.prompt,
            body=self._run.core.layouts.book.wire(planner).encode(request),
            left_out=attachments.left_out,
            warnings=(*attachments.warnings, *self._run.tally.warnings),
            cost_range=self._planner.price(request).range,
        )

    async def _ask(
        self, text: str, attach: Iterable[Attachable] = (), target: str | None = None
    ) -> Turn:
        """Make a plan, run it, and prepare the question with the tool results."""
        session, target = self._run.session, target or self._run.target
        await self._run.supersede_calls()
        self._run.start_question()
        attachments = await self._run.core.turns.read_attachments(with_composer(text, attach))
        calls = await self._run_plan(text, attachments, session.target(target))
        return await self._prepare(text, target, attachments, calls)

    async def _refuse_calls(self, turn: Turn) -> Turn:
        """Ask once more for an answer without calls: the tools for this question have already run.
        The list of tools stays as it is, so that the prefix stays unchanged.
        """
        run = self._run
        names = ", ".join(call.name for call in turn.pending_calls)
        await run.warn(f"the answer called {names}, which was not run")
        final = wording_in(run.session.state).calls_over
        refusals = [
            ToolResult(call_id=call.id, name=call.name, text=final, is_error=True)
            for call in turn.pending_calls
        ]
        try:
            turn = await run.send(await turn.resume(refusals))
        except WindowExceeded as error:
            await run.warn(f"there is no room to ask again: {error}")
        if turn.pending_calls:
            await run.session.abandon_turn(final)
        return turn

    # -- the plan --------------------------------------------------------------------------------

    async def _run_plan(
        self, text: str, attachments: Attachments, target: Target
    ) -> Sequence[FinishedCall]:
        """Make a plan and run its calls; return the finished calls."""
        run = self._run
        by_name = await self._offer(text, target)
        calls = await self._plan_calls(text, attachments, by_name, target) if by_name else ()
        if not calls:
            return ()
        batch = Batch(run.session, self._tools.host, self._search, self._approver, run.emit)
        try:
            await batch.run(calls)
        except BaseException:
            # Stopped, or no approver could be asked: the calls that ran until then are recorded.
            with anyio.CancelScope(shield=True):
                await run.session.add_custom_entry(
                    PLANNED, await self._record_calls(batch.outcomes)
                )
            raise
        return batch.outcomes

    async def _plan_calls(
        self,
        text: str,
        attachments: Attachments,
        by_name: Mapping[str, OfferedTool],
        target: Target,
    ) -> tuple[CheckedCall, ...]:
        """Return the calls to run. A plan with invalid calls is requested once more."""
        run = self._run
        tools = [tool.definition for tool in by_name.values()]
        calls: tuple[CheckedCall, ...] = ()
        problems = ""
        for is_last in (False, True):
            plan = await self._make_plan(text, attachments, tools, target, problems)
            if plan is None:
                break
            checked = check_plan(
                plan.calls, by_name, run.session.state.withdrawn,
                earlier=calls, check_search=self._check_search,
                words=wording_in(run.session.state),
            )  # fmt: skip
            calls += checked.right
            record = {
                "target": target.name,
                "calls": [_describe(call.intended) for call in checked.right],
                "refused": [_describe(call) | {"why": why} for call, why in checked.wrong],
                "usage": msgspec.to_builtins(plan.usage),
                "cost": plan.cost,
                "prompt": plan.prompt,
            }
            # Before anything runs: a tool's effects may last, whatever happens here.
            await run.session.add_custom_entry(PLAN, record)
            again = "" if is_last or not checked.unclear else "; the plan is asked for again"
            for call, why in checked.wrong:
                await run.warn(f"planned and not run: {call.name}: {why}{again}")
            if not checked.unclear:
                break
            problems = describe_problems(
                checked.unclear, [call.intended for call in calls], wording_in(run.session.state)
            )
        return calls

    def _check_search(self, call: CheckedCall) -> str:
        """Return the problem with a note search, apart from schema errors."""
        if self._search is None or call.tool.id != OFFERED.id:
            return ""
        try:
            self._search.read_scope(call.arguments)
        except UsageError as error:
            return str(error)
        return ""

    async def _offer(self, text: str, target: Target) -> dict[str, OfferedTool]:
        """Return the tools that a plan may call: those in the session, those chosen for the
        question, and the search.
        """
        run = self._run
        await self._tools.refresh()
        state = run.session.state
        roll = sort_tools(state, tuple(self._tools.by_name.values()))
        core, settings = run.core, state.settings
        count = core.layouts.assembler_for(target, settings.promotion).definition_tokens
        tools = [*roll.present, *roll.agent]
        pool = [tool.definition for tool in roll.agent]
        if settings.tool_policy != "all" and not is_small_pool(pool, settings, count, target):
            choice = await core.turns.tools.selector.choose_tools(state, text, roll)
            await run.warn(*choice.warnings)
            chosen_ids = {item.item for item in choice.items}
            tools = [*roll.present, *(tool for tool in roll.agent if tool.id in chosen_ids)]
        if self._search is not None and not is_removed(state, OFFERED):
            tools.insert(0, OFFERED)
        by_name: dict[str, OfferedTool] = {}
        for tool in tools:
            by_name.setdefault(tool.definition.name, tool)
        if target.max_tools and len(by_name) > target.max_tools:
            over = len(by_name) - target.max_tools
            await run.warn(f"{over} tools are too many for a plan, and left out")
            by_name = dict(list(by_name.items())[: target.max_tools])
        return by_name

    async def _make_plan(
        self,
        text: str,
        attachments: Attachments,
        tools: Sequence[ToolDefinition],
        target: Target,
        problems: str,
    ) -> PlannedCalls | None:
        """Return the plan; None, with a warning, if it failed: then the question is asked without
        tools.
        """
        run = self._run
        try:
            plan = await self._planner.plan(text, attachments, tools, target, problems)
        except SpendError:
            raise  # the question itself would cost more
        except LaminaError as error:
            run.tally.requests += not isinstance(error, WindowExceeded)
            problem = mend_text(str(error))
            await run.session.add_custom_entry(PROBLEM, {"where": "plan", "problem": problem})
            outcome = (
                "planning again failed" if problems else "planning failed, so no tools are run"
            )
            await run.warn(f"{outcome}: {problem}")
            return None
        run.tally.requests += 1
        await run.emit(UsageReported(request="plan", usage=plan.usage, cost=plan.cost))
        return plan

    # -- the answer ------------------------------------------------------------------------------

    async def _prepare(
        self, text: str, target: str | None, attachments: Attachments, calls: Sequence[FinishedCall]
    ) -> Turn:
        """Prepare the question with as many tool results as there is room for."""
        run = self._run
        searches, done = searches_of(calls), render_done(calls)
        warnings = (line for output in searches for line in output.result.warnings)
        await run.warn(*dict.fromkeys(warnings))
        room = TextRoom(run.session, target, text, attachments)
        # Searches and other tools share the room; one uses what the other leaves.
        spare = max(room.tokens // 2, room.tokens - room.cost(done)) if done else room.tokens
        shown = room.take_searches(searches, spare)
        blocks, _ = render_searches(shown)
        shorter, cut = room.shorten(done, room.tokens - room.cost(blocks))
        await run.warn(*cut)
        cut_names = {text.name for text in done if text not in shorter}
        record = await self._record_calls(calls, cut_names)
        texts = (*blocks, *shorter)

        async def prepare(some: tuple[ToolText, ...]) -> Turn:
            return await run.prepare(
                text, (), target, tool_texts=some, attachments=attachments, answer_only=True
            )

        turn, count = await prepare_smaller(prepare, texts)
        if count < len(texts):
            names = ", ".join(dict.fromkeys(text.name for text in texts[count:]))
            await run.warn(f"there is no room for what these gave: {names}")
            cut_names |= {text.name for text in texts[count:]}
            record = await self._record_calls(calls, cut_names)
        if searches:
            scope = self._search.scope if self._search else EVERYWHERE
            await run.rest_on_searches(searches, shown[:count], scope)
        if calls:
            run.notes[PLANNED] = record
        await run.note_request(turn.id)
        return turn

    async def _record_calls(
        self, calls: Sequence[FinishedCall], cut_names: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return a record of the calls run for a request, which is named later, without the texts:
        cut texts, and those of tools in `cut_names`, are stored in full beside the journal.
        """
        records = [
            _describe(call.call) | {"outcome": call.outcome, "seconds": round(call.seconds, 3)}
            for call in calls
        ]
        for call, record in zip(calls, records, strict=True):
            if call.search is None and (call.whole or call.call.name in cut_names):
                keep = self._run.core.turns.results.keep_whole
                record["whole"] = await keep(call.whole or call.text)
        return {"request": "", "calls": records}


class CheckedPlan(Struct, frozen=True, kw_only=True):
    """The planned calls that can be run, and the others, each with its problem; among the latter,
    those that another try could fix.
    """

    right: tuple[CheckedCall, ...]
    wrong: tuple[tuple[ToolCall, str], ...]
    unclear: tuple[tuple[ToolCall, str], ...]


def check_plan(
    calls: Sequence[ToolCall],
    by_name: Mapping[str, OfferedTool],
    removed: Collection[str] = (),
    *,
    earlier: Sequence[CheckedCall] = (),
    check_search: Callable[[CheckedCall], str] = lambda _: "",
    words: Wording,
) -> CheckedPlan:
    """Sort the calls of a plan, which follow `earlier` ones; `check_search` returns what is wrong
    with a search.
    """
    definitions = {name: tool.definition for name, tool in by_name.items()}
    there = {(call.intended.name, call.intended.arguments) for call in earlier}
    right: list[CheckedCall] = []
    wrong: list[tuple[ToolCall, str]] = []
    unclear: list[tuple[ToolCall, str]] = []
    for call in calls:
        checked = check_call(call, definitions, by_name, removed, words=words)
        problem = checked if isinstance(checked, str) else check_search(checked)
        if isinstance(checked, str) or problem:
            wrong.append((call, problem))
            unclear += [(call, problem)] if problem != REMOVED else []
        elif (key := (checked.intended.name, checked.intended.arguments)) in there:
            wrong.append((call, "the same call stands before it"))
        elif len(there) == MAX_CALLS:
            wrong.append((call, f"a plan has at most {MAX_CALLS} calls"))
        else:
            there.add(key)
            right.append(checked)
    return CheckedPlan(right=tuple(right), wrong=tuple(wrong), unclear=tuple(unclear))


def _describe(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
