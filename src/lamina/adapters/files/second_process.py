"""Pure work on many batches, shared with a second process where that pays.

Laws: the results are those of doing all of it here, whichever process did what. A second process
that cannot be started, dies, hangs or gives nonsense costs time and nothing else: what it did not
give back is done here. It runs this package alone: it gets batches, and nothing of the caller's
code, arguments or environment.

No thread talks to it: one would wait for the interpreter at every read and write while this process
is busy, and the other one would stand idle. Batches are sent and results taken in between.

Private: see `lamina` for what is public.
"""

import importlib
import importlib.util
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Generic, TypeVar, get_type_hints

import msgspec

B = TypeVar("B")
R = TypeVar("R")

# How many seconds the next batch is waited for; it takes a fraction of one.
PATIENCE = 5.0
# How many batches it has at a time: one that it works on, and others that wait for it.
MOST_GIVEN = 3
# What may be under way to it, or back, while nobody looks; a system may allow less.
BUFFER = 1 << 20
_LENGTH = 8
# What a process needs to start at all, which excludes keys and tokens.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
# It does one thing at a time; numpy would start a thread for every processor.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_START = (
    "import json, sys; sys.path += json.loads(sys.argv[1]); "
    "from lamina.second_process import serve; serve(sys.argv[2])"
)


def share_work(
    run: Callable[[B], R], batches: Iterable[B], packages: Sequence[str]
) -> Iterator[tuple[B, R]]:
    """Each batch with what `run` makes of it, in any order. That is a function of a module of ours;
    what it takes and gives can be sent as msgpack, and `packages` are all that it imports. Batches
    are asked for one at a time, from the caller's thread."""
    helper: _Helper[B, R] | None = None
    if _can_help():
        # Where too much is open already, it is done without.
        with suppress(OSError):
            helper = _Helper(run, packages)
    if helper is None:
        yield from ((batch, run(batch)) for batch in batches)
        return
    try:
        for batch in batches:
            yield from helper.finished()
            if not helper.takes(batch):
                yield batch, run(batch)
        yield from helper.rest()
    finally:
        helper.stop()


def _can_help() -> bool:
    """Whether there is a second processor, and a plain Python to start."""
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    # A program that brings its own Python would start itself.
    is_python = Path(sys.executable or "").name.lower().startswith("python")
    is_unix = os.name == "posix"
    return processors > 1 and is_unix and is_python and not getattr(sys, "frozen", False)


class _Helper(Generic[B, R]):
    """The second process, and what it was given and has not given back."""

    def __init__(self, run: Callable[[B], R], packages: Sequence[str]) -> None:
        self._run = run
        self._decoder = msgspec.msgpack.Decoder(get_type_hints(run)["return"])
        # In the order in which they were given, which is the one in which results come.
        self._given: deque[B] = deque()
        self._is_ready = False
        self._unsent = b""
        self._received = bytearray()
        self._socket, other = socket.socketpair()
        self._socket.setblocking(False)
        for end in (self._socket, other):
            for size in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, size, BUFFER)
        self._process: subprocess.Popen[bytes] | None = None
        with other, suppress(OSError, ValueError):
            self._process = _start(run, packages, other)

    def takes(self, batch: B) -> bool:
        """Whether it does this batch."""
        if not self._is_ready or len(self._given) >= MOST_GIVEN:
            return False
        try:
            content = msgspec.msgpack.encode(batch)
        except (TypeError, ValueError, OverflowError):
            return False
        self._given.append(batch)
        self._unsent += len(content).to_bytes(_LENGTH, "little") + content
        self._send()
        return True

    def finished(self) -> Iterator[tuple[B, R]]:
        """What it is done with; all that it was given, if it is no more."""
        if self._process is None:
            return
        self._send()
        is_alive = self._receive()
        while (content := self._next_message()) is not None:
            if not self._is_ready:
                # It says hello once it has imported what it needs.
                self._is_ready = True
                continue
            if not self._given:
                is_alive = False
                break
            batch = self._given.popleft()
            yield batch, self._result(batch, content)
        if not is_alive:
            self.stop()
            yield from self._taken_back()

    def rest(self) -> Iterator[tuple[B, R]]:
        """All other batches that it took."""
        while self._given:
            if not self._waits_for_more():
                self.stop()
                yield from self._taken_back()
                return
            yield from self.finished()

    def _waits_for_more(self) -> bool:
        """Whether something comes, or goes, in time."""
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, wanted)
            return bool(selector.select(PATIENCE))

    def stop(self) -> None:
        """Ends it."""
        self._is_ready = False
        process, self._process = self._process, None
        self._socket.close()
        if process is not None:
            process.kill()
            process.wait()

    def _taken_back(self) -> Iterator[tuple[B, R]]:
        while self._given:
            batch = self._given.popleft()
            yield batch, self._run(batch)

    def _result(self, batch: B, content: bytes) -> R:
        with suppress(msgspec.MsgspecError):
            if content:
                result: R = self._decoder.decode(content)
                return result
        return self._run(batch)

    def _send(self) -> None:
        """As much as goes through for now."""
        # Whether it is dead shows when there is nothing more to receive.
        with suppress(OSError):
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]

    def _receive(self) -> bool:
        """Takes what there is; whether more can come."""
        try:
            while piece := self._socket.recv(BUFFER):
                self._received += piece
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _next_message(self) -> bytes | None:
        """The next message that is there as a whole."""
        size = int.from_bytes(self._received[:_LENGTH], "little")
        end = _LENGTH + size
        if len(self._received) < _LENGTH or len(self._received) < end:
            return None
        content = bytes(self._received[_LENGTH:end])
        del self._received[:end]
        return content


def _start(
    run: Callable[[B], R], packages: Sequence[str], end: socket.socket
) -> "subprocess.Popen[bytes]":
    # Isolated (-I), without the start-up of installed packages (-S): faster, and less to run.
    places, name = json.dumps(_places(packages)), f"{run.__module__}:{run.__name__}"
    command = [sys.executable, "-I", "-S", "-c", _START, places, name]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(
        command,
        stdin=end.fileno(),
        stdout=end.fileno(),
        stderr=subprocess.DEVNULL,
        env=environment | _ONE_THREAD,
    )


def _places(packages: Sequence[str]) -> list[str]:
    """Where these packages are: nothing else of the caller's path is known to the process."""
    places: dict[str, None] = {}
    for name in packages:
        spec = importlib.util.find_spec(name)
        folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
        if spec is None or (folder or spec.origin) is None:
            raise ValueError(f"{name} is nowhere to be found")
        places[str(Path(folder or spec.origin or "").absolute().parent)] = None
    return list(places)


def serve(name: str) -> None:
    """The life of the second process: batches in, results out, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    batches, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever is printed does not come between.
    os.dup2(2, 1)
    module, _, function = name.partition(":")
    run = getattr(importlib.import_module(module), function)
    taken_type, *_ = get_type_hints(run).values()
    decode = msgspec.msgpack.Decoder(taken_type).decode
    _send(results, b"hello")
    while batch := _receive(batches):
        answer = b""
        # What it cannot do is done where it came from.
        with suppress(Exception):
            answer = msgspec.msgpack.encode(run(decode(batch)))
        _send(results, answer)


def _send(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(len(content).to_bytes(_LENGTH, "little"))
    pipe.write(content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None if there is none."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    size = int.from_bytes(length, "little")
    content = pipe.read(size)
    return content if len(content) == size else None
