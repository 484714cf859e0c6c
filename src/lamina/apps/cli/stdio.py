"""Standard input and output of commands whose output other programs read.

Law: what a command means to say is all that reaches standard output. Native code and child
processes write to descriptor 1 as they like; meanwhile that is standard error.
"""

import io
import os
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import IO, TextIO

import anyio
from anyio.lowlevel import current_token

from lamina.apps.cli.interrupts import RepeatedSignal, kept_handlers
from lamina.engine.task_groups import single_errors
from lamina.errors import UsageError

CHUNK = 1 << 16
# More than fits the largest window there is.
MAX_INPUT = 16 << 20
# After so long a person may wonder what is waited for.
PATIENCE_S = 2.0


@contextmanager
def own_output() -> Iterator[TextIO]:
    """Standard output for the command alone, as UTF-8. If it was replaced by something that is not
    a file, as in tests, that is used as it is."""
    if sys.stdout is not None and _number_of(sys.stdout) != 1:
        yield sys.stdout
        return
    with own_descriptors() as (given, out):
        os.close(given)
        # Closing flushes, and whoever read it may be gone by then.
        stream = os.fdopen(out, "w", encoding="utf-8", errors="replace", newline="\n")
        try:
            yield stream
        finally:
            with suppress(OSError):
                stream.close()


@contextmanager
def own_descriptors() -> Iterator[tuple[int, int]]:
    """Descriptors for standard input and output that nobody else has. Until the block is left, 0 is
    empty and 1 is standard error; the caller closes what it got."""
    _flush()
    descriptors = os.dup(0), os.dup(1)
    copies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield descriptors
    finally:
        _flush()
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nothing)


def fill_descriptors() -> None:
    """Standard streams that a process was started without become empty ones. To be called before
    anything is opened: it would get the free number, and be taken for a standard stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given out first.
            os.open(os.devnull, os.O_RDWR)


def _flush() -> None:
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()


def _number_of(stream: IO[str]) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


# -- input --------------------------------------------------------------------------------------


def is_piped(stream: IO[str] | None) -> bool:
    """Whether something is given on it: a pipe or a file. A terminal, no input at all or a socket
    that somebody left open is not waited for."""
    number = None if stream is None else _number_of(stream)
    if number is None:
        return False
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def read_text(stream: TextIO | None, say: Callable[[str], None]) -> str:
    """All of standard input as text; what is not UTF-8 is replaced, and said.

    Raises:
        UsageError: it is too long for any model.
    """
    if stream is None:
        return ""
    binary: IO[bytes] = getattr(stream, "buffer", None) or io.BytesIO(stream.read().encode())
    timer = threading.Timer(PATIENCE_S, say, ["reading standard input up to its end"])
    timer.daemon = True
    timer.start()
    try:
        data = binary.read(MAX_INPUT + 1)
    finally:
        timer.cancel()
    if len(data) > MAX_INPUT:
        raise UsageError(
            f"standard input is longer than {MAX_INPUT >> 20} MB, which no model can read; "
            f"give a part of it"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        say(
            f"warning: standard input is not UTF-8 (byte {error.start:,}): what could not be "
            f"read is replaced"
        )
        return data.decode("utf-8-sig", "replace")


@asynccontextmanager
async def open_input(descriptor: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """What comes in on a descriptor, in chunks. The thread that reads cannot be stopped while it
    waits, so it is one that the end of the process does not wait for."""
    send, receive = anyio.create_memory_object_stream[bytes](0)
    token = current_token()

    def read() -> None:
        # The other side closes when nobody wants more.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError):
            while chunk := _read_chunk(descriptor):
                anyio.from_thread.run(send.send, chunk, token=token)
            anyio.from_thread.run_sync(send.close, token=token)

    threading.Thread(target=read, name="lamina-input", daemon=True).start()
    async with send, receive:
        yield receive


def _read_chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        # A terminal that hung up is an end as well.
        return b""


# -- being stopped ------------------------------------------------------------------------------


class Stop:
    """Somebody wants the command to end: the first signal asks `abort`, and cancels everything if
    there is nothing to abort; one that insists ends the process."""

    def __init__(self) -> None:
        self._signals = RepeatedSignal()
        self.scope = anyio.CancelScope()
        self.signal: int | None = None
        self.abort: Callable[[], bool] | None = None

    @property
    def exit_code(self) -> int:
        return 128 + (self.signal or 0) if self.signal else 0

    def __call__(self, number: int) -> None:
        if not self._signals.is_first(number):
            return
        self.signal = number
        if self.abort is None or not self.abort():
            self.scope.cancel()


@asynccontextmanager
async def stop_on_signals() -> AsyncIterator[Stop]:
    """Signals stop what the block does, instead of tearing it down in the middle of a write."""
    stop = Stop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        # No signals are to be had; Ctrl-C is then an exception like any other.
        numbers = []

    async def watch() -> None:
        with kept_handlers(*numbers), anyio.open_signal_receiver(*numbers) as signals:
            ready.set()
            async for number in signals:
                stop(number)

    ready = anyio.Event()
    with single_errors():
        async with anyio.create_task_group() as group:
            if numbers:
                group.start_soon(watch)
                await ready.wait()
            with stop.scope:
                yield stop
            group.cancel_scope.cancel()
