"""Runners: a question in, events while it is worked on, an answer out.

Laws: a runner adds nothing to the context that is not in the journal; it can be stopped at any
moment and gone on with later. A `ChatRunner` asks once. An `AgentRunner` runs the tools that the
model calls and asks again, until it answers or its requests are used up.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Literal, Self

import anyio

from lamina.assembly.tools import intended_call
from lamina.errors import TurnStateError, UsageError
from lamina.ports import Approver, Providers, SessionKeeper, ToolHost
from lamina.runners.answer import Answer, CitedSource, Tally
from lamina.runners.caller import Caller, WaitingCall
from lamina.runners.composer import with_composer
from lamina.runners.error_groups import single_errors
from lamina.runners.search_tool import QuestionReminder
from lamina.runners.sender import Emit, Sender
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable, Attachments
from lamina.values.event import ApprovalDecided, Ending, Event, TurnEnded, WarningIssued
from lamina.values.message import ToolResult, ToolText
from lamina.values.tool import Decision, OfferedTool, Toolset

MAX_REQUESTS = 20
STOPPED = "The call was not run: the person stopped the turn."
SUPERSEDED = "The call was not run: the person said something else instead."
Delivery = Literal["steer", "follow_up"]
Listener = Callable[[Event], Awaitable[None] | None]


class ChatRunner:
    """Asks a model, once per question. Tools that the session offers are not run: their calls are
    in `answer.turn.pending`, for whoever knows what to do with them."""

    def __init__(self, session: Session, providers: Providers) -> None:
        self.session = session
        self._providers = providers
        self._sender = Sender(session, providers)
        self._scope: anyio.CancelScope | None = None
        self._tally = Tally()
        self._listener: Listener | None = None
        self._toolset: Toolset | None = None
        # What else is to be closed, behind the session.
        self.closing: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the session."""
        try:
            if isinstance(self._providers, SessionKeeper):
                await self._providers.release_session(self.session.id)
        finally:
            await self.session.close()
            for close in self.closing:
                await close()

    async def toolset(self) -> Toolset:
        """What can be called now, and what is withheld and why; nothing, where no tools are run."""
        return Toolset()

    @property
    def running(self) -> bool:
        return self._scope is not None

    def abort(self) -> bool:
        """Stops the turn under way; what came of its answer is kept. False if there is none."""
        if self._scope is None:
            return False
        self._scope.cancel()
        return True

    async def run(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        on_event: Listener | None = None,
    ) -> Answer:
        """Asks, and gives the answer. `on_event` is told what happens meanwhile.

        Raises:
            ProviderError: there is no answer; `go_on` tries again.
            BudgetError, PrefixMoved, HookError: as `Session.prepare`.
        """
        return await self._guarded(lambda: self._take_up(text, attach, target), on_event)

    async def go_on(self, *, on_event: Listener | None = None) -> Answer:
        """Goes on with a turn that was left in the middle: sends its request again, or takes up
        the calls that wait.

        Raises:
            TurnState: the last turn is complete.
        """
        return await self._guarded(self._take_again, on_event)

    @asynccontextmanager
    async def stream(
        self,
        text: str | None,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """The events of a turn, to be read while it runs: `async with runner.stream("...") as
        events: async for event in events`. Without a text it goes on where the last turn was left.
        Leaving the block stops the turn; what went wrong with it is raised then."""
        send, receive = anyio.create_memory_object_stream[Event](64)
        failed: list[Exception] = []

        async def tell(event: Event) -> None:
            # Nobody reads any more: the turn is about to be stopped.
            with suppress(anyio.BrokenResourceError):
                await send.send(event)

        async def work() -> None:
            async with send:
                try:
                    if text is None:
                        await self.go_on(on_event=tell)
                    else:
                        await self.run(text, attach=attach, target=target, on_event=tell)
                except Exception as error:  # noqa: BLE001 - raised when the events are read
                    failed.append(error)

        with single_errors():
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                async with receive:
                    yield receive
                group.cancel_scope.cancel()
        if failed:
            raise failed[0]

    # -- inside ----------------------------------------------------------------------------------

    async def _guarded(
        self, begin: Callable[[], Awaitable[Turn]], on_event: Listener | None
    ) -> Answer:
        """Runs a turn in a scope of its own, so that it can be stopped without its caller."""
        if self._scope is not None:
            raise TurnStateError("a turn is under way: wait for it, or abort it")
        self._listener = on_event
        self._tally = Tally()
        answer: Answer | None = None
        try:
            with anyio.CancelScope() as self._scope:
                answer = await self._work(await begin())
        finally:
            self._scope = self._listener = None
        if answer is None:
            answer = self._ended("aborted", self._tally.turn)
        ended = TurnEnded(ending=answer.ending, answer=answer.text, requests=answer.requests)
        await _tell(on_event, ended)
        return answer

    async def _take_up(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        return await self._prepare(text, with_composer(text, attach), target)

    async def _prepare(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        tool_texts: tuple[ToolText, ...] = (),
        hydrated: Attachments | None = None,
    ) -> Turn:
        await self.session.give_up(SUPERSEDED)
        return await self.session.turns.prepare(
            text, attach, target, tool_texts,
            starting=True, toolset=self._toolset, attachments=hydrated,
        )  # fmt: skip

    async def _take_again(self) -> Turn:
        turn = await self.session.current_turn()
        if turn is None:
            raise TurnStateError("the last turn is complete: there is nothing to go on with")
        return turn

    async def _work(self, turn: Turn) -> Answer:
        if turn.message is None:
            turn = await self._send(turn)
        return self._ended("called" if turn.pending else "answered", turn)

    async def _send(self, turn: Turn) -> Turn:
        self._tally.requests += 1
        self._tally.turn = turn
        self._tally.turn = turn = await self._sender.send(turn, self._emit)
        return turn

    async def _emit(self, event: Event) -> None:
        self._tally.note(event)
        await _tell(self._listener, event)

    def _ended(
        self, ending: Ending, turn: Turn | None, waiting: Sequence[WaitingCall] = ()
    ) -> Answer:
        tally = self._tally
        text = turn.answer if turn else ""
        if ending == "aborted" and turn:
            text = self._kept_text()
        return Answer(
            ending=ending,
            text=text,
            turn=turn,
            requests=tally.requests,
            usage=tally.usage,
            cost=tally.cost,
            waiting=tuple(waiting),
            warnings=tuple(tally.warnings),
        )

    def _kept_text(self) -> str:
        """What was kept of an answer that was stopped."""
        cached = self.session.envelope.cached
        if self.session.interrupted or not len(cached) or cached[-1].role != "assistant":
            return ""
        return cached[-1].text


class AgentRunner(ChatRunner):
    """Asks a model, runs the tools it calls, and asks again. Use it in `async with`, which opens
    tools that have to be opened, and closes them with the session."""

    def __init__(
        self,
        session: Session,
        providers: Providers,
        tools: ToolHost,
        *,
        approver: Approver | None = None,
        max_requests: int = MAX_REQUESTS,
    ) -> None:
        super().__init__(session, providers)
        session.turns.list_tools = tools.toolset
        if max_requests < 1:
            raise UsageError(f"an agent needs at least one request, not {max_requests}")
        self._tools = tools
        self._approver = approver
        self._max_requests = max_requests
        self._opened: AbstractAsyncContextManager[Any] | None = None
        self._offered: dict[str, OfferedTool] = {}
        self._said: set[str] = set()
        self._steering: deque[str] = deque()
        self._following: deque[str] = deque()

    async def __aenter__(self) -> Self:
        # In the task that uses the tools: what runs for them is bound to it.
        if isinstance(self._tools, AbstractAsyncContextManager):
            await self._tools.__aenter__()
            self._opened = self._tools
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        opened, self._opened = self._opened, None
        try:
            if opened is not None:
                await opened.__aexit__(kind, error, trace)
        finally:
            await self.close()

    async def toolset(self) -> Toolset:
        """What can be called now, and what is withheld and why."""
        return await self._tools.toolset()

    def send_message(self, text: str, *, deliver: Delivery = "steer") -> None:
        """Says something while a turn is under way. `steer`: with the next request, once the tools
        that run now are done. `follow_up`: after the answer. Said while nothing runs, it waits for
        the next turn."""
        if deliver not in ("steer", "follow_up"):
            raise UsageError(f"a message is delivered as 'steer' or 'follow_up', not {deliver!r}")
        (self._steering if deliver == "steer" else self._following).append(text)

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Decides a call that waits; `go_on` then takes the turn up again.

        Raises:
            TurnState: no such call waits.
        """
        call = next((call for call in self.session.waiting if call.id == call_id), None)
        if call is None:
            raise TurnStateError(f"no call {call_id!r} waits for a decision")
        if not self._offered or intended_call(call, self._offered).name not in self._offered:
            await self._list_tools()
        name = intended_call(call, self._offered).name
        if (tool := self._offered.get(name)) is None:
            raise TurnStateError(f"the tool {name!r} of call {call_id!r} is not there any more")
        await self.session.keep_decision(call_id, tool, decision)
        await self._emit(ApprovalDecided(call_id=call_id, decision=decision))

    # -- inside ----------------------------------------------------------------------------------

    async def _take_up(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        await self.session.give_up(SUPERSEDED)
        await self._list_tools()
        return await super()._take_up(text, attach, target)

    async def _take_again(self) -> Turn:
        await self._list_tools()
        return await super()._take_again()

    async def _work(self, turn: Turn) -> Answer:
        if turn.message is None:
            turn = await self._send(turn)
        while True:
            if not turn.pending:
                said = self._steering or self._following
                if not said:
                    return self._ended("answered", turn)
                turn = await self._send(await self._take_up_said(said))
                continue
            waiting = await self._run_calls(turn)
            if waiting:
                return self._ended("waiting", turn, waiting)
            if self._tally.requests >= self._max_requests:
                await self._emit(WarningIssued(text=self._limit_warning()))
                return self._ended("limit", turn)
            if self._steering:
                # What was asked gives way to what is said now; the results stay.
                turn = await self._take_up_said(self._steering)
            else:
                turn = await turn.resume(self._results(turn))
            turn = await self._send(turn)

    async def _take_up_said(self, said: deque[str]) -> Turn:
        """Takes up what was said meanwhile. Stopped before it was written down, it still waits."""
        text = said.popleft()
        try:
            return await self._take_up_next(text)
        except anyio.get_cancelled_exc_class():
            if not self.session.interrupted:
                said.appendleft(text)
            raise

    async def _take_up_next(self, text: str) -> Turn:
        # The tools are those of the turn that it came in.
        return await super()._take_up(text, (), None)

    def _limit_warning(self) -> str:
        return (
            f"stopped after {self._tally.requests} requests with tool calls under way; go on, or "
            f"ask something else"
        )

    async def _run_calls(self, turn: Turn) -> Sequence[WaitingCall]:
        tools = QuestionReminder(self._tools, self.session.state.question)
        caller = Caller(self.session, tools, self._approver, self._emit)
        try:
            return await caller.run(turn, self._offered)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.session.give_up(STOPPED)
            raise

    def _results(self, turn: Turn) -> list[ToolResult]:
        kept = self.session.state.results
        return [kept[call.id] for call in turn.pending]

    async def _list_tools(self) -> Toolset:
        self._toolset = toolset = await self._tools.toolset()
        out = {item for item, said in self.session.state.members.items() if said == "removed"}
        self._offered = {tool.definition.name: tool for tool in toolset.tools if tool.id not in out}
        for each in toolset.withheld:
            # Once a session: a server that is down should not be news on every turn.
            known = f"{each.what} {each.reason}"
            if known not in self._said:
                self._said.add(known)
                await self._emit(WarningIssued(text=f"{each.what}: {each.detail}"))
        return toolset


async def _tell(listener: Listener | None, event: Event) -> None:
    if listener is not None and (told := listener(event)) is not None:
        await told


__all__ = ["AgentRunner", "Answer", "ChatRunner", "CitedSource", "Emit", "Listener"]
