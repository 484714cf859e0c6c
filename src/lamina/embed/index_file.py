"""The file behind the index: what was made of texts, by the digest of the text.

Laws: it is a cache, and losing it loses nothing. A file that is damaged is put aside under another
name and begun anew; one that is not ours is left alone. What the disk does not take is held in
memory and offered to it again. Texts themselves are never in it.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from msgspec import Struct

from lamina.selection.packing import TERMS_VERSION

T = TypeVar("T")

# "LAMX", in the header of every SQLite file that is one of ours.
APPLICATION = 0x4C414D58
VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS makers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS chunks (
  maker INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, terms BLOB NOT NULL,
  terms_version INTEGER NOT NULL, checksum INTEGER NOT NULL, day INTEGER NOT NULL,
  UNIQUE (maker, digest)
);
CREATE TABLE IF NOT EXISTS sweeps (day INTEGER NOT NULL);
"""
# Whose rows are no chunks but graphs of documents, which stand where vectors do.
GRAPHS = "graphs"
COLUMNS = "maker, digest, vector, terms, terms_version, checksum, day"
# What nobody asked for in so many days goes; that a row was asked for is noted once a week.
KEPT_DAYS, NOTED_DAYS = 90, 7
# How long another process may hold the file, in seconds; once it did, it is no longer waited for.
PATIENCE, IMPATIENCE = 5.0, 0.1
# How many rows are asked for at once; SQLite takes 32,766 variables, older ones far fewer.
AT_ONCE = 10_000
# How many rows are handed on at once.
TAKEN = 4096
# From so many on it may pay to read all there is; if that is not more than so many times as many.
MANY, MANY_SHARE = 5_000, 3
DAY = 86_400

# What is wrong with the content. Nothing that is written here breaks a constraint of a sound table.
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
)
READ_ONLY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class Made(NamedTuple):
    """What was made of one text: its vector as float16 (empty if it has none), and its terms (None
    if they were packed in another way than now)."""

    vector: bytes
    terms: bytes | None


class Stats(Struct, frozen=True, kw_only=True):
    """What the file holds: chunks by who made their vectors, `""` for terms alone."""

    path: str
    bytes: int
    chunks: dict[str, int]
    # Of documents: which are like which.
    graphs: int = 0
    # Chunks that the file did not take, and damaged files beside it.
    unwritten: int = 0
    set_aside: tuple[str, ...] = ()


class _NotOurs(Exception):
    """The file is a database of something else, or of another version."""


# A damaged schema makes messages that are no text.
_TROUBLE = (sqlite3.Error, UnicodeDecodeError, OSError, _NotOurs)


