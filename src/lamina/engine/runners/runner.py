"""Defines the runners, which accept a question, report events along the way, and return an answer.

Laws: a runner adds nothing to the context that is not in the journal; it can be stopped at any
moment and continued later. There is one loop; a chat, an agent, a question about notes and a
planned question differ only in their modes.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio

from lamina.core.ports import Approver, Providers, SessionKeeper, ToolHost
from lamina.core.values.entry import Delivery
from lamina.core.values.event import ApprovalDecided, Event, TurnEnded
from lamina.core.values.note import Scope
from lamina.core.values.selection import AgentChoice, Preset
from lamina.core.values.tool import Decision, Toolset
from lamina.engine.runners.agent import MAX_REQUESTS, STOPPED, AgentMode, ToolList
from lamina.engine.runners.agent_search import ALL_KINDS, SearchedKind, search_session
from lamina.engine.runners.answer import Answer, PlanPreview, Preview
from lamina.engine.runners.call_planner import plan_key
from lamina.engine.runners.composer import without_composer
from lamina.engine.runners.mode import Listener, RunContext, RunMode, notify
from lamina.engine.runners.note_search_tool import SearchTools
from lamina.engine.runners.plan import PlanMode
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable
from lamina.engine.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.engine.task_groups import single_errors
from lamina.errors import TurnStateError


class Runner:
    """The loop that sends the first request of its mode, then whatever follows according to the
    mode, until that is an answer. `async with` opens tools that need opening. `cache_keys` are
    other keys by which providers identify its requests.
    """

    def __init__(
        self,
        run: RunContext,
        mode: RunMode,
        *,
        tools: ToolHost | None = None,
        cache_keys: tuple[str, ...] = (),
    ) -> None:
        self.session = run.session
        self._run = run
        self._mode = mode
        self._tools = tools
        self._cache_keys = (*cache_keys, run.session.id)
        self._open_tools: AbstractAsyncContextManager[Any] | None = None
        self._scope: anyio.CancelScope | None = None
        # Other resources to close, after the session.
        self.closing: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> Self:
        # In the task that uses the tools: everything that runs for them is bound to it.
        if isinstance(self._tools, AbstractAsyncContextManager):
            await self._tools.__aenter__()
            self._open_tools = self._tools
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        tools, self._open_tools = self._open_tools, None
        try:
            if tools is not None:
                await tools.__aexit__(kind, error, trace)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the session."""
        try:
            if isinstance(self._run.providers, SessionKeeper):
                for key in self._cache_keys:
                    await self._run.providers.release_session(key)
        finally:
            await self.session.close()
            for close in self.closing:
                await close()

    async def toolset(self) -> Toolset:
        """Return the tools that can be called now, and those withheld, with reasons; empty if this
        runner runs no tools.
        """
        return await self._tools.toolset() if self._tools is not None else Toolset()

    @property
    def running(self) -> bool:
        """Whether a turn is in progress."""
        return self._scope is not None

    @property
    def cites(self) -> bool:
        """Whether the current answer may cite: then its numbers are final only when it is
        complete.
        """
        return self._run.sources is not None

    def abort(self) -> bool:
        """Stop the current turn; a partial answer is stored. Return False if there is no turn."""
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
        """Ask a question and return the answer. `on_event` is called with each event along the way.

        Raises:
            ProviderError: there is no answer; `resume` tries again, if anything was sent.
            BudgetError, PrefixMoved, SpendLimit, HookError: as `Session.prepare`.
        """

        async def begin() -> Turn:
            await self._run.reach(target)
            return await self._mode.begin(text, attach, target)

        return await self._finish(begin, on_event)

    async def resume(
        self, *, target: str | None = None, on_event: Listener | None = None
    ) -> Answer:
        """Continue an unfinished turn: send its request again, or run the calls that wait. If a
        `target` is named, here or for the session since then, that one is asked.

        Raises:
            TurnStateError: the last turn is complete.
        """

        async def begin() -> Turn:
            if target is not None:
                await self._run.reach(target)
            self._run.inbox.takes_kept = True
            return await self._mode.resume()

        return await self._finish(begin, on_event)

    async def edit(
        self,
        question: str,
        text: str,
        *,
        attach: Iterable[Attachable] | None = None,
        target: str | None = None,
        on_event: Listener | None = None,
    ) -> Answer:
        """Edit an earlier question and ask again; the original stays as a branch. Otherwise like
        `Session.edit`, and `run`.
        """

        async def begin() -> Turn:
            await self._run.reach(target)
            async with self._run.core.in_front_of(question, attach) as attached:
                return await self._mode.begin(text, without_composer(attached), target)

        return await self._finish(begin, on_event)

    async def regenerate(
        self, answer: str | None = None, *,
        target: str | None = None, on_event: Listener | None = None,
    ) -> Answer:  # fmt: skip
        """Ask for an answer again, by default the last one; the original stays as a branch. Nothing
        is searched or run again for it. If no answer arrives, `resume` tries again, and the next
        question follows the old answer. Otherwise like `Session.regenerate`, and `resume`.
        """

        async def begin() -> Turn:
            await self._run.reach(target)
            return await self._mode.ask_again(answer)

        return await self._finish(begin, on_event)

    async def preview(
        self, text: str, *, attach: Iterable[Attachable] = (), target: str | None = None
    ) -> Preview | PlanPreview:
        """Return the first request that `run` would send; no model is asked, no tool is run. The
        request of a chat, an agent or a question about notes is prepared in the session and left
        open there: `resume` sends it. To preview without leaving a trace, use a session in a
        `MemoryStore`.

        Raises:
            BudgetError, PrefixMoved, SpendLimit, HookError: as `Session.prepare`.
        """
        self._require_idle()
        self._run.start()
        preview = await self._mode.preview(text, attach, target)
        if isinstance(preview, Preview):
            await preview.turn.release()
        return preview

    async def send_message(self, text: str, *, deliver: Delivery = "steer") -> None:
        """Send a message during a turn. `steer`: with the next request, once the running tools have
        finished. `follow_up`: after the answer, as always if the runner runs no tools. While
        nothing is running, the message is stored in the journal and comes before the next question,
        whichever runner asks it.
        """
        await self._run.inbox.add(text, deliver, is_running=self.running)

    @asynccontextmanager
    async def stream(
        self,
        text: str | None,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Yield the events of a turn, to be read while it runs: `async with runner.stream("...") as
        events: async for event in events`. Without `text`, the last turn is continued. Leaving the
        block stops the turn; an error in the turn is then raised.
        """
        send, receive = anyio.create_memory_object_stream[Event](64)
        failures: list[Exception] = []

        async def pass_on(event: Event) -> None:
            # Events are no longer read: the turn is about to be stopped.
            with suppress(anyio.BrokenResourceError):
                await send.send(event)

        async def work() -> None:
            async with send:
                try:
                    if text is None:
                        await self.resume(on_event=pass_on)
                    else:
                        await self.run(text, attach=attach, target=target, on_event=pass_on)
                except Exception as error:  # noqa: BLE001 - raised when the events are read
                    failures.append(error)

        with single_errors():
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                async with receive:
                    yield receive
                group.cancel_scope.cancel()
        if failures:
            raise failures[0]

    async def _finish(
        self, begin: Callable[[], Awaitable[Turn]], on_event: Listener | None
    ) -> Answer:
        """Run a turn in a scope of its own, so that it can be stopped without its caller."""
        self._require_idle()
        self._run.start(on_event)
        answer: Answer | None = None
        try:
            with anyio.CancelScope() as self._scope:
                answer = await self._loop(await begin())
        finally:
            self._scope = self._run.listener = None
            with anyio.CancelScope(shield=True):
                await self._mode.end()
        if answer is None:
            answer = self._run.end("aborted", self._run.tally.turn)
        event = TurnEnded(ending=answer.ending, answer=answer.text, requests=answer.requests)
        await notify(on_event, event)
        return answer

    async def _loop(self, turn: Turn) -> Answer:
        while True:
            if turn.message is None:
                turn = await self._run.send(turn)
            step = await self._mode.after(turn)
            if isinstance(step, Answer):
                return step
            turn = step

    def _require_idle(self) -> None:
        if self._scope is not None:
            raise TurnStateError("a turn is in progress: wait for it, or abort it")


class ChatRunner(Runner):
    """A runner that asks a model once per question. Tools that the session offers are not run:
    their calls are in `answer.turn.pending_calls`, for the application to run.
    """

    def __init__(self, session: Session, providers: Providers) -> None:
        run = RunContext(session, providers)
        super().__init__(run, RunMode(run))


class AgentRunner(ChatRunner):
    """A runner that asks a model, runs the tools it calls, and asks again. Use it in `async with`,
    which opens tools that need opening, and closes them with the session.
    """

    def __init__(
        self,
        session: Session,
        providers: Providers,
        tools: ToolHost,
        *,
        approver: Approver | None = None,
        max_requests: int = MAX_REQUESTS,
    ) -> None:
        run = RunContext(session, providers, tools)
        self._tool_list = ToolList(run, tools)
        mode = AgentMode(run, self._tool_list, approver=approver, max_requests=max_requests)
        Runner.__init__(self, run, mode, tools=tools)

    async def search(
        self,
        question: str,
        *,
        kinds: Collection[SearchedKind] = ALL_KINDS,
        preset: Preset | None = None,
        top: int | None = None,
    ) -> AgentChoice:
        """Return the agent's rules, references and tools that a question would choose, as `lamina
        select` shows them: each item with its score and reason, and the near misses, with the
        thresholds. Nothing is asked or written. `kinds` are those to show, `preset` determines how
        much to take (`conservative`, `normal`, `aggressive`; by default the session's settings),
        and `top` takes exactly that many of the best, whatever their scores. Tools are available
        once the runner is open (`async with`).

        Raises:
            ExtraMissing: search is not installed.
            JournalError: the runner is closed.
            UsageError: the question is empty, a kind is unknown, an argument is not of its type, or
                `top` and `preset` are given.
        """
        self._run.core.record.require_not_closed()
        toolset = await self.toolset()
        return await search_session(self.session, toolset, question, kinds, preset, top)

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Decide a waiting call; `resume` then continues the turn.

        Raises:
            TurnStateError: the call is not waiting.
        """
        call = next((call for call in self.session.pending_calls if call.id == call_id), None)
        if call is None:
            raise TurnStateError(f"call {call_id!r} is not waiting for a decision")
        name, tool = await self._tool_list.find(call)
        if tool is None:
            raise TurnStateError(f"the tool {name!r} of call {call_id!r} no longer exists")
        await self.session.keep_decision(call_id, tool, decision)
        await self._run.emit(ApprovalDecided(call_id=call_id, decision=decision))


class PlanRunner(AgentRunner):
    """A runner that asks which tools to run, runs them together, and asks for the answer. With a
    `search`, the notes in `scope` can also be searched, and the answer has its sources. A tool that
    needs a person's approval is run only if there is an `approver`; without one its call is denied,
    and the model is informed. Messages sent in the meantime (`send_message`) come after the answer.
    """

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
        run = RunContext(session, providers, tools)
        self._tool_list = ToolList(run, tools)
        now = run.core.clock.now
        search_tools = SearchTools(search, scope=scope, top=top, now=now) if search else None
        mode = PlanMode(run, self._tool_list, search=search_tools, approver=approver)
        Runner.__init__(self, run, mode, tools=tools, cache_keys=(plan_key(session),))


__all__ = [
    "STOPPED", "AgentRunner", "Answer", "ChatRunner", "Delivery", "Listener",
    "PlanRunner", "Runner",
]  # fmt: skip
