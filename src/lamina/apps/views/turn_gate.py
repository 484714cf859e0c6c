"""One turn at a time: what a session is busy with, and how to stop it."""

import anyio

from lamina.apps.views.background_fill import FillPause
from lamina.engine.runners.runner import ChatRunner
from lamina.errors import TurnStateError


class TurnGate:
    """Guards the running turn or compaction; `pause` pauses fills during that time."""

    def __init__(self, runner: ChatRunner, pause: FillPause) -> None:
        self._runner = runner
        self._pause = pause
        self._scope: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        return self._scope is not None

    def require_idle(self) -> None:
        """
        Raises:
            TurnStateError: a turn is under way.
        """
        if self.is_busy:
            raise TurnStateError("a turn is under way: wait for it, or abort it")

    def begin(self) -> anyio.CancelScope:
        """Return the scope to work in; it can be cancelled before and after the runner's own."""
        self._scope = anyio.CancelScope()
        self._pause.begin()
        return self._scope

    def abort(self) -> bool:
        """Stop the running work, if any."""
        if self._scope is None:
            return False
        if not self._runner.abort():
            self._scope.cancel()
        return True

    def end(self) -> None:
        if self._scope is not None:
            self._scope = None
            self._pause.end()
