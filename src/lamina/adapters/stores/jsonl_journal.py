"""A session file that is open for writing.

Laws: an append is one write, and on disk before it is acknowledged; the file is only ever added to.
Checkpoints stand between the entries, and cost a few bytes in a hundred.
"""

import contextlib
import os
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.adapters.stores.disk import read_at, sync_file, write_all
from lamina.adapters.stores.file_totals import sum_file
from lamina.adapters.stores.journal_index import index_path, write_index
from lamina.adapters.stores.session_file import is_at, read_bytes
from lamina.core.audit.totals import add_entries
from lamina.core.codec import entry_number
from lamina.core.journal import GrownEntries, walk_back
from lamina.core.journal.checkpoint import Trail, read_trail, write_checkpoint
from lamina.core.journal.journal_file import JournalFile
from lamina.core.journal.line_index import LineIndex
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import Entry
from lamina.core.values.totals import SessionTotals
from lamina.errors import JournalError, JournalGone, LaminaError, SessionMoved, WriteFailed

# A checkpoint is kept after so many bytes, and after this share of all there is (one in so many),
# if it is no more than one in so many bytes of what it follows.
CHECKPOINT_BYTES = 1 << 18
CHECKPOINT_SHARE = 50
CHECKPOINT_COST = 16


class JsonlJournal:
    """An open session file; it holds the lock until it is closed."""

    def __init__(self, handle: int, path: Path, session: str, file: JournalFile, size: int) -> None:
        self.journal = file.journal
        self.entries = GrownEntries(file.journal.entries)
        self.last = file.journal.last + file.journal.lost
        self._last_stored = file.journal.last
        self._handle: int | None = handle
        # A session that nobody refers to any more must not keep its lock.
        self._release = weakref.finalize(self, os.close, handle)
        self._path = path
        self._session = session
        self.size = size
        self._file = file
        self._ends_line = file.ends_line
        self._places = file.places
        self._covered = file.covered
        self._written: list[Entry] = []
        # Where the last checkpoint is, how much has to follow it until the next one, and what
        # that goes on from, once it was looked at.
        self._checkpointed = file.checkpointed
        self._least = CHECKPOINT_BYTES
        self._trail: Trail | None = None if file.checkpointed else Trail()
        # Totals for a list, and how many of the entries they are of.
        self._totals, self._totalled = file.totals, file.totalled

    async def append(self, entries: Sequence[Entry]) -> None:
        await self.write(entries)
        self.entries.add(entries)
        self._written += entries

    async def write(self, entries: Sequence[Entry]) -> None:
        """Puts the lines of `entries` into the file."""
        if self._handle is None:
            raise JournalError(f"session {self._session!r} is closed; open it again")
        data = write_lines(entries, self._last_stored)
        last = max(self.last, *(entry_number(entry.id) or 0 for entry in entries))
        # What is on disk and what is remembered must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write, self._handle, data, last)
        self._last_stored = last
        if self._places is not None:
            self._places.add(entries, data)
            if not self._places.sound or self._places.covered != self.size:
                self._places = None

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self.entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """The bytes of all of them are in memory."""

    @property
    def since_snapshot(self) -> int | None:
        return None if self._places is None else self.size - self._covered

    async def keep_snapshot(self, state: bytes) -> None:
        if self._places is None or self._handle is None:
            return
        index = self._places.index(state)
        self._covered = index.covered
        # An index is a convenience: nothing is lost if it cannot be written.
        with contextlib.suppress(OSError, LaminaError, OverflowError):
            await anyio.to_thread.run_sync(self._write_index, index)

    @property
    def is_checkpoint_due(self) -> bool:
        if self._places is None:
            return False
        return self.size - self._checkpointed >= max(self._least, self.size // CHECKPOINT_SHARE)

    async def keep_checkpoint(self, state: bytes) -> None:
        if self._places is None or self._handle is None:
            return
        # What is on disk and what is remembered must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True), contextlib.suppress(LaminaError):
            # A convenience: nothing is lost if it cannot be written, or only in part.
            await anyio.to_thread.run_sync(self._write_checkpoint, self._handle, state)

    def _write_checkpoint(self, handle: int, state: bytes) -> None:
        assert self._places is not None
        if self._trail is None:
            self._trail = read_trail(read_bytes(handle))
        line, trail = write_checkpoint(self._places, state, self._trail, self._add_totals())
        if len(line) * CHECKPOINT_COST > self.size - self._checkpointed:
            self._least = len(line) * CHECKPOINT_COST
            return
        self._write(handle, line, self.last)
        self._places.add((), line)
        self._trail, self._checkpointed, self._least = trail, trail.place, CHECKPOINT_BYTES

    def _add_totals(self) -> SessionTotals | None:
        """The totals so far, if they can be had without going through all there is again."""
        if self._totals is None and not self._checkpointed:
            self._totals = sum_file(self._file, self._written)
        elif self._totals is not None:
            self._totals = add_entries(self._totals, self.entries.since(self._totalled))
        self._totalled = len(self.entries)
        return self._totals

    def _write_index(self, index: LineIndex) -> None:
        totals = self._totals = self._add_totals() or sum_file(self._file, self._written)
        write_index(index_path(self._path), index.with_totals(totals))

    async def close(self) -> None:
        self._handle = None
        self._release()

    def _write(self, handle: int, data: bytes, last: int) -> None:
        if not is_at(handle, self._path):
            raise JournalGone(self._session, str(self._path))
        if os.fstat(handle).st_size != self.size:
            raise SessionMoved(self._session)
        if not self._ends_line:
            # Rubbish at the end gets a line of its own.
            data = b"\n" + data
        # From here on the ids are used up: whatever happens, their bytes may be in the file.
        self.last = last
        try:
            write_all(handle, data)
            sync_file(handle)
        except OSError as error:
            self._places = None
            self.size = size = os.fstat(handle).st_size
            self._ends_line = size == 0 or read_at(handle, 1, size - 1) == b"\n"
            raise WriteFailed(self._session, error.strerror or str(error)) from error
        self.size += len(data)
        self._ends_line = True
