"""Ctrl-C, however often it is pressed.

Laws: the first interrupt cancels the running work, which keeps its results, and the command exits
with 130. One that follows at once is ignored: programs such as `timeout` send two, and an exception
in the middle of the clean-up would leave threads running. A later one ends the process immediately.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, TypeVar

import anyio

Result = TypeVar("Result")

# Interrupts within this many seconds of the first count as the same one.
MOMENT_S = 0.5
SHOW_CURSOR = "\x1b[?25h"


class RepeatedSignal:
    """Tells whether a signal is the first, a duplicate, or one that insists."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._first_time: float | None = None

    @property
    def came(self) -> bool:
        return self._first_time is not None

    def is_first(self, number: int) -> bool:
        """Register a signal; return whether it is the first. One that insists ends the process."""
        now = self._now()
        if self._first_time is None:
            self._first_time = now
            return True
        if now - self._first_time > MOMENT_S:
            end_process(128 + number)
        return False


class _Interrupts:
    """The handler while a command runs, and after an interrupt until the process ends."""

    def __init__(self) -> None:
        self._signal = RepeatedSignal()
        # Cancels the running work.
        self._cancel: Callable[[int, FrameType | None], object] | None = None
        self._is_over = False
        self.came_late = False

    @property
    def came(self) -> bool:
        return self._signal.came

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self._signal.is_first(number):
            return
        if self._cancel is None or self._is_over:
            self.came_late = True
        else:
            self._cancel(number, frame)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Replace asyncio's handler, which cancels the running task."""
        handler = signal.getsignal(signal.SIGINT)
        self._cancel = handler if callable(handler) else None
        signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            self._is_over = True


def run_async(function: Callable[..., Awaitable[Result]], *arguments: object) -> Result:
    """Run a command's work to its end.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if isinstance(signal.getsignal(signal.SIGINT), _Interrupts):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return anyio.run(function, *arguments)
    interrupts = _Interrupts()

    async def run() -> Result:
        with interrupts.watch():
            return await function(*arguments)

    result = anyio.run(run)
    if interrupts.came_late:
        raise KeyboardInterrupt
    if not interrupts.came:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return result


def ignore_interrupts_at_exit() -> None:
    """Preserve the exit code: once all threads have ended, there is nothing to interrupt, and the
    interpreter returns the signal to the system, which would kill the process."""
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def kept_handlers(*numbers: int) -> Iterator[None]:
    """Restore signal handlers after a block that replaces them."""
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


def end_process(code: int) -> NoReturn:
    """End the process at once; flush output, and wait for nothing."""
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            # A bar hides the cursor.
            sys.stderr.write(SHOW_CURSOR)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