class ChunkFile:
    """Safe to use from several threads, and from several processes on the same path."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._makers: dict[str, int] = {}
        # What the disk has not taken.
        self._unwritten: dict[tuple[str, bytes], Made] = {}
        self._readable = self._writable = True
        self._patience = PATIENCE
        self._telling = Lock()
        self._notes: list[str] = []
        self._said: set[str] = set()

    # -- what callers do ---------------------------------------------------------------------------

    def begin(self) -> None:
        """What failed the last time is tried again from here on."""
        with self._lock:
            self._readable = self._writable = True
            if self._connection is not None and not self.path.exists():
                # Deleted under our hands: what is written there would be for nobody.
                self.close()

    def fetch(self, maker: str, digests: Collection[bytes]) -> dict[bytes, Made]:
        """What is known of texts; rows that do not prove themselves are as good as none."""
        found: dict[bytes, Made] = {}
        self.fetch_each(maker, digests, found.update)
        return found

    def fetch_each(
        self, maker: str, digests: Collection[bytes], take: Callable[[dict[bytes, Made]], object]
    ) -> None:
        """The same, some at a time: not all has to be in memory at once. A file that proves damaged
        meanwhile may give the same once more."""
        if not digests:
            return
        with self._lock:
            nothing: list[int] = []
            old = self._read(lambda file: self._fetch(file, maker, digests, take), nothing)
            if old:
                # Only so that it is not dropped one day; nothing is lost if the disk refuses.
                with suppress(sqlite3.Error), self._writing(self._open()) as file:
                    rows = [(self._today(), row) for row in old]
                    file.executemany("UPDATE chunks SET day = ? WHERE rowid = ?", rows)
            held = {
                digest: self._unwritten[maker, digest]
                for digest in (digests if self._unwritten else ())
                if (maker, digest) in self._unwritten
            }
            if held:
                take(held)

    def keep(self, maker: str, made: Mapping[bytes, Made]) -> None:
        """Keeps what was made of texts; in memory if it cannot be on the disk."""
        with self._lock:
            self._unwritten |= {(maker, digest): each for digest, each in made.items()}
            if self._write(self._keep_unwritten):
                self._unwritten.clear()

    def notes(self) -> tuple[str, ...]:
        """What went wrong with the file since this was last asked; each is said once."""
        # Not behind the other lock: nobody waits for the disk to be told that it is slow.
        with self._telling:
            notes, self._notes = tuple(self._notes), []
            return notes

    def stats(self) -> Stats:
        with self._lock:
            nothing: dict[str, int] = {}
            counted = self._read(self._count, nothing)
            aside = sorted(self.path.parent.glob(f"{self.path.name}.damaged-*"))
            return Stats(
                path=str(self.path),
                bytes=sum(_size(each) for each in _files(self.path)),
                chunks={name: count for name, count in counted.items() if name != GRAPHS},
                graphs=counted.get(GRAPHS, 0),
                unwritten=len(self._unwritten),
                set_aside=tuple(str(each) for each in aside),
            )

    def clear(self) -> bool:
        """Forgets everything and gives the room back; False if the file did not let it."""
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
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._makers.clear()

    def __del__(self) -> None:
        # Nobody uses it any more; a lock that was never made is no matter either.
        if connection := getattr(self, "_connection", None):
            connection.close()

    # -- rows --------------------------------------------------------------------------------------

    def _fetch(
        self,
        file: sqlite3.Connection,
        maker: str,
        wanted: Collection[bytes],
        take: Callable[[dict[bytes, Made]], object],
    ) -> list[int]:
        """Gives rows to `take`; returns those that it is to be noted of."""
        old: list[int] = []
        number = self._maker(file, maker)
        if number is None:
            return old
        found: dict[bytes, Made] = {}
        noted = self._today() - NOTED_DAYS
        for digest, vector, terms, version, checksum, day, row in _rows(file, number, wanted):
            # Where damage made numbers of them, there are no bytes to add up.
            sound = type(digest) is type(vector) is type(terms) is bytes
            if sound and _checksum(digest, vector, terms) == checksum:
                found[digest] = Made(vector, terms if version == TERMS_VERSION else None)
                if not isinstance(day, int) or day <= noted:
                    old.append(row)
                if len(found) == TAKEN:
                    take(found)
                    found = {}
        take(found)
        return old

    def _keep_unwritten(self, file: sqlite3.Connection) -> None:
        today = self._today()
        with self._writing(file):
            names = {maker for maker, _ in self._unwritten}
            for name in names - self._makers.keys():
                file.execute("INSERT OR IGNORE INTO makers (name) VALUES (?)", (name,))
            numbers = {name: self._maker(file, name) for name in names}
            rows = [
                (numbers[maker], digest, vector, terms, TERMS_VERSION, checksum, today)
                for (maker, digest), (vector, packed) in self._unwritten.items()
                for terms in (packed or b"",)
                for checksum in (_checksum(digest, vector, terms),)
            ]
            # Only what was missing, damaged or old is ever made: what stands there gives way.
            file.executemany(f"REPLACE INTO chunks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._sweep(file, today)

    def _sweep(self, file: sqlite3.Connection, today: int) -> None:
        """Drops what nobody asked for in a long time, once in a while."""
        (last,) = file.execute("SELECT max(day) FROM sweeps").fetchone()
        if isinstance(last, int) and today - NOTED_DAYS < last <= today:
            return
        file.execute("DELETE FROM sweeps")
        file.execute("INSERT INTO sweeps VALUES (?)", (today,))
        if last is not None:
            file.execute("DELETE FROM chunks WHERE day < ?", (today - KEPT_DAYS,))

    def _forget(self, file: sqlite3.Connection) -> None:
        with self._writing(file):
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
            # Numbers of a write that may yet fail are not remembered.
            if file.in_transaction:
                return row[0]
            self._makers[name] = row[0]
        return self._makers[name]

    def _today(self) -> int:
        return int(self._now() // DAY)

    # -- the file ----------------------------------------------------------------------------------

    def _read(self, act: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        if not self._readable:
            return otherwise
        try:
            return self._attempt(act)
        except _TROUBLE as error:
            self._readable = self._writable = False
            self._say(f"the index {self.path} cannot be read ({error}); it is kept in memory only")
            return otherwise

    def _write(self, act: Callable[[sqlite3.Connection], None]) -> bool:
        if not self._writable:
            return False
        try:
            self._attempt(act)
        except _TROUBLE as error:
            self._writable = False
            self._say(
                f"the index {self.path} cannot be written ({error}); what is new is kept in memory "
                "only, and written later if that is possible then"
            )
            return False
        return True

    def _attempt(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Does it; if the file proves damaged, with a new one."""
        try:
            return act(self._open())
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._patience = IMPATIENCE
                self.close()
            if _code(error) not in DAMAGED:
                raise
            self._set_aside(error)
        return act(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = self._connect(f"{self.path.absolute().as_uri()}?mode=rwc")
            except sqlite3.OperationalError as error:
                # A finished file on a disk that takes nothing: it can be read as it is.
                finished = self.path.is_file() and not Path(f"{self.path}-wal").exists()
                if _code(error) not in READ_ONLY or not finished:
                    raise
                place = f"{self.path.absolute().as_uri()}?immutable=1"
                self._connection = self._connect(place)
        return self._connection

    def _connect(self, place: str) -> sqlite3.Connection:
        file = sqlite3.connect(
            place,
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            # One thread at a time is what the lock is for.
            check_same_thread=False,
        )
        # Text that is none is found out by its checksum, not by an error.
        file.text_factory = bytes
        try:
            # A crash of the machine may cost the last batches, never the file.
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("PRAGMA cache_size = -32768")
            # A file that somebody cuts off must not take this process with it.
            file.execute("PRAGMA mmap_size = 0")
            self._claim(file)
        except BaseException:
            file.close()
            raise
        return file

    def _claim(self, file: sqlite3.Connection) -> None:
        """Makes sure that the file is ours; a new one is made so."""
        (application,) = file.execute("PRAGMA application_id").fetchone()
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if (application, version) == (APPLICATION, VERSION):
            return
        (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application or version or tables:
            raise _NotOurs(
                f"it is a database of another program, or version {version} of an index instead of "
                f"{VERSION}, and is left as it is; move it away to have one here"
            )
        with suppress(sqlite3.OperationalError):
            # Where it cannot be had (a network's disk, another process just there), it works
            # without.
            file.execute("PRAGMA journal_mode = WAL")
        with self._writing(file):
            for statement in SCHEMA.split(";"):
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _writing(self, file: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        file.execute("BEGIN IMMEDIATE")
        try:
            yield file
            file.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                file.execute("ROLLBACK")
            raise

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
        self._say(
            f"the index {self.path} was damaged ({error}); it is now {aside.name}, and was begun "
            "anew: nothing is lost but time"
        )

    def _say(self, note: str) -> None:
        with self._telling:
            if note not in self._said:
                self._said.add(note)
                self._notes.append(note)


def _rows(
    file: sqlite3.Connection, maker: int, wanted: Collection[bytes]
) -> Iterator[tuple[Any, ...]]:
    """The rows of the digests."""
    fields = "digest, vector, terms, terms_version, checksum, day, rowid"
    if len(wanted) >= MANY:
        (all_rows,) = file.execute("SELECT count(*) FROM chunks").fetchone()
        if len(wanted) * MANY_SHARE > all_rows:
            # One after the other as they stand is far cheaper than looking up each.
            asked = frozenset(wanted)
            rows = file.execute(f"SELECT {fields} FROM chunks WHERE +maker = ?", (maker,))
            yield from (row for row in rows if row[0] in asked)
            return
    at_once = min(AT_ONCE, file.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - 1)
    # In order: neighbours stand on the same pages.
    ordered = sorted(wanted)
    for start in range(0, len(ordered), at_once):
        some = ordered[start : start + at_once]
        places = ",".join("?" * len(some))
        yield from file.execute(
            f"SELECT {fields} FROM chunks WHERE maker = ? AND digest IN ({places})", (maker, *some)
        )


def _code(error: Exception) -> int:
    """What kind of error it is, without SQLite's finer distinctions. What has no number comes from
    content that cannot be read."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _checksum(digest: bytes, vector: bytes, terms: bytes) -> int:
    # Of the key, too: a damaged index leads to sound rows of other texts.
    return crc32(terms, crc32(vector, crc32(digest)))


def _is_damaged(path: Path) -> bool:
    """Whether a file that made trouble still does, read anew."""
    try:
        with closing(sqlite3.connect(path)) as file:
            if file.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return True
            for columns in (f"{COLUMNS} FROM chunks", "id, name FROM makers", "day FROM sweeps"):
                file.execute(f"SELECT {columns} LIMIT 1").fetchall()
            numbered = "SELECT count(*) FROM makers WHERE typeof(id) <> 'integer'"
            return bool(file.execute(numbered).fetchone() != (0,))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return _code(error) in DAMAGED


def _files(path: Path) -> tuple[Path, ...]:
    return tuple(Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
