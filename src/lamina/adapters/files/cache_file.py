"""Opens, claims, writes and replaces SQLite files that are only caches.

Laws: losing the file loses nothing. A damaged file is renamed and a new one started; a file that is
not ours is left alone; one on a read-only disk is read as it is. Only the user who created it can
read it. The owning object defines the rows, handles disk errors, and admits one thread at a time.

Private: see `lamina` for what is public.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")

# The content is damaged: nothing written here violates a constraint of an intact table.
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
)
READ_ONLY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
# Permissions of a file's group and of all others.
OTHERS = stat.S_IRWXG | stat.S_IRWXO
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class CacheFileKind(Struct, frozen=True, kw_only=True):
    """A kind of cache file, and how to recognise it."""

    # In messages: "index", "an index".
    name: str
    with_article: str
    # In the header of each file of this kind.
    application: int
    version: int
    # Idempotent statements.
    schema: str
    # Queries that succeed on an intact file, and queries that find nothing in one.
    answers: tuple[str, ...]
    faults: tuple[str, ...] = ()
    # SQLite's cache size; None for the default.
    cache_kib: int | None = None


class ForeignDatabase(Exception):
    """The file is another program's database, or has another version."""


# Errors that any use of the file may raise. With a damaged schema, SQLite's messages may not be
# valid text.
CACHE_ERRORS = (sqlite3.Error, UnicodeDecodeError, OSError, ForeignDatabase)


class CacheFile:
    """A cache file, for one thread at a time; several processes may use the same path."""

    def __init__(
        self,
        path: Path,
        kind: CacheFileKind,
        *,
        patience: float,
        on_close: Callable[[], object] = lambda: None,
    ) -> None:
        """Set up the file without opening it. `patience` is how many seconds to wait for another
        process, from the next opening on; `on_close` is called whenever cached information about
        the file may be out of date."""
        self.path = path
        self.patience = patience
        self._kind = kind
        self._on_close = on_close
        self._connection: sqlite3.Connection | None = None

    def attempt(self, act: Callable[[sqlite3.Connection], T], say: Callable[[str], object]) -> T:
        """Run `act`; if the file turns out to be damaged, report that and retry with a new file.

        Raises: any of `CACHE_ERRORS`.
        """
        try:
            return act(self.open())
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if _code(error) not in DAMAGED:
                raise
            self._set_aside(error, say)
        return act(self.open())

    def open(self) -> sqlite3.Connection:
        """Return the connection, which remains open until `close`."""
        if self._connection is None:
            _create_private(self.path)
            uri = self.path.absolute().as_uri()
            try:
                self._connection = self._connect(f"{uri}?mode=rwc")
                if os.name == "posix":
                    _narrow(self.path)
            except sqlite3.OperationalError as error:
                # A complete file on a read-only disk can still be read.
                is_finished = self.path.is_file() and not Path(f"{self.path}-wal").exists()
                if _code(error) not in READ_ONLY or not is_finished:
                    raise
                self._connection = self._connect(f"{uri}?immutable=1")
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._on_close()

    def close_if_deleted(self) -> None:
        """Close the file if it was deleted, because writes to it would be lost."""
        if self._connection is not None and not self.path.exists():
            self.close()

    def size(self) -> int:
        """Return the size in bytes, including SQLite's files beside it."""
        return sum(_size(path) for path in _files(self.path))

    def damaged_files(self) -> list[Path]:
        """Return the renamed damaged files."""
        return sorted(self.path.parent.glob(f"{self.path.name}.damaged-*"))

    def __del__(self) -> None:
        # The file may never have been opened.
        if connection := getattr(self, "_connection", None):
            connection.close()

    def _connect(self, uri: str) -> sqlite3.Connection:
        file = sqlite3.connect(
            uri,
            uri=True,
            timeout=self.patience,
            isolation_level=None,
            # The owner's lock admits one thread at a time.
            check_same_thread=False,
        )
        # Invalid text is detected by its checksum, not by an error.
        file.text_factory = bytes
        try:
            # A crash of the machine may lose the last batches, but never the file.
            file.execute("PRAGMA synchronous = NORMAL")
            if self._kind.cache_kib is not None:
                file.execute(f"PRAGMA cache_size = -{self._kind.cache_kib}")
            # This process must not crash if another one truncates the file.
            file.execute("PRAGMA mmap_size = 0")
            _claim(file, self._kind)
        except BaseException:
            file.close()
            raise
        return file

    def _set_aside(self, error: Exception, say: Callable[[str], object]) -> None:
        """Rename the damaged file, unless another process already did."""
        self.close()
        if not self.path.exists() or not _is_damaged(self.path, self._kind):
            return
        number = 1
        while (aside := Path(f"{self.path}.damaged-{number}")).exists():
            number += 1
        for old, new in zip(_files(self.path), _files(aside), strict=True):
            with suppress(FileNotFoundError):
                os.rename(old, new)
        say(
            f"the {self._kind.name} {self.path} was damaged ({error}); it is now {aside.name}, "
            f"and was started again from scratch: nothing is lost but time"
        )


@contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit everything in the block, or nothing if it fails."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield file
        file.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")
        raise


def is_busy(error: Exception) -> bool:
    """Check whether another process is currently using the file."""
    return _code(error) in BUSY


def _claim(file: sqlite3.Connection, kind: CacheFileKind) -> None:
    """Check that the file is ours; claim a new one."""
    # In one transaction: another process may be creating the file now.
    file.execute("BEGIN")
    (application,) = file.execute("PRAGMA application_id").fetchone()
    (version,) = file.execute("PRAGMA user_version").fetchone()
    (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
    file.execute("COMMIT")
    if (application, version) == (kind.application, kind.version):
        return
    if application or version or tables:
        raise ForeignDatabase(
            f"it is a database of another program, or version {version} of {kind.with_article} "
            f"instead of {kind.version}, and is left as it is; move it away to have one here"
        )
    with suppress(sqlite3.OperationalError):
        # The file also works without this (on a network drive, or while in use by another process).
        file.execute("PRAGMA journal_mode = WAL")
    with transaction(file):
        for statement in kind.schema.split(";"):
            file.execute(statement)
        file.execute(f"PRAGMA application_id = {kind.application}")
        file.execute(f"PRAGMA user_version = {kind.version}")


def _is_damaged(path: Path, kind: CacheFileKind) -> bool:
    """Check whether a file that caused errors still does after reopening."""
    try:
        with closing(sqlite3.connect(path)) as file:
            if file.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return True
            for query in kind.answers:
                file.execute(query).fetchall()
            return any(file.execute(query).fetchone() is not None for query in kind.faults)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return _code(error) in DAMAGED


def _code(error: Exception) -> int:
    """Return SQLite's primary error code; 0 for other errors. Errors without a code result from
    unreadable content."""
    if not isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
        return 0
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _create_private(path: Path) -> None:
    """Create the missing folders and the file, readable by this user alone.

    Raises:
        OSError: a folder cannot be created.
    """
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # If it cannot be created, SQLite reports the reason. SQLite's files beside it get the same
    # permissions. An existing file is not opened: closing it would release locks held elsewhere in
    # this process.
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _narrow(path: Path) -> None:
    """Remove other users' access to a file if it belongs to this user."""
    for file in _files(path):
        with suppress(OSError):
            status = file.stat()
            if status.st_mode & OTHERS and status.st_uid == os.geteuid():
                file.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)


def _files(path: Path) -> tuple[Path, ...]:
    return tuple(Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
