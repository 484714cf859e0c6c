"""Runs an agent: executes the tools that the model calls and asks again, until the model answers or
the request limit is reached.

Laws: messages that a person sends in the meantime are sent with the next request; existing results
stay. The searches of a turn share one numbering of sources, and its answer orders its citations by
first mention. Search findings are written down before the search result, so that a resumed turn
continues with the same numbers. A tool that was removed from the session is not offered; a tool
withheld by a host is reported once.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

from lamina.core.assembly.engine_tools import intended_call
from lamina.core.assembly.inclusion import is_removed
from lamina.core.ports import Approver, ToolHost
from lamina.core.text import QUERY_FRAME
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.runners.caller import Caller
from lamina.engine.runners.citations import SearchOutput, path_sources
from lamina.engine.runners.composer import with_composer
from lamina.engine.runners.mode import RunContext, RunMode
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable
from lamina.errors import UsageError


class TurnSearches:
    """A wrapper around a tool host, for the calls in the answer to `request`."""

    def __init__(self, host: ToolHost, run: RunContext, request: str) -> None:
        self._host = host
        self._run = run
        self._request = request

    async def toolset(self) -> Toolset:
        return await self._host.toolset()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        output = await self._host.call(name, arguments)
        if not isinstance(output, SearchOutput):
            return output
        text = await self._run.add_search(output, self._request)
        question = self._run.session.state.turn.question
        if question.strip():
            text = f"{text}\n\n{QUERY_FRAME}{question}"
        return ToolOutput(text=text)


MAX_REQUESTS = 20
STOPPED = "The call was not run: the person stopped the turn."


class ToolList:
    """The tools of `host` that the session can call, as of the last `refresh`."""

    def __init__(self, run: RunContext, host: ToolHost) -> None:
        self.host = host
        self.toolset: Toolset | None = None
        self._run = run
        self._reports: set[str] = set()

    @property
    def by_name(self) -> dict[str, OfferedTool]:
        """The tools that were not removed from the session."""
        state = self._run.session.state
        tools = self.toolset.tools if self.toolset else ()
        return {tool.definition.name: tool for tool in tools if not is_removed(state, tool)}

    async def refresh(self) -> None:
        self.toolset = toolset = await self.host.toolset()
        self._run.core.turns.tools.take(toolset)
        for tool in toolset.withheld:
            if tool.reason == "untrusted":
                continue  # it stands with the request
            # Once a session: a server that is down should not cause a warning on every turn.
            key = f"{tool.what} {tool.reason}"
            if key not in self._reports:
                self._reports.add(key)
                await self._run.warn(f"{tool.what}: {tool.detail}")

    async def find(self, call: ToolCall) -> tuple[str, OfferedTool | None]:
        """Return the name of the tool that a call is for, and the tool if it exists."""
        if intended_call(call, by_name := self.by_name).name not in by_name:
            await self.refresh()
            by_name = self.by_name
        name = intended_call(call, by_name).name
        return name, by_name.get(name)


class AgentMode(RunMode):
    """An agent. `follow` handles a message that was sent in the meantime; without it, the message
    is asked with the tools of the turn in which it arrived.
    """

    def __init__(
        self,
        run: RunContext,
        tools: ToolList,
        *,
        approver: Approver | None = None,
        max_requests: int = MAX_REQUESTS,
        follow: Callable[[str], Awaitable[Turn]] | None = None,
    ) -> None:
        if max_requests < 1:
            raise UsageError(f"max_requests is {max_requests}; an agent needs at least one request")
        super().__init__(run)
        self._tools = tools
        self._approver = approver
        self._max_requests = max_requests
        self._follow = follow or self._ask_next

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        await self._run.supersede_calls()
        await self._tools.refresh()
        return await self._ask(text, attach, target)

    async def _ask(
        self, text: str, attach: Iterable[Attachable] = (), target: str | None = None
    ) -> Turn:
        attach = with_composer(text, attach)
        # A message sent in the meantime is sent to the target of the current turn.
        target = target or self._run.target
        return await self._run.prepare(text, attach, target, toolset=self._tools.toolset)

    async def _ask_next(self, text: str) -> Turn:
        self._run.start_question()
        return await self._ask(text)

    async def resume(self) -> Turn:
        await self._tools.refresh()
        return await self._take_up()

    async def ask_again(self, answer: str | None) -> Turn:
        await self._tools.refresh()
        await self._run.ask_again(answer)
        return await self._take_up()

    async def _take_up(self) -> Turn:
        turn = await self._run.open_turn()
        self._run.sources = path_sources(self._run.session.path)
        return turn

    async def after(self, turn: Turn) -> Turn | Answer:
        run = self._run
        if not turn.pending_calls:
            return await run.inbox.take(self._follow) or await run.answer(turn)
        if waiting := await self._run_calls(turn):
            return run.end("waiting", turn, waiting)
        most = run.session.settings.max_requests or self._max_requests
        if run.tally.requests >= most:
            await run.warn(
                f"stopped after {run.tally.requests} requests with tool calls under way; go on, or "
                f"ask something else"
            )
            return run.end("limit", turn)
        if run.inbox.steers:
            # The message replaces the question; the results and their numbers stay.
            sources, result = run.sources, run.search_result
            if next_turn := await run.inbox.take(self._follow):
                await run.keep_sources(sources, result, next_turn.id)
                return next_turn
        results = run.session.state.turn.results
        return await turn.resume([results[call.id] for call in turn.pending_calls])

    async def _run_calls(self, turn: Turn) -> Sequence[WaitingCall]:
        session = self._run.session
        tools = TurnSearches(self._tools.host, self._run, turn.id)
        caller = Caller(session, tools, self._approver, self._run.emit)
        try:
            return await caller.run(turn, self._tools.by_name)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await session.abandon_turn(STOPPED)
            raise
