"""Stores a catalogue's parsed notes in a file, with the stamps of their source files.

Laws: the file is a cache (`files/cache_file.py`), and losing it loses nothing. A row is used only
for a file with exactly its stamp, so it is either correct or unused, whoever wrote it and when. If
the disk is not writable, nothing is saved.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import RLock, Thread
from typing import TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from lamina.adapters.files.cache_file import (
    CACHE_ERRORS,
    CacheFile,
    CacheFileKind,
    is_busy,
    transaction,
)
from lamina.core.notes.note_reader import READER_VERSION
from lamina.core.values.note import Note

T = TypeVar("T")
_Row = tuple[str, bytes, bool, int, bytes, int]

COLUMNS = "path, stamp, settled, reader, note, checksum"
CATALOGUE = CacheFileKind(
    name="catalogue",
    with_article="a catalogue",
    application=0x4C414D4E,  # "LAMN"
    version=1,
    schema="""
CREATE TABLE IF NOT EXISTS notes (
  path TEXT NOT NULL PRIMARY KEY, stamp BLOB NOT NULL, settled INTEGER NOT NULL,
  reader INTEGER NOT NULL, note BLOB NOT NULL, checksum INTEGER NOT NULL
)
""",
    answers=(f"SELECT {COLUMNS} FROM notes LIMIT 1",),
)
# Seconds to wait for another process that is using the file.
LOCK_SECONDS = 5.0


class KnownNote(Struct, frozen=True, gc=False):
    """A note, and the stamp of its source file: times, size and inode number. It is not `settled`
    if the file was so fresh that a later change may have left the same stamp."""

    stamp: bytes
    settled: bool
    note: Note


class CatalogueFile:
    """A catalogue's file, safe to use from several threads and processes on the same path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._cache = CacheFile(path, CATALOGUE, patience=LOCK_SECONDS)
        # Once the disk has failed, it is not retried; this only costs the next process time.
        self._usable = True
        self._warnings: list[str] = []
        # Changes to write later: notes, and paths of lost ones.
        self._waiting: list[tuple[Sequence[tuple[str, KnownNote]], Sequence[str]]] = []

    # -- for callers ------------------------------------------------------------------------------

    def load(self) -> dict[str, KnownNote]:
        """Return all saved notes by path; ignore rows with a wrong checksum or from another version
        of the reader."""
        nothing: dict[str, KnownNote] = {}
        return self._try(_read, nothing, "read")

    def keep(
        self,
        notes: Sequence[tuple[str, KnownNote]],
        lost_paths: Sequence[str],
        *,
        later: bool = False,
    ) -> None:
        """Save notes and delete those at `lost_paths`, all or nothing. With `later`, defer this
        until `write_later` or `close`."""
        with self._lock:
            self._waiting.append((notes, lost_paths))
        if not later:
            self._write_waiting()

    def write_later(self) -> None:
        """Write pending changes in a separate thread, which finishes before the program exits."""
        if self._waiting:
            Thread(target=self._write_waiting, name="lamina-catalogue-writer").start()

    def take_warnings(self) -> tuple[str, ...]:
        """Return problems with the file since the last call."""
        with self._lock:
            warnings, self._warnings = tuple(self._warnings), []
            return warnings

    def close(self) -> None:
        with self._lock:
            self._write_waiting()
            self._cache.close()

    # -- the file ----------------------------------------------------------------------------------

    def _write_waiting(self) -> None:
        with self._lock:
            while self._waiting:
                notes, lost_paths = self._waiting.pop(0)
                rows = [row for path, note in notes for row in _row(path, note)]
                lost_rows = [(path,) for path in lost_paths if _is_text(path)]
                if rows or lost_rows:
                    self._try(partial(_write, rows=rows, lost_rows=lost_rows), None, "written")

    def _try(self, act: Callable[[sqlite3.Connection], T], default: T, deed: str) -> T:
        with self._lock:
            if not self._usable:
                return default
            try:
                self._cache.close_if_deleted()
                return self._cache.attempt(act, self._warnings.append)
            except CACHE_ERRORS as error:
                self._cache.close()
                # If another process holds the file now, it may be free next time.
                self._usable = is_busy(error)
                self._warnings.append(
                    f"the catalogue {self.path} cannot be {deed} ({error}); notes are held in "
                    "memory only, and read again in the next process"
                )
                return default


# -- rows ------------------------------------------------------------------------------------------


def _row(path: str, entry: KnownNote) -> Iterator[_Row]:
    """Yield the row of a note; none if the note cannot be saved and so will be reread."""
    # Properties may contain numbers beyond 64 bits, and file names may be undecodable.
    with suppress(OverflowError, UnicodeEncodeError, TypeError):
        note = msgspec.msgpack.encode(entry.note)
        checksum = _checksum(path.encode(), entry.stamp, entry.settled, note)
        yield path, entry.stamp, entry.settled, READER_VERSION, note, checksum


def _write(file: sqlite3.Connection, rows: list[_Row], lost_rows: list[tuple[str]]) -> None:
    with transaction(file):
        file.executemany("DELETE FROM notes WHERE path = ?", lost_rows)
        file.executemany(f"REPLACE INTO notes ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", rows)


def _read(file: sqlite3.Connection) -> dict[str, KnownNote]:
    notes: dict[str, KnownNote] = {}
    decode = msgspec.msgpack.Decoder(Note).decode
    # In table order.
    for path, stamp, settled, reader, note, checksum in file.execute(
        f"SELECT {COLUMNS} FROM notes"
    ):
        is_sound = type(path) is type(stamp) is type(note) is bytes and settled in (0, 1)
        if reader != READER_VERSION or not is_sound:
            continue
        if _checksum(path, stamp, settled, note) != checksum:
            continue
        with suppress(msgspec.MsgspecError):
            decoded_note = decode(note)
            notes[decoded_note.path] = KnownNote(stamp, bool(settled), decoded_note)
    return notes


def _checksum(path: bytes, stamp: bytes, settled: bool, note: bytes) -> int:
    return crc32(note, crc32(stamp, crc32(path, settled)))


def _is_text(path: str) -> bool:
    with suppress(UnicodeEncodeError):
        path.encode()
        return True
    return False
