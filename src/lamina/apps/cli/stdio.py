"""Standard input and output for commands whose output other programs read.

Law: only the command's own output reaches standard output. While it runs, descriptor 1, to which
native code and child processes may write, is standard error.
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
# After this many seconds a person may wonder why nothing happens.
PATIENCE_S = 2.0


@contextmanager
def own_output() -> Iterator[TextIO]:
    """Yield standard output for the command alone, as UTF-8. If it was replaced by something that
    is not a file, as in tests, that object is used."""
    if sys.stdout is not None and _number_of(sys.stdout) != 1:
        yield sys.stdout
        return
    with own_descriptors() as (given, out):
        os.close(given)
        # Closing flushes, and the reader may be gone by then.
        stream = os.fdopen(out, "w", encoding="utf-8", errors="replace", newline="\n")
        try:
            yield stream
        finally:
            with suppress(OSError):
                stream.close()


@contextmanager
def own_descriptors() -> Iterator[tuple[int, int]]:
    """Yield private descriptors for standard input and output. Inside the block, 0 is empty and 1
    is standard error; the caller closes the descriptors."""
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
    """Open missing standard streams as empty ones. Call this before anything is opened: the first
    file would get the free number and be mistaken for a standard stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is used first.
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
    """Whether a stream provides input: a pipe or a file. A terminal, missing input or an open
    socket is not waited for."""
    number = None if stream is None else _number_of(stream)
    if number is None:
        return False
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def read_text(stream: TextIO | None, say: Callable[[str], None]) -> str:
    """Read all of standard input as text; bytes that are not UTF-8 are replaced, with a warning.

    Raises:
        UsageError: it is too long for any model.
    """
    if stream is None:
        return ""
    binary: IO[bytes] = getattr(stream, "buffer", None) or io.BytesIO(stream.read().encode())
    timer = threading.Timer(PATIENCE_S, say, ["reading standard input to its end"])
    timer.daemon = True
    timer.start()
    try:
        data = binary.read(MAX_INPUT + 1)
    finally:
        timer.cancel()
    if len(data) > MAX_INPUT:
        raise UsageError(
            f"standard input is longer than {MAX_INPUT >> 20} MB, which no model can read; "
            f"send a part of it"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        say(
            f"warning: standard input is not UTF-8 (byte {error.start:,}); unreadable bytes "
            f"were replaced"
        )
        return data.decode("utf-8-sig", "replace")


@asynccontextmanager
async def open_input(descriptor: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """Read a descriptor in chunks. The reading thread cannot be stopped while it waits, so it is
    one that does not delay the end of the process."""
    send, receive = anyio.create_memory_object_stream[bytes](0)
    token = current_token()

    def read() -> None:
        # The receiver closes when no more input is wanted.
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
        # A terminal that hung up is an end of input too.
        return b""


# -- being stopped ------------------------------------------------------------------------------


class Stop:
    """A request to end the command: the first signal calls `abort`, and cancels everything if there
    is nothing to abort; one that insists ends the process."""

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
    """Let signals stop the block cleanly instead of interrupting it in the middle of a write."""
    stop = Stop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        # Signals are not available here; Ctrl-C is then an ordinary exception.
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
