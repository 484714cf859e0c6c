"""A session that this server has open: its runner, its turns with their logs, and the task that
owns both.

Laws: the task that opens the runner also closes it, since everything that runs tools is bound to
that task. A session stays open while in use or while a turn runs, and is closed after an idle
time so that other programs can open it. A turn that runs when the session closes is stopped; its
partial answer is kept. Turns run one at a time and belong to no connection; the same key starts
the same turn, however often it is sent. After a turn's last event the next question can be sent
at once.
"""

import secrets
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.background_fill import FillPause
from lamina.apps.views.session_items import ItemOverview
from lamina.apps.views.turn_gate import TurnGate
from lamina.apps.web.http_answers import failure_of, not_found, print_defect
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

# How many finished turns can still be watched from their beginning.
KEPT_TURNS = 8
_KEPT_KEYS = 200

TurnWork = Callable[["LoggedTurn"], Awaitable[object]]


class LoggedTurn:
    """One turn and its events so far."""

    def __init__(self, kind: TurnKind) -> None:
        self.id = secrets.token_hex(8)
        self.kind = kind
        self.log = EventLog()
        self.end: TurnEnded | None = None

    @property
    def is_running(self) -> bool:
        return not self.log.is_over

    async def hear(self, event: Event) -> None:
        """Record an event. The last one is held until the session is free for the next turn."""
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
    """A session's turns. `changed` is called when a turn starts, waits, or ends."""

    def __init__(
        self, runner: ChatRunner, group: TaskGroup, changed: Callable[[], None], pause: FillPause
    ) -> None:
        self._gate = TurnGate(runner, pause)
        self._group = group
        self._changed = changed
        self._turns: dict[str, LoggedTurn] = {}
        self._keys: dict[str, str] = {}
        # Work to do when a turn has ended, before watchers learn of it.
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
        """Return the turn that was started with a key."""
        return self._keys.get(key) if key else None

    def begin(self, kind: TurnKind, work: TurnWork, key: str = "") -> LoggedTurn:
        """Start a turn, which then runs on its own.

        Raises:
            TurnStateError: a turn is under way.
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
            except Exception as error:  # noqa: BLE001 - reported to the watchers
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
                print_defect(failure)
            turn.log.add("failed", TurnFailed(**failure_of(failure)))
        else:
            # A turn stopped before the runner began has no end event of its own.
            turn.log.add("end", turn.end or TurnEnded(ending="aborted", answer="", requests=0))
        self._changed()

    def find(self, turn: str) -> LoggedTurn:
        """
        Raises:
            Refusal: the turn is unknown, or no longer kept.
        """
        if (found := self._turns.get(turn)) is None:
            raise not_found("turn", turn, "only recent turns are kept; read the session instead")
        return found

    def abort(self, turn: str | None = None) -> bool:
        """Stop the running turn, if it is this one; its partial answer is kept."""
        running = self.running
        if running is None or turn not in (None, running.id):
            return False
        return self._gate.abort()


def tag_of(event: Event) -> str:
    """Return the type of an event as programs know it."""
    return str(type(event).__struct_config__.tag)


class OpenSession:
    """A session that is open. `approvals` contains the waiting calls of a plan: they belong to no
    answer, so the journal cannot record them. All other calls wait in the journal."""

    def __init__(
        self,
        runner: ChatRunner,
        opening: KeptOpening,
        group: TaskGroup,
        publish: Callable[[SessionNews], None],
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
        self.turns = SessionTurns(runner, group, self._publish_change, pause)
        self.turns.on_end = self._forget_calls
        self.items = ItemOverview(runner)
        self._publish = publish
        self._planned: dict[str, tuple[ToolCall, OfferedTool]] = {}
        # By request: time to the first word and to the full answer; by call: its seconds.
        self.timings: dict[str, tuple[float | None, float]] = {}
        self.seconds: dict[str, float] = {}
        self._users = 0
        self._used_at = anyio.current_time()
        self.closing = anyio.Event()
        self.closed = anyio.Event()

    # -- use -------------------------------------------------------------------------------------

    def __enter__(self) -> "OpenSession":
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        self._used_at = anyio.current_time()

    def idle_for(self) -> float:
        """Return how long it has been idle; 0 while it is in use or a turn runs."""
        if self._users or self.turns.running:
            self._used_at = anyio.current_time()
        return anyio.current_time() - self._used_at

    # -- state -----------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Return its current journal."""
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
        """Return the calls that a person must decide before the turn can continue. Calls that
        were allowed for the session since then are decided too, and calls of missing tools get
        their result when the turn continues."""
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
        """Return the calls of a plan that wait for a decision now."""
        return dict(self._planned)

    async def find_tool(self, call: ToolCall) -> OfferedTool | None:
        """Return the current tool of a call; None if it no longer exists."""
        toolset = await self.runner.toolset()
        tools = {tool.definition.name: tool for tool in toolset.tools}
        return tools.get(intended_call(call, tools).name)

    def _publish_change(self) -> None:
        self._publish(self.news)

    def heed(self, event: Event) -> None:
        """Record what the journal does not: how long things took, and which calls of a plan
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
                self._publish_change()
            case ApprovalDecided(call_id=call_id) if call_id in self._planned:
                del self._planned[call_id]
                self._publish_change()
            case _:
                pass

    def _forget_calls(self) -> None:
        self._planned.clear()
        if self.approvals is not None:
            self.approvals.clear()
