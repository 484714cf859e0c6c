"""A session that this server has open: its runner, its turns, and the task that owns both.

Laws: one task opens the runner, and the same one closes it, for what runs for tools is bound to
it. It is kept open while somebody uses it or a turn runs, and let go of after a while, so that
other programs can have it. A turn that is under way when it closes is stopped; what came is kept.
"""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from lamina.apps.views.approvals import PendingApprovals
from lamina.apps.views.background_fill import FillPause
from lamina.apps.views.items import ItemOverview
from lamina.apps.web.kept_opening import KeptOpening
from lamina.apps.web.session_turns import SessionTurns
from lamina.apps.web.shapes.sessions import SessionNews, SessionState
from lamina.core.assembly.engine_tools import intended_call
from lamina.core.journal import Journal
from lamina.core.values.event import (
    ApprovalDecided,
    ApprovalWanted,
    Event,
    ToolFinished,
    UsageReported,
)
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.caller import needs_decision
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import core_of


class OpenSession:
    """`approvals` is where calls wait that a plan makes: they belong to no answer, so that the
    journal cannot hold them. All others wait there."""

    def __init__(
        self,
        runner: ChatRunner,
        opening: KeptOpening,
        group: TaskGroup,
        tell: Callable[[SessionNews], None],
        *,
        pause: FillPause,
        approvals: PendingApprovals | None = None,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.runner = runner
        self.session = runner.session
        self.opening = opening
        self.notices = notices
        self.approvals = approvals
        self.turns = SessionTurns(runner, group, self._tell_change, pause)
        self.turns.on_end = self._forget_calls
        self.items = ItemOverview(runner)
        self._tell = tell
        self._planned: dict[str, tuple[ToolCall, OfferedTool]] = {}
        # By request: how long the first word and all of the answer took; by call, its seconds.
        self.timings: dict[str, tuple[float | None, float]] = {}
        self.seconds: dict[str, float] = {}
        self._users = 0
        self._used_at = anyio.current_time()
        self.closing = anyio.Event()
        self.closed = anyio.Event()

    # -- who uses it -----------------------------------------------------------------------------

    def __enter__(self) -> "OpenSession":
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        self._used_at = anyio.current_time()

    def idle_for(self) -> float:
        """How long nobody has used it; 0 while somebody does, or a turn runs."""
        if self._users or self.turns.running:
            self._used_at = anyio.current_time()
        return anyio.current_time() - self._used_at

    # -- how it stands ---------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """What it holds now."""
        record = core_of(self.session).record
        return Journal(entries=record.entries, leaf=record.state.leaf, damage=record.damage)

    @property
    def state(self) -> SessionState:
        if self.turns.running:
            return "waiting" if self._planned else "working"
        if self.session.pending_calls:
            return "waiting"
        return "interrupted" if self.session.interrupted else "idle"

    @property
    def news(self) -> SessionNews:
        last = self.turns.last
        return SessionNews(
            session=self.session.id, state=self.state, turn=last.id if last else None
        )

    async def waiting_calls(self) -> list[tuple[ToolCall, OfferedTool]]:
        """The calls that a person has to decide about before the turn can go on. What was allowed
        for the session meanwhile is decided as well, and what is not there any more gets its result
        when the turn goes on."""
        state, policy = self.session.state, self.session.settings.ask_before_tools
        waiting = []
        for call in self.session.pending_calls:
            if call.id in state.turn.decisions:
                continue
            tool = await self.find_tool(call)
            if tool is not None and needs_decision(tool, policy, state.allowed):
                waiting.append((call, tool))
        return waiting

    @property
    def planned_calls(self) -> dict[str, tuple[ToolCall, OfferedTool]]:
        """Calls of a plan that wait for a decision now."""
        return dict(self._planned)

    async def find_tool(self, call: ToolCall) -> OfferedTool | None:
        """The tool that a call is for, as it is now; None if it is not there any more."""
        toolset = await self.runner.toolset()
        tools = {tool.definition.name: tool for tool in toolset.tools}
        return tools.get(intended_call(call, tools).name)

    def _tell_change(self) -> None:
        self._tell(self.news)

    def heed(self, event: Event) -> None:
        """Notes what the journal does not hold: how long things took, and which calls of a plan
        wait."""
        match event:
            case UsageReported(request=request):
                self.timings[request] = (event.first_s, event.total_s)
            case ToolFinished(result=result, seconds=seconds):
                self.seconds[result.call_id] = seconds
                if self.approvals is not None:
                    self.approvals.close(result.call_id)
            case ApprovalWanted(call=call, tool=tool) if self.approvals is not None:
                self.approvals.announce(call.id)
                self._planned[call.id] = (call, tool)
                self._tell_change()
            case ApprovalDecided(call_id=call_id) if call_id in self._planned:
                del self._planned[call_id]
                self._tell_change()
            case _:
                pass

    def _forget_calls(self) -> None:
        self._planned.clear()
        if self.approvals is not None:
            self.approvals.clear()
