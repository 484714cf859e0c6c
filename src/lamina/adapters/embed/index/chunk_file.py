"""The file behind the index: tables of terms and vectors by the digest of the text.

Laws: it is a cache (`cache_file`), and losing it loses nothing. Rows that the disk refuses are kept
in memory and written later; so are rows that are cheap to make again, so that no caller waits for
the disk. It never contains the texts themselves.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import Any, TypeVar
from zlib import crc32

from msgspec import Struct

from lamina.adapters.files.cache_file import (
    CACHE_ERRORS,
    CacheFile,
    CacheFileKind,
    is_busy,
    transaction,
)
from lamina.core.selection.lexicon import TERMS_VERSION

COLUMNS = "maker, digest, vector, terms, terms_version, checksum, day"
INDEX = CacheFileKind(
    name="index",
    with_article="an index",
    application=0x4C414D58,  # "LAMX"
    version=1,
    schema="""
CREATE TABLE IF NOT EXISTS makers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS chunks (
  maker INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, terms BLOB NOT NULL,
  terms_version INTEGER NOT NULL, checksum INTEGER NOT NULL, day INTEGER NOT NULL,
  UNIQUE (maker, digest)
);
CREATE TABLE IF NOT EXISTS sweeps (day INTEGER NOT NULL);
""",
    answers=(
        f"SELECT {COLUMNS} FROM chunks LIMIT 1",
        "SELECT id, name FROM makers LIMIT 1",
        "SELECT day FROM sweeps LIMIT 1",
    ),
    faults=("SELECT 1 FROM makers WHERE typeof(id) <> 'integer' LIMIT 1",),
    cache_kib=32_768,
)


T = TypeVar("T")

# The maker of rows that are not chunks but graphs of documents, in the place of vectors.
GRAPHS = "graphs"
# Rows unused for this many days are dropped; the use of a row is noted once a week.
KEPT_DAYS, NOTED_DAYS = 90, 7
# How many seconds to wait for another process that uses the file: the first time, and afterwards.
PATIENCE, IMPATIENCE = 5.0, 0.1
# How many rows a query names; SQLite accepts 32,766 variables, older versions far fewer.
AT_ONCE = 10_000
# How many rows are passed on at once.
HANDED_ON = 4096
# From this many digests on it may pay to read all rows, if there are at most this many rows per
# digest.
MANY, MANY_SHARE = 5_000, 3
# How many rows a separate thread writes at once; other processes may use the file in between.
WRITTEN_LATER = 4096
# From this many rows on, waiting rows are written at once.
MAX_WAITING = 65_536
DAY = 86_400


class ChunkData(Struct, frozen=True, gc=False):
    """A text's vector as float16 (empty if it has none), and its terms (None if they were packed in
    another format than the current one)."""

    vector: bytes
    terms: bytes | None


TakeChunks = Callable[[dict[bytes, ChunkData]], object]


class IndexStats(Struct, frozen=True, kw_only=True):
    """The file's content: chunks by the maker of their vectors, `""` for terms alone."""

    path: str
    bytes: int
    chunks: dict[str, int]
    # Graphs of similar documents.
    graphs: int = 0
    # Chunks that could not be written, and damaged files beside this one.
    unwritten: int = 0
    set_aside: tuple[str, ...] = ()


