"""Manages an embedded model's slots: their sessions, their memory, and their files on disk.

Laws: a session keeps its slot, and with it its cache, until more sessions than slots need one; then
the session whose last turn is longest ago loses it. Slots are assigned first come, first served. A
session's computed state can be kept on disk between turns and between processes: losing it costs
nothing but time, it is used only with the model file it was made with, and only its owner can read
it, as it contains the conversation. The least recently used is removed first.
"""

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct

from lamina.adapters.providers.local.gguf import ARCHITECTURE, read_metadata

# The memory for a model's slots, unless a number of slots is configured.
MAX_BYTES = 2 << 30
_NUMBER_BYTES = 2  # llama.cpp keeps keys and values as half floats

_NAMES = (
    "block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length",
)  # fmt: skip


def token_bytes(path: Path) -> int | None:
    """Return the bytes that a token takes in a slot; None if the file does not say.

    Raises:
        ModelMissing: the file cannot be read.
    """
    keys = {name: f"{ARCHITECTURE}.{name}" for name in _NAMES}
    metadata = read_metadata(path, tuple(keys.values()))
    facts: dict[str, Any] = {name: metadata.get(key) for name, key in keys.items()}
    blocks, width, heads = (facts[name] for name in _NAMES[:3])
    if not all(isinstance(fact, int) and fact > 0 for fact in (blocks, width, heads)):
        return None
    shared_heads = facts["attention.head_count_kv"]
    shared_heads = shared_heads if isinstance(shared_heads, int) and shared_heads > 0 else heads
    lengths = (facts[name] or width // heads for name in _NAMES[4:])
    return int(blocks * shared_heads * sum(lengths) * _NUMBER_BYTES)


def most_slots(path: Path, window: int) -> int:
    """Return how many slots of this window fit into `MAX_BYTES`; at least one.

    Raises:
        ModelMissing: the file cannot be read.
    """
    return max(1, MAX_BYTES // ((token_bytes(path) or 1) * window))


SUFFIX = ".slot"
# A token takes about 23 KB with the smallest model, and several times that with larger ones.
MAX_SLOT_FILE_BYTES = 2 << 30
MAX_FILES = 32


class SlotFiles:
    """A folder with one file per session."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self._model = _identify(model)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def file_name(self, session: str) -> str:
        return _file_name(self._model, session)

    def has(self, session: str) -> bool:
        return (self.folder / self.file_name(session)).is_file()

    def drop(self, session: str) -> None:
        """Forget a session whose file turned out to be unusable."""
        with contextlib.suppress(OSError):
            (self.folder / self.file_name(session)).unlink()

    def trim(self) -> None:
        """Make room by removing the least recently used files."""
        trim_slot_files(self.folder)


def drop_slots(folder: Path, models: Iterable[Path], session: str) -> int:
    """Delete these models' files for a session; return the number of bytes freed."""
    freed = 0
    for model in models:
        path = folder / _file_name(_identify(model), session)
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            freed += size
    return freed


def _identify(model: Path) -> str:
    facts = model.stat()
    return f"{model.resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}"


def _file_name(model: str, session: str) -> str:
    """Return the name of a session's file, which reveals neither the model nor the session."""
    digest = hashlib.sha256(f"{model}\0{session}".encode("utf-8", "surrogatepass"))
    return f"{digest.hexdigest()[:40]}{SUFFIX}"


def trim_slot_files(
    folder: Path, max_bytes: int = MAX_SLOT_FILE_BYTES, max_files: int = MAX_FILES
) -> int:
    """Remove the oldest files beyond the limits; return how many were removed."""
    files = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime, facts.st_size, path))
    removed_count = size = 0
    for count, (_, length, path) in enumerate(sorted(files, reverse=True), 1):
        size += length
        if size > max_bytes or count > max_files:
            with contextlib.suppress(OSError):
                path.unlink()
                removed_count += 1
    return removed_count


class SlotLease(Struct, frozen=True, kw_only=True):
    """A slot for one request; `fresh` if it is new to the session. `previous_session` is the
    session that had it before, if any."""

    number: int
    fresh: bool = False
    previous_session: str | None = None


class _Wish:
    """A request that waits for a slot, or has one."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.lease: SlotLease | None = None
        self.grant = anyio.Event()


class Slots:
    def __init__(self, count: int) -> None:
        self._free = list(reversed(range(count)))
        # Sessions in the order in which they were last served.
        self._slots: OrderedDict[str, int] = OrderedDict()
        self._busy: set[int] = set()
        self._wishes: list[_Wish] = []

    @asynccontextmanager
    async def lease(self, session: str) -> AsyncIterator[SlotLease]:
        """Yield a session's slot, for one request at a time."""
        wish = _Wish(session)
        self._wishes.append(wish)
        self._grant()
        try:
            await wish.grant.wait()
            assert wish.lease is not None
            yield wish.lease
        finally:
            # If cancelled while waiting, the request may still have got a slot.
            if wish.lease is None:
                self._wishes.remove(wish)
            else:
                self._busy.discard(wish.lease.number)
                self._grant()

    def has(self, session: str) -> bool:
        """Return whether a session has a slot, and with it a cache."""
        return session in self._slots

    def release(self, session: str) -> None:
        """Free a session's slot for the next request."""
        if (slot := self._slots.get(session)) is not None and slot not in self._busy:
            del self._slots[session]
            self._free.append(slot)
            self._grant()

    def _grant(self) -> None:
        """Assign free slots directly to waiting requests, so that a session that returns at once
        cannot overtake them."""
        for wish in list(self._wishes):
            if (lease := self._find(wish.session)) is None:
                continue
            self._wishes.remove(wish)
            wish.lease = lease
            self._slots[wish.session] = lease.number
            self._slots.move_to_end(wish.session)
            self._busy.add(lease.number)
            wish.grant.set()

    def _find(self, session: str) -> SlotLease | None:
        if (own := self._slots.get(session)) is not None:
            return None if own in self._busy else SlotLease(number=own)
        if self._free:
            return SlotLease(number=self._free.pop(), fresh=True)
        for other, slot in self._slots.items():
            if slot not in self._busy:
                del self._slots[other]
                return SlotLease(number=slot, fresh=True, previous_session=other)
        return None
