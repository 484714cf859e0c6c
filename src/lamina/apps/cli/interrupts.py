"""Ctrl-C, however often it comes.

Laws: the first interrupt cancels what runs, which keeps what it made, and the command ends with
130. One that follows at once adds nothing: programs such as `timeout` send two, and an exception in
the middle of the clean-up would leave threads that nobody ends. One that comes later ends the
process there and then.
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

# For so many seconds after the first interrupt, others are taken for the same one.
MOMENT_S = 0.5
SHOW_CURSOR = "\x1b[?25h"


class RepeatedSignal:
    """Whether a signal is the first, one that comes with it, or one that insists."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._first_time: float | None = None

    @property
    def came(self) -> bool:
        return self._first_time is not None

    def is_first(self, number: int) -> bool:
        """Takes a signal; whether there was none before. One that insists ends the process."""
        now = self._now()
        if self._first_time is None:
            self._first_time = now
            return True
        if now - self._first_time > MOMENT_S:
            end_process(128 + number)
        return False


class _Interrupts:
    """The handler while a command runs, and until the process is over if it was interrupted."""

    def __init__(self) -> None:
        self._signal = RepeatedSignal()
        # Cancels what runs.
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
        """Takes over from asyncio, whose handler cancels the running task."""
        handler = signal.getsignal(signal.SIGINT)
        self._cancel = handler if callable(handler) else None
        signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            self._is_over = True


def run_async(function: Callable[..., Awaitable[Result]], *arguments: object) -> Result:
    """Runs the work of a command to its end.

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
    """Keeps the exit code what it is: once all threads have ended, there is nothing to interrupt,
    and the interpreter gives the signal back to the system, which would kill the process."""
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def kept_handlers(*numbers: int) -> Iterator[None]:
    """Puts the handlers of signals back after a block in which others take them."""
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


def end_process(code: int) -> NoReturn:
    """Ends the process at once, with what was printed, and waits for nothing."""
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            # A bar that was being drawn hides it.
            sys.stderr.write(SHOW_CURSOR)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
