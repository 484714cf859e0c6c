"""Stores the index in a file: tables of terms and vectors, keyed by text digest.

Laws: the file is a cache (`cache_file`), and losing it loses nothing. Rows that cannot be written
are kept in memory and written later; so are rows that are cheap to recompute, so that no caller
waits for the disk. The file never contains the texts themselves.
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

# The maker of rows that store document graphs in place of chunk vectors.
GRAPHS = "graphs"
# Rows unused for this many days are dropped; a row's use is recorded once a week.
KEPT_DAYS, NOTED_DAYS = 90, 7
# Seconds to wait for another process that is using the file: the first time, and afterwards.
PATIENCE, IMPATIENCE = 5.0, 0.1
# Rows per query; SQLite accepts 32,766 variables, older versions far fewer.
AT_ONCE = 10_000
# Rows passed on at once.
HANDED_ON = 4096
# With at least this many digests, reading all rows may be faster, if there are at most this many
# rows per digest.
MANY, MANY_SHARE = 5_000, 3
# Rows written at once by a separate thread; other processes may use the file in between.
WRITTEN_LATER = 4096
# The number of pending rows that triggers an immediate write.
MAX_WAITING = 65_536
DAY = 86_400


class ChunkData(Struct, frozen=True, gc=False):
    """A text's vector as float16 (empty if it has none), and its terms (None if packed in an
    outdated format)."""

    vector: bytes
    terms: bytes | None


TakeChunks = Callable[[dict[bytes, ChunkData]], object]


class IndexStats(Struct, frozen=True, kw_only=True):
    """Counts of the file's content: chunks by vector maker, `""` for terms alone."""

    path: str
    bytes: int
    chunks: dict[str, int]
    # Graphs of similar documents stored.
    graphs: int = 0
    # Chunks that could not be written, and renamed damaged files.
    unwritten: int = 0
    set_aside: tuple[str, ...] = ()


class ChunkFile:
    """An index file, safe to use from several threads and processes on the same path."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._lock = RLock()
        self._makers: dict[str, int] = {}
        # Makers are numbered within a file; another file may number them differently.
        self._cache = CacheFile(path, INDEX, patience=PATIENCE, on_close=self._makers.clear)
        # Unwritten rows: pending until `write_later`, or refused by the disk.
        self._unwritten: dict[tuple[str, bytes], ChunkData] = {}
        self._is_waiting = False
        self._readable = self._writable = True
        self._notes_lock = Lock()
        self._notes: list[str] = []
        self._past_notes: set[str] = set()

    # -- for callers -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Allow operations that failed last time to be retried."""
        with self._lock:
            self._readable = self._writable = True
            self._cache.close_if_deleted()

    def fetch(self, maker: str, digests: Collection[bytes]) -> dict[bytes, ChunkData]:
        """Return the data stored for texts; rows with a wrong checksum are ignored."""
        chunks: dict[bytes, ChunkData] = {}
        self.fetch_batches(maker, digests, chunks.update)
        return chunks

    def fetch_batches(
        self,
        maker: str,
        digests: Collection[bytes],
        take: TakeChunks,
    ) -> None:
        """Pass on the stored data in batches, to save memory. If the file turns out to be damaged,
        rows may be passed on twice."""
        if not digests:
            return
        with self._lock:
            nothing: list[int] = []
            old = self._read(lambda file: self._fetch(file, maker, digests, take), nothing)
            if old:
                # Keeps rows from being dropped as unused; nothing is lost if this cannot be
                # written.
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
        """Store data computed for texts; in memory if the disk refuses. With `later`, defer writing
        until `write_later` or `close`, unless too many rows are already pending."""
        with self._lock:
            self._unwritten |= {(maker, digest): chunk for digest, chunk in chunks.items()}
            self._is_waiting |= later
            if not later or len(self._unwritten) >= MAX_WAITING:
                self._write_unwritten()

    def write_later(self) -> None:
        """Write pending rows in a separate thread, which finishes before the program exits."""
        if self._is_waiting:
            Thread(target=self._write_waiting, name="lamina-index-writer").start()

    def write(self) -> int:
        """Write rows that are still only in memory; return how many the disk refused."""
        with self._lock:
            if self._unwritten:
                self._write_unwritten()
            return len(self._unwritten)

    def notes(self) -> tuple[str, ...]:
        """Return new problems with the file since the last call, each only once."""
        # Uses a separate lock: reporting a slow disk must not wait for the disk.
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
        """Pass rows to `take`; return those whose use must be recorded."""
        old: list[int] = []
        number = self._maker(file, maker)
        if number is None:
            return old
        chunks: dict[bytes, ChunkData] = {}
        note_before = self._today() - NOTED_DAYS
        for digest, vector, terms, version, checksum, day, row in _rows(file, number, digests):
            # Damage may have turned blobs into numbers.
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
        """Write pending rows."""
        if self._is_waiting:
            self._write_unwritten()

    def _write_waiting(self) -> None:
        is_waiting = True
        while is_waiting:
            with self._lock:
                is_waiting = self._is_waiting and self._write_unwritten(WRITTEN_LATER)

    def _write_unwritten(self, limit: int | None = None) -> bool:
        """Write all or some of the unwritten rows; return whether any are left."""
        chunks = dict(islice(self._unwritten.items(), limit))
        is_written = self._write(lambda file: self._keep_chunks(file, chunks))
        if is_written:
            for key in chunks:
                del self._unwritten[key]
        # Rows that the disk refuses are kept until rows are next stored.
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
            # Rows are computed only if missing, damaged or outdated, so old rows are replaced.
            file.executemany(f"REPLACE INTO chunks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._sweep(file, today)

    def _sweep(self, file: sqlite3.Connection, today: int) -> None:
        """Occasionally drop rows that have not been used for a long time."""
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
            # The write may still fail, so the numbers are not cached.
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
        """Run `act`. After a timeout while waiting for another process, do not wait for it
        again."""
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
    """Yield the rows with these digests."""
    fields = "digest, vector, terms, terms_version, checksum, day, rowid"
    if len(digests) >= MANY:
        (all_rows,) = file.execute("SELECT count(*) FROM chunks").fetchone()
        if len(digests) * MANY_SHARE > all_rows:
            # Reading them sequentially is far cheaper than single look-ups.
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
    """Yield digests in groups that fit into a query, each with its placeholders."""
    at_once = min(AT_ONCE, file.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - 1)
    # Sorted: neighbours are on the same pages.
    sorted_digests = sorted(digests)
    for start in range(0, len(sorted_digests), at_once):
        some = sorted_digests[start : start + at_once]
        yield ",".join("?" * len(some)), some


def _checksum(digest: bytes, vector: bytes, terms: bytes) -> int:
    # Includes the key: a damaged SQLite index can lead to intact rows of other texts.
    return crc32(terms, crc32(vector, crc32(digest)))
