"""A disk that keeps a record of what was asked of it, and fails when told to."""

import errno
import os
from collections import deque
from typing import Any

import pytest
from msgspec import Struct

from lamina.adapters.files import durable_writes as disk
from lamina.adapters.stores import jsonl

FULL = errno.ENOSPC
BROKEN = errno.EIO
# Not an error: the system takes a part of the bytes.
SHORT = 0


class Fault(Struct, frozen=True):
    """What a call does instead: it takes some bytes, and then fails or, if SHORT, is content."""

    error: int
    takes: int = 0


class Event(Struct, frozen=True):
    """Bytes that were written, or a sync: `done` says whether it said so."""

    data: bytes | None = None
    done: bool = True


class FaultyOs:
    """Stands in for `os` in the store. Faults are used up one per call; None is no fault."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.writes: deque[Fault | None] = deque()
        self.syncs: deque[Fault | None] = deque()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, handle: int, data: memoryview) -> int:
        fault = self.writes.popleft() if self.writes else None
        if fault is None:
            taken = os.write(handle, data)
        elif fault.takes:
            # A write that meets the end of the disk takes what fits; the next one fails.
            taken = os.write(handle, data[: fault.takes])
            if fault.error:
                self.writes.appendleft(Fault(fault.error))
        else:
            raise OSError(fault.error, os.strerror(fault.error))
        self.events.append(Event(bytes(data[:taken])))
        return taken

    def fdatasync(self, handle: int) -> None:
        self._sync(handle)

    def fsync(self, handle: int) -> None:
        self._sync(handle)

    def _sync(self, handle: int) -> None:
        fault = self.syncs.popleft() if self.syncs else None
        self.events.append(Event(done=fault is None))
        if fault:
            raise OSError(fault.error, os.strerror(fault.error))


def put_in(monkeypatch: pytest.MonkeyPatch) -> FaultyOs:
    faulty = FaultyOs()
    monkeypatch.setattr(jsonl, "os", faulty)
    monkeypatch.setattr(disk, "os", faulty)
    return faulty
