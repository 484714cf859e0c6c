"""A session that this server has open: its runner, its turns with their logs, and the task that
owns both.

Laws: the task that opens the runner also closes it, since what runs for tools is bound to that
task. A session stays open while somebody uses it or a turn runs, and is closed after a while,
so that other programs can open it. A turn that runs when the session closes is stopped; what it
produced so far is kept. Turns run one at a time and belong to no connection; the same key
starts the same turn, however often it is sent. Whoever hears a turn's last event may ask the
next question at once.
"""

import secrets
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.background_fill import FillPause
from lamina.apps.views.session_items import ItemOverview
from lamina.apps.views.turn_gate import TurnGate
from lamina.apps.web.http_answers import failure_of, not_found, tell_defect
from lamina.apps.web.kept_opening import KeptOpening
from lamina.apps.web.server_events import EventLog
from lamina.apps.web.session_records import (
    RunningTurn,
    SessionNews,
    SessionState,
    TurnFailed,
    TurnKind,
)
from lamina.core.assembly.engine_tools import intended_call
from lamina.core.journal import Journal
from lamina.core.values.event import (
    ApprovalDecided,
    ApprovalWanted,
    Event,
    ToolFinished,
    TurnEnded,
    UsageReported,
)
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.approvals import needs_decision
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import core_of
from lamina.errors import LaminaError

# How many turns that are over can still be watched from their beginning.
KEPT_TURNS = 8
_KEPT_KEYS = 200

TurnWork = Callable[["LoggedTurn"], Awaitable[object]]


class LoggedTurn:
    """One turn and what happened in it so far."""

    def __init__(self, kind: TurnKind) -> None:
        self.id = secrets.token_hex(8)
        self.kind = kind
        self.log = EventLog()
        self.end: TurnEnded | None = None

    @property
    def is_running(self) -> bool:
        return not self.log.is_over

    async def hear(self, event: Event) -> None:
        """Notes an event. The last one is held until the session is free for the next turn."""
        if isinstance(event, TurnEnded):
            self.end = event
        else:
            self.log.add(tag_of(event), event)

    @property
    def view(self) -> RunningTurn:
        return RunningTurn(
            id=self.id, kind=self.kind, next=self.log.next_number, is_running=self.is_running
        )


class SessionTurns:
    """`changed` is called when a turn begins, waits, or ends."""

    def __init__(
        self, runner: ChatRunner, group: TaskGroup, changed: Callable[[], None], pause: FillPause
    ) -> None:
        self._gate = TurnGate(runner, pause)
        self._group = group
        self._changed = changed
        self._turns: dict[str, LoggedTurn] = {}
        self._keys: dict[str, str] = {}
        # What is to be done when a turn is over, before anybody is told.
        self.on_end: Callable[[], None] | None = None

    @property
    def last(self) -> LoggedTurn | None:
        return next(reversed(self._turns.values()), None)

    @property
    def running(self) -> LoggedTurn | None:
        return self.last if self._gate.is_busy else None

    def require_idle(self) -> None:
        """
        Raises:
            TurnStateError: a turn is under way.
        """
        self._gate.require_idle()

    def known(self, key: str) -> str | None:
        """The turn that was begun with a key."""
        return self._keys.get(key) if key else None

    def begin(self, kind: TurnKind, work: TurnWork, key: str = "") -> LoggedTurn:
        """Begins a turn, which runs by itself from now on.

        Raises:
            TurnStateError: one is under way.
        """
        self.require_idle()
        turn = LoggedTurn(kind)
        self._turns[turn.id] = turn
        for old in list(self._turns)[:-KEPT_TURNS]:
            del self._turns[old]
        if key:
            self._keys[key] = turn.id
            for old in list(self._keys)[:-_KEPT_KEYS]:
                del self._keys[old]
        scope = self._gate.begin()

        async def run() -> None:
            failure: Exception | None = None
            try:
                with scope:
                    await work(turn)
            except Exception as error:  # noqa: BLE001 - whoever watches is told
                failure = error
            finally:
                self._gate.end()
                if self.on_end is not None:
                    self.on_end()
            self._close(turn, failure)

        self._group.start_soon(run)
        self._changed()
        return turn

    def _close(self, turn: LoggedTurn, failure: Exception | None) -> None:
        if failure is not None:
            if not isinstance(failure, LaminaError):
                tell_defect(failure)
            turn.log.add("failed", TurnFailed(**failure_of(failure)))
        else:
            # Stopped before the runner began with it, it has no end of its own.
            turn.log.add("end", turn.end or TurnEnded(ending="aborted", answer="", requests=0))
        self._changed()

    def find(self, turn: str) -> LoggedTurn:
        """
        Raises:
            Refusal: it is not known here, or not any more.
        """
        if (found := self._turns.get(turn)) is None:
            raise not_found("turn", turn, "only the last ones are kept; read the session instead")
        return found

    def abort(self, turn: str | None = None) -> bool:
        """Stops the turn under way, if it is this one; what came of its answer is kept."""
        running = self.running
        if running is None or turn not in (None, running.id):
            return False
        return self._gate.abort()


def tag_of(event: Event) -> str:
    """The type of an event, as programs know it."""
    return str(type(event).__struct_config__.tag)


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
