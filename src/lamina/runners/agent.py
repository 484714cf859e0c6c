"""An agent: the tools that the model calls are run, and it is asked again, until it answers or its
requests are used up.

Law: what a person sends meanwhile comes with the next request; results that are there by then stay.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import anyio

from lamina.errors import UsageError
from lamina.ports import Approver
from lamina.runners.answer import Answer
from lamina.runners.caller import Caller, WaitingCall
from lamina.runners.composer import with_composer
from lamina.runners.inbox import Inbox
from lamina.runners.mode import SUPERSEDED, RunContext
from lamina.runners.preview import Preview
from lamina.runners.search_tool import QuestionReminder
from lamina.runners.tool_list import ToolList
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable

MAX_REQUESTS = 20
STOPPED = "The call was not run: the person stopped the turn."


class AgentMode:
    """`follow` takes up a message that was sent meanwhile; without one it is asked with the tools
    of the turn it came in."""

    def __init__(
        self,
        run: RunContext,
        tools: ToolList,
        inbox: Inbox,
        *,
        approver: Approver | None = None,
        max_requests: int = MAX_REQUESTS,
        follow: Callable[[str], Awaitable[Turn]] | None = None,
    ) -> None:
        if max_requests < 1:
            raise UsageError(f"an agent needs at least one request, not {max_requests}")
        self._run = run
        self._tools = tools
        self._inbox = inbox
        self._approver = approver
        self._max_requests = max_requests
        self._follow = follow or self._ask

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        await self._run.session.give_up(SUPERSEDED)
        await self._tools.refresh()
        return await self._ask(text, attach, target)

    async def _ask(
        self, text: str, attach: Iterable[Attachable] = (), target: str | None = None
    ) -> Turn:
        attached = with_composer(text, attach)
        return await self._run.prepare(text, attached, target, toolset=self._tools.toolset)

    async def resume(self) -> Turn:
        await self._tools.refresh()
        return await self._run.open_turn()

    async def after(self, turn: Turn) -> Turn | Answer:
        run = self._run
        if not turn.pending:
            return await self._inbox.take(self._follow) or run.end("answered", turn)
        waiting = await self._run_calls(turn)
        if waiting:
            return run.end("waiting", turn, waiting)
        if run.tally.requests >= self._max_requests:
            await run.warn(
                f"stopped after {run.tally.requests} requests with tool calls under way; go on, or "
                f"ask something else"
            )
            return run.end("limit", turn)
        if self._inbox.steering and (steered := await self._inbox.take(self._follow)):
            # The question gives way to the message; the results stay.
            return steered
        results = run.session.state.results
        return await turn.resume([results[call.id] for call in turn.pending])

    async def preview(self, text: str, attach: Iterable[Attachable], target: str | None) -> Preview:
        return self._run.preview(await self.begin(text, attach, target))

    async def _run_calls(self, turn: Turn) -> Sequence[WaitingCall]:
        session = self._run.session
        tools = QuestionReminder(self._tools.host, session.state.question)
        caller = Caller(session, tools, self._approver, self._run.emit)
        try:
            return await caller.run(turn, self._tools.offered)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await session.give_up(STOPPED)
            raise
