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
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import IO, Generic, TypeVar, get_type_hints

import msgspec

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


def share_work(
    run: Callable[[B], R], batches: Iterable[B], packages: Sequence[str]
) -> Iterator[tuple[B, R]]:
    """Each batch with what `run` makes of it, in any order. That is a function of a module of ours;
    what it takes and gives can be sent as msgpack, and `packages` are all that it imports. Batches
    are asked for one at a time, from the caller's thread."""
    if not _can_help():
        yield from ((batch, run(batch)) for batch in batches)
        return
    helper = _Helper(run, packages)
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
    return processors > 1 and is_python and not getattr(sys, "frozen", False)


class _Helper(Generic[B, R]):
    """The second process, and the thread that talks to it."""

    def __init__(self, run: Callable[[B], R], packages: Sequence[str]) -> None:
        self._run = run
        self._packages = packages
        self._is_ready = Event()
        # It works on one batch, and one waits here; None is the end.
        self._given: Queue[B | None] = Queue(maxsize=1)
        # Batches with their results, as they come; None where there is none.
        self._results: Queue[tuple[B, R | None]] = Queue()
        self._open_count = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._attend, name="lamina-second-process", daemon=True)
        self._thread.start()

    def takes(self, batch: B) -> bool:
        """Whether it does this batch."""
        if not self._is_ready.is_set():
            return False
        with suppress(Full):
            self._given.put_nowait(batch)
            self._open_count += 1
            return True
        return False

    def finished(self) -> Iterator[tuple[B, R]]:
        """What it is done with."""
        while not self._results.empty():
            yield self._next_result()

    def rest(self) -> Iterator[tuple[B, R]]:
        """All other batches that it took."""
        with suppress(Empty):
            if (batch := self._given.get_nowait()) is not None:
                self._open_count -= 1
                yield batch, self._run(batch)
        while self._open_count:
            try:
                yield self._next_result(PATIENCE)
            except Empty:
                # Its thread gives the batch back.
                self.stop()
                yield self._next_result()

    def stop(self) -> None:
        """Ends it."""
        self._is_ready.clear()
        with suppress(Full):
            self._given.put_nowait(None)
        if self._process is not None:
            self._process.kill()

    def _next_result(self, patience: float | None = None) -> tuple[B, R]:
        batch, result = self._results.get(timeout=patience)
        self._open_count -= 1
        return batch, self._run(batch) if result is None else result

    def _attend(self) -> None:
        """Gives batches to the process; what it does not do is given back without a result."""
        try:
            process = self._process = _start(self._run, self._packages)
        except (OSError, ValueError):
            return
        try:
            self._give_all(process)
        finally:
            self._is_ready.clear()
            process.kill()
            process.communicate()
        # What came at the very last moment.
        with suppress(Empty):
            if (batch := self._given.get_nowait()) is not None:
                self._results.put((batch, None))

    def _give_all(self, process: "subprocess.Popen[bytes]") -> None:
        batches, results = process.stdin, process.stdout
        assert batches is not None
        assert results is not None
        decode = msgspec.msgpack.Decoder(get_type_hints(self._run)["return"]).decode
        # It says hello once it has imported what it needs.
        if _receive(results) is None:
            return
        self._is_ready.set()
        is_alive = True
        while is_alive and (batch := self._given.get()) is not None:
            result, answer = None, None
            with suppress(OSError, ValueError, TypeError, OverflowError):
                _send(batches, msgspec.msgpack.encode(batch))
                answer = _receive(results)
                result = decode(answer) if answer else None
            is_alive = answer is not None
            self._results.put((batch, result))


def _start(run: Callable[[B], R], packages: Sequence[str]) -> "subprocess.Popen[bytes]":
    # Isolated (-I), without the start-up of installed packages (-S): faster, and less to run.
    places, name = json.dumps(_places(packages)), f"{run.__module__}:{run.__name__}"
    command = [sys.executable, "-I", "-S", "-c", _START, places, name]
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
        folders = spec.submodule_search_locations if spec else None
        if not folders:
            raise ValueError(f"{name} is not a folder of modules")
        places[str(Path(next(iter(folders))).absolute().parent)] = None
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