class ChunkFile:
    """The file of an index, safe to use from several threads and processes on the same path."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._lock = RLock()
        self._makers: dict[str, int] = {}
        # Makers have numbers within a file; another file may have different ones.
        self._cache = CacheFile(path, INDEX, patience=PATIENCE, on_close=self._makers.clear)
        # Rows that are not written yet: they wait for `write_later`, or the disk refused them.
        self._unwritten: dict[tuple[str, bytes], ChunkData] = {}
        self._is_waiting = False
        self._readable = self._writable = True
        self._notes_lock = Lock()
        self._notes: list[str] = []
        self._past_notes: set[str] = set()

    # -- for callers -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Allow another attempt at what failed the last time."""
        with self._lock:
            self._readable = self._writable = True
            self._cache.close_if_deleted()

    def fetch(self, maker: str, digests: Collection[bytes]) -> dict[bytes, ChunkData]:
        """Return what is stored for texts; rows with a wrong checksum are ignored."""
        chunks: dict[bytes, ChunkData] = {}
        self.fetch_batches(maker, digests, chunks.update)
        return chunks

    def fetch_batches(
        self,
        maker: str,
        digests: Collection[bytes],
        take: TakeChunks,
    ) -> None:
        """Pass on what is stored in batches, so that not everything is in memory at once. If the
        file proves damaged on the way, rows may come twice."""
        if not digests:
            return
        with self._lock:
            nothing: list[int] = []
            old = self._read(lambda file: self._fetch(file, maker, digests, take), nothing)
            if old:
                # Keeps them from being dropped as unused; nothing is lost if the disk refuses.
                with suppress(sqlite3.Error), transaction(self._cache.open()) as file:
                    rows = [(self._today(), row) for row in old]
                    file.executemany("UPDATE chunks SET day = ? WHERE rowid = ?", rows)
            unwritten_chunks = {
                digest: self._unwritten[maker, digest]
                for digest in (digests if self._unwritten else ())
                if (maker, digest) in self._unwritten
            }
            if unwritten_chunks:
                take(unwritten_chunks)

    def find_known(self, maker: str, digests: Collection[bytes]) -> set[bytes]:
        """Return the texts that have a row, without reading the rows."""
        nothing: set[bytes] = set()
        with self._lock:
            known = self._read(lambda file: self._find_known(file, maker, digests), nothing)
            return known | {digest for digest in digests if (maker, digest) in self._unwritten}

    def keep(self, maker: str, chunks: Mapping[bytes, ChunkData], *, later: bool = False) -> None:
        """Store what was computed for texts; in memory if the disk refuses. With `later`, it waits
        for `write_later` or `close`, unless too many rows already wait."""
        with self._lock:
            self._unwritten |= {(maker, digest): chunk for digest, chunk in chunks.items()}
            self._is_waiting |= later
            if not later or len(self._unwritten) >= MAX_WAITING:
                self._write_unwritten()

    def write_later(self) -> None:
        """Write waiting rows in a separate thread. The program does not end before it is done."""
        if self._is_waiting:
            Thread(target=self._write_waiting, name="lamina-index-writer").start()

    def write(self) -> int:
        """Write rows that are only in memory now; return how many rows the disk refused."""
        with self._lock:
            if self._unwritten:
                self._write_unwritten()
            return len(self._unwritten)

    def notes(self) -> tuple[str, ...]:
        """Return the problems with the file since the last call; each is reported once."""
        # Not behind the other lock: reporting that the disk is slow must not wait for the disk.
        with self._notes_lock:
            notes, self._notes = tuple(self._notes), []
            return notes

    def stats(self) -> IndexStats:
        with self._lock:
            self._finish()
            nothing: dict[str, int] = {}
            counts = self._read(self._count, nothing)
            return IndexStats(
                path=str(self.path),
                bytes=self._cache.size(),
                chunks={name: count for name, count in counts.items() if name != GRAPHS},
                graphs=counts.get(GRAPHS, 0),
                unwritten=len(self._unwritten),
                set_aside=tuple(str(path) for path in self._cache.damaged_files()),
            )

    def clear(self) -> bool:
        """Delete all rows and free the space; return False if the file could not be changed."""
        with self._lock:
            self.begin()
            self._unwritten.clear()
            self._makers.clear()
            if not self._write(self._forget):
                return False

            def shrink(file: sqlite3.Connection) -> None:
                file.execute("VACUUM")
                file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

            return self._write(shrink)

    def close(self) -> None:
        with self._lock:
            self._finish()
            self._cache.close()

    # -- rows --------------------------------------------------------------------------------------

    def _fetch(
        self,
        file: sqlite3.Connection,
        maker: str,
        digests: Collection[bytes],
        take: TakeChunks,
    ) -> list[int]:
        """Pass rows to `take`; return those whose use is to be noted."""
        old: list[int] = []
        number = self._maker(file, maker)
        if number is None:
            return old
        chunks: dict[bytes, ChunkData] = {}
        note_before = self._today() - NOTED_DAYS
        for digest, vector, terms, version, checksum, day, row in _rows(file, number, digests):
            # Damage may have turned them into numbers.
            is_sound = type(digest) is type(vector) is type(terms) is bytes
            if is_sound and _checksum(digest, vector, terms) == checksum:
                chunks[digest] = ChunkData(vector, terms if version == TERMS_VERSION else None)
                if not isinstance(day, int) or day <= note_before:
                    old.append(row)
                if len(chunks) == HANDED_ON:
                    take(chunks)
                    chunks = {}
        take(chunks)
        return old

    def _finish(self) -> None:
        """Write waiting rows."""
        if self._is_waiting:
            self._write_unwritten()

    def _write_waiting(self) -> None:
        is_waiting = True
        while is_waiting:
            with self._lock:
                is_waiting = self._is_waiting and self._write_unwritten(WRITTEN_LATER)

    def _write_unwritten(self, limit: int | None = None) -> bool:
        """Write unwritten rows, or some of them; return whether more are left."""
        chunks = dict(islice(self._unwritten.items(), limit))
        is_written = self._write(lambda file: self._keep_chunks(file, chunks))
        if is_written:
            for key in chunks:
                del self._unwritten[key]
        # Rows that the disk refuses wait until rows are stored again.
        self._is_waiting = is_written and bool(self._unwritten)
        return self._is_waiting

    def _find_known(
        self, file: sqlite3.Connection, maker: str, digests: Collection[bytes]
    ) -> set[bytes]:
        number = self._maker(file, maker)
        if number is None:
            return set()
        return {
            digest
            for places, some in _in_pieces(file, digests)
            for (digest,) in file.execute(
                f"SELECT digest FROM chunks WHERE maker = ? AND digest IN ({places})",
                (number, *some),
            )
        }

    def _keep_chunks(
        self, file: sqlite3.Connection, chunks: Mapping[tuple[str, bytes], ChunkData]
    ) -> None:
        today = self._today()
        with transaction(file):
            names = {maker for maker, _ in chunks}
            for name in names - self._makers.keys():
                file.execute("INSERT OR IGNORE INTO makers (name) VALUES (?)", (name,))
            numbers = {name: self._maker(file, name) for name in names}
            rows = [
                (numbers[maker], digest, chunk.vector, terms, TERMS_VERSION, checksum, today)
                for (maker, digest), chunk in chunks.items()
                for terms in (chunk.terms or b"",)
                for checksum in (_checksum(digest, chunk.vector, terms),)
            ]
            # Only missing, damaged or outdated rows are ever made, so old rows are replaced.
            file.executemany(f"REPLACE INTO chunks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._sweep(file, today)

    def _sweep(self, file: sqlite3.Connection, today: int) -> None:
        """Once in a while, drop rows that have not been used for a long time."""
        (last,) = file.execute("SELECT max(day) FROM sweeps").fetchone()
        if isinstance(last, int) and today - NOTED_DAYS < last <= today:
            return
        file.execute("DELETE FROM sweeps")
        file.execute("INSERT INTO sweeps VALUES (?)", (today,))
        if last is not None:
            file.execute("DELETE FROM chunks WHERE day < ?", (today - KEPT_DAYS,))

    def _forget(self, file: sqlite3.Connection) -> None:
        with transaction(file):
            for table in ("chunks", "makers", "sweeps"):
                file.execute(f"DELETE FROM {table}")

    def _count(self, file: sqlite3.Connection) -> dict[str, int]:
        rows = file.execute(
            "SELECT name, count(*) FROM chunks JOIN makers ON makers.id = chunks.maker "
            "GROUP BY name ORDER BY name"
        )
        return {name.decode("utf-8", "replace"): count for name, count in rows}

    def _maker(self, file: sqlite3.Connection, name: str) -> int | None:
        if name not in self._makers:
            row = file.execute("SELECT id FROM makers WHERE name = ?", (name,)).fetchone()
            if row is None:
                return None
            if not isinstance(row[0], int):
                raise sqlite3.DatabaseError("a maker has no number")
            # The write may still fail, so its numbers are not remembered.
            if file.in_transaction:
                return row[0]
            self._makers[name] = row[0]
        return self._makers[name]

    def _today(self) -> int:
        return int(self._now() // DAY)

    # -- the file ----------------------------------------------------------------------------------

    def _read(self, act: Callable[[sqlite3.Connection], T], default: T) -> T:
        if not self._readable:
            return default
        try:
            return self._attempt(act)
        except CACHE_ERRORS as error:
            self._readable = self._writable = False
            self._say(f"the index {self.path} cannot be read ({error}); it is kept in memory only")
            return default

    def _write(self, act: Callable[[sqlite3.Connection], None]) -> bool:
        if not self._writable:
            return False
        try:
            self._attempt(act)
        except CACHE_ERRORS as error:
            self._writable = False
            self._say(
                f"the index {self.path} cannot be written ({error}); what is new is kept in memory "
                "only, and written later if that is possible then"
            )
            return False
        return True

    def _attempt(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Run `act`. After waiting for another process in vain, do not wait for it again."""
        try:
            return self._cache.attempt(act, self._say)
        except sqlite3.Error as error:
            if is_busy(error):
                self._cache.patience = IMPATIENCE
                self._cache.close()
            raise

    def _say(self, note: str) -> None:
        with self._notes_lock:
            if note not in self._past_notes:
                self._past_notes.add(note)
                self._notes.append(note)


def _rows(
    file: sqlite3.Connection, maker: int, digests: Collection[bytes]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the digests."""
    fields = "digest, vector, terms, terms_version, checksum, day, rowid"
    if len(digests) >= MANY:
        (all_rows,) = file.execute("SELECT count(*) FROM chunks").fetchone()
        if len(digests) * MANY_SHARE > all_rows:
            # Reading them in order is far cheaper than single look-ups.
            wanted_digests = frozenset(digests)
            rows = file.execute(f"SELECT {fields} FROM chunks WHERE +maker = ?", (maker,))
            yield from (row for row in rows if row[0] in wanted_digests)
            return
    for places, some in _in_pieces(file, digests):
        yield from file.execute(
            f"SELECT {fields} FROM chunks WHERE maker = ? AND digest IN ({places})", (maker, *some)
        )


def _in_pieces(
    file: sqlite3.Connection, digests: Collection[bytes]
) -> Iterator[tuple[str, list[bytes]]]:
    """Yield digests, as many at a time as a query may name, with the placeholders for them."""
    at_once = min(AT_ONCE, file.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - 1)
    # Sorted: neighbours are on the same pages.
    sorted_digests = sorted(digests)
    for start in range(0, len(sorted_digests), at_once):
        some = sorted_digests[start : start + at_once]
        yield ",".join("?" * len(some)), some


def _checksum(digest: bytes, vector: bytes, terms: bytes) -> int:
    # Includes the key: a damaged SQLite index leads to intact rows of other texts.
    return crc32(terms, crc32(vector, crc32(digest)))
