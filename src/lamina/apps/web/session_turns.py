"""The turns of one open session: one at a time, each with a log of its events.

Laws: a turn belongs to no connection. Whoever hears its last event may ask the next thing at once.
The same key begins the same turn, however often it is sent.
"""

import secrets
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

from lamina.apps.views.background_fill import FillPause
from lamina.apps.views.turn_gate import TurnGate
from lamina.apps.web.defects import tell_defect
from lamina.apps.web.event_log import EventLog
from lamina.apps.web.refusals import failure_of, not_found
from lamina.apps.web.shapes.sessions import RunningTurn, TurnKind
from lamina.apps.web.shapes.turns import TurnFailed
from lamina.core.values.event import Event, TurnEnded
from lamina.engine.runners.runner import ChatRunner
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
