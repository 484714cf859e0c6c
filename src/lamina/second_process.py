"""Pure work on many batches, shared with a second process where that pays.

Laws: the results are those of doing all of it here, whichever process did what. A second process
that cannot be started, dies, hangs or gives nonsense costs time and nothing else: what it did not
give back is done here. It runs this package alone: it gets batches, and nothing of the caller's
code, arguments or environment.

Private: see `lamina` for what is public.
"""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import IO, Generic, TypeVar

import msgspec
from msgspec import Struct

B = TypeVar("B")
R = TypeVar("R")

# How many seconds the last batch is waited for; it takes a fraction of one.
PATIENCE = 5.0
_LENGTH = 8
# What a process needs to start at all, which excludes keys and tokens.
_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP")
_START = (
    "import json, sys; sys.path += json.loads(sys.argv[1]); "
    "from lamina.second_process import serve; serve(sys.argv[2])"
)


class Work(Struct, Generic[B, R], frozen=True, kw_only=True):
    """A function of a module that makes a result of a batch, and the types of both, which can be
    sent as msgpack. `packages` are those that it imports."""

    run: Callable[[B], R]
    batch: object
    result: object
    packages: tuple[str, ...] = ("lamina", "msgspec")

    @property
    def name(self) -> str:
        return f"{self.run.__module__}:{self.run.__name__}"


def share_work(work: Work[B, R], batches: Iterable[B]) -> Iterator[tuple[B, R]]:
    """Each batch with its result, in any order. Batches are asked for one at a time, from the
    caller's thread."""
    helper = _Helper(work) if _can_help() else None
    if helper is None:
        yield from ((batch, work.run(batch)) for batch in batches)
        return
    try:
        for batch in batches:
            yield from helper.finished()
            if not helper.takes(batch):
                yield batch, work.run(batch)
        for batch, result in helper.rest():
            yield batch, work.run(batch) if result is None else result
    finally:
        helper.stop()


def _can_help() -> bool:
    """Whether there is a second processor, and a plain Python to start."""
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    # A program that brings its own Python would start itself.
    is_python = Path(sys.executable or "").name.lower().startswith("python")
    return processors > 1 and is_python and not getattr(sys, "frozen", False)


class _Helper(Generic[B, R]):
    """The second process, and the thread that talks to it."""

    def __init__(self, work: Work[B, R]) -> None:
        self._work = work
        self._is_ready = Event()
        # One that it works on, and one that waits.
        self._given: Queue[B | None] = Queue(maxsize=1)
        self._results: Queue[tuple[B, R | None]] = Queue()
        self._open_count = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._attend, name="lamina-second-process", daemon=True)
        self._thread.start()

    def takes(self, batch: B) -> bool:
        """Whether it does this batch, too."""
        if not self._is_ready.is_set() or self._given.full():
            return False
        self._given.put(batch)
        self._open_count += 1
        return True

    def finished(self) -> Iterator[tuple[B, R]]:
        """What it is done with."""
        while not self._results.empty():
            batch, result = self._results.get()
            self._open_count -= 1
            yield batch, self._work.run(batch) if result is None else result

    def rest(self) -> Iterator[tuple[B, R | None]]:
        """All other batches that it took, those without a result that it did not do."""
        with suppress(Empty):
            batch = self._given.get_nowait()
            if batch is not None:
                self._open_count -= 1
                yield batch, None
        while self._open_count:
            try:
                pair = self._results.get(timeout=PATIENCE)
            except Empty:
                # It is killed, and its thread gives the batch back.
                self.stop()
                pair = self._results.get()
            self._open_count -= 1
            yield pair

    def stop(self) -> None:
        """Ends it. What it has not done is given back."""
        self._is_ready.clear()
        with suppress(Exception):
            self._given.put_nowait(None)
        if self._process is not None:
            self._process.kill()

    def _attend(self) -> None:
        """Gives batches to the process; without it, gives them back."""
        try:
            process = self._process = _start(self._work)
        except (OSError, ValueError):
            return
        decode = msgspec.msgpack.Decoder(self._work.result).decode
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                # It says hello once it has imported what it needs.
                is_alive = _receive(process.stdout) is not None
                if is_alive:
                    self._is_ready.set()
                while is_alive and (batch := self._given.get()) is not None:
                    result = None
                    with suppress(OSError, ValueError, TypeError, OverflowError):
                        _send(process.stdin, msgspec.msgpack.encode(batch))
                        answer = _receive(process.stdout)
                        is_alive = answer is not None
                        result = decode(answer) if answer else None
                    if result is None:
                        is_alive = is_alive and process.poll() is None
                    self._results.put((batch, result))
            finally:
                self._is_ready.clear()
                process.kill()
                with suppress(OSError):
                    process.stdin.close()
        # What came in the very last moment.
        with suppress(Empty):
            while True:
                if (late := self._given.get_nowait()) is not None:
                    self._results.put((late, None))


def _start(work: Work[B, R]) -> "subprocess.Popen[bytes]":
    # Isolated (-I), without the start-up of installed packages (-S): faster, and less to run.
    places = json.dumps(_places(work.packages))
    command = [sys.executable, "-I", "-S", "-c", _START, places, work.name]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _places(packages: Sequence[str]) -> list[str]:
    """Where these packages are: nothing else of the caller's path is known to the process."""
    places: dict[str, None] = {}
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ValueError(f"{name} is not a file")
        origin = Path(spec.origin).absolute()
        places[str(origin.parent.parent if spec.submodule_search_locations else origin.parent)] = (
            None
        )
    return list(places)


def serve(name: str) -> None:
    """The life of the second process: batches in, results out, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module, _, function = name.partition(":")
    batches, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever is printed does not come between.
    os.dup2(2, 1)
    works = importlib.import_module(module)
    work = works.WORKS[function]
    decode = msgspec.msgpack.Decoder(work.batch).decode
    _send(results, b"hello")
    while batch := _receive(batches):
        answer = b""
        # What it cannot do is done where it came from.
        with suppress(Exception):
            answer = msgspec.msgpack.encode(work.run(decode(batch)))
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
