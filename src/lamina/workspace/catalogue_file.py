"""The file behind a catalogue: what was made of notes, and the stamps of the files it was made of.

Laws: it is a cache, and losing it loses nothing. A row counts only for a file that bears its very
stamp, so whoever wrote it, and in whatever order, it is right or unused. A file that is damaged is
put aside under another name and begun anew; one that is not ours is left alone; where the disk
takes nothing, nothing is kept.
"""

import gc
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from lamina.notes.reading import READER_VERSION
from lamina.values.note import Note

T = TypeVar("T")

# "LAMN", in the header of every SQLite file that is one of ours.
APPLICATION = 0x4C414D4E
VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
  path TEXT NOT NULL PRIMARY KEY, stamp BLOB NOT NULL, settled INTEGER NOT NULL,
  reader INTEGER NOT NULL, note BLOB NOT NULL, checksum INTEGER NOT NULL
)
"""
COLUMNS = "path, stamp, settled, reader, note, checksum"
# How long another process may hold the file, in seconds.
PATIENCE = 5.0

# What is wrong with the content. Nothing that is written here breaks a constraint of a sound table.
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
)
READ_ONLY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class Known(Struct, frozen=True, gc=False):
    """A note, and the stamp of the file it was read from: its times, size and number. Not `settled`
    if the file was so young that it may have changed since without its stamp telling."""

    stamp: bytes
    settled: bool
    note: Note


class _NotOurs(Exception):
    """The file is a database of something else, or of another version."""


# A damaged schema makes messages that are no text.
_TROUBLE = (sqlite3.Error, UnicodeDecodeError, OSError, _NotOurs)


class CatalogueFile:
    """Safe to use from several threads, and from several processes on the same path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        # Once the disk failed it is left alone: what is lost is time, in the next process.
        self._usable = True
        self._notes: list[str] = []

    # -- what callers do ---------------------------------------------------------------------------

    def load(self) -> dict[str, Known]:
        """Every note that is kept, by path; rows that do not prove themselves are as good as none,
        and so are those of another reader."""
        nothing: dict[str, Known] = {}
        with _collecting_later():
            return self._try(_read, nothing, "read")

    def keep(self, known: Iterable[tuple[str, Known]], gone: Iterable[str]) -> None:
        """Keeps notes and forgets those that are `gone`, all of it or nothing."""
        rows = [row for path, each in known for row in _row(path, each)]
        forgotten = [(path,) for path in gone if _is_text(path)]
        if not rows and not forgotten:
            return

        def write(file: sqlite3.Connection) -> None:
            with _writing(file):
                file.executemany("DELETE FROM notes WHERE path = ?", forgotten)
                file.executemany(f"REPLACE INTO notes ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", rows)

        self._try(write, None, "written")

    def notes(self) -> tuple[str, ...]:
        """What went wrong with the file since this was last asked."""
        with self._lock:
            notes, self._notes = tuple(self._notes), []
            return notes

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Nobody uses it any more; a lock that was never made is no matter either.
        if connection := getattr(self, "_connection", None):
            connection.close()

    # -- the file ----------------------------------------------------------------------------------

    def _try(self, act: Callable[[sqlite3.Connection], T], otherwise: T, done: str) -> T:
        with self._lock:
            if not self._usable:
                return otherwise
            try:
                return self._attempt(act)
            except _TROUBLE as error:
                self.close()
                # Another process that is just there may be gone the next time.
                self._usable = _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                self._notes.append(
                    f"the catalogue {self.path} cannot be {done} ({error}); notes are held in "
                    "memory only, and read again in the next process"
                )
                return otherwise

    def _attempt(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Does it; if the file proves damaged, with a new one."""
        try:
            return act(self._open())
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if _code(error) not in DAMAGED:
                raise
            self._set_aside(error)
        return act(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and not self.path.exists():
            # Deleted under our hands: what is written there would be for nobody.
            self.close()
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            place = self.path.absolute().as_uri()
            try:
                self._connection = _connect(f"{place}?mode=rwc")
            except sqlite3.OperationalError as error:
                # A finished file on a disk that takes nothing: it can be read as it is.
                finished = self.path.is_file() and not Path(f"{self.path}-wal").exists()
                if _code(error) not in READ_ONLY or not finished:
                    raise
                self._connection = _connect(f"{place}?immutable=1")
        return self._connection

    def _set_aside(self, error: Exception) -> None:
        """Gives the damaged file another name, unless another process did so already."""
        self.close()
        if not self.path.exists() or not _is_damaged(self.path):
            return
        number = 1
        while (aside := Path(f"{self.path}.damaged-{number}")).exists():
            number += 1
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{aside}{suffix}")
        self._notes.append(
            f"the catalogue {self.path} was damaged ({error}); it is now {aside.name}, and was "
            "begun anew: nothing is lost but time"
        )


# -- rows ------------------------------------------------------------------------------------------


def _row(path: str, known: Known) -> Iterator[tuple[str, bytes, bool, int, bytes, int]]:
    """A row of the table; none for a note that cannot be written down, which is read again."""
    # Properties may hold numbers beyond 64 bits, and names of files what is no text.
    with suppress(OverflowError, UnicodeEncodeError, TypeError):
        note = msgspec.msgpack.encode(known.note)
        checksum = _checksum(path.encode(), known.stamp, known.settled, note)
        yield path, known.stamp, known.settled, READER_VERSION, note, checksum


def _read(file: sqlite3.Connection) -> dict[str, Known]:
    known: dict[str, Known] = {}
    decode = msgspec.msgpack.Decoder(Note).decode
    # As they stand, one after the other.
    for path, stamp, settled, reader, note, checksum in file.execute(
        f"SELECT {COLUMNS} FROM notes"
    ):
        is_sound = type(path) is type(stamp) is type(note) is bytes and settled in (0, 1)
        if reader != READER_VERSION or not is_sound:
            continue
        if _checksum(path, stamp, settled, note) != checksum:
            continue
        with suppress(msgspec.MsgspecError):
            read = decode(note)
            known[read.path] = Known(stamp, bool(settled), read)
    return known


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Without looking for garbage among hundreds of thousands of new things that are all kept: it
    takes three times as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _checksum(path: bytes, stamp: bytes, settled: bool, note: bytes) -> int:
    return crc32(note, crc32(stamp, crc32(path, settled)))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- SQLite ----------------------------------------------------------------------------------------


def _connect(place: str) -> sqlite3.Connection:
    # One thread at a time is what the lock is for.
    file = sqlite3.connect(
        place, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    # Text that is none is found out by its checksum, not by an error.
    file.text_factory = bytes
    try:
        # A crash of the machine may cost the last batches, never the file.
        file.execute("PRAGMA synchronous = NORMAL")
        # A file that somebody cuts off must not take this process with it.
        file.execute("PRAGMA mmap_size = 0")
        _claim(file)
    except BaseException:
        file.close()
        raise
    return file


def _claim(file: sqlite3.Connection) -> None:
    """Makes sure that the file is ours; a new one is made so."""
    (application,) = file.execute("PRAGMA application_id").fetchone()
    (version,) = file.execute("PRAGMA user_version").fetchone()
    if (application, version) == (APPLICATION, VERSION):
        return
    (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise _NotOurs(
            f"it is a database of another program, or version {version} of a catalogue instead of "
            f"{VERSION}, and is left as it is; move it away to have one here"
        )
    with suppress(sqlite3.OperationalError):
        # Where it cannot be had (a network's disk, another process just there), it works without.
        file.execute("PRAGMA journal_mode = WAL")
    with _writing(file):
        file.execute(SCHEMA)
        file.execute(f"PRAGMA application_id = {APPLICATION}")
        file.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _writing(file: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")
        raise


def _code(error: Exception) -> int:
    """What kind of error it is, without SQLite's finer distinctions; 0 if it is none of SQLite's.
    What has no number comes from content that cannot be read."""
    if not isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
        return 0
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _is_damaged(path: Path) -> bool:
    """Whether a file that made trouble still does, read anew."""
    try:
        with closing(sqlite3.connect(path)) as file:
            if file.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return True
            file.execute(f"SELECT {COLUMNS} FROM notes LIMIT 1").fetchall()
            return False
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return _code(error) in DAMAGED
