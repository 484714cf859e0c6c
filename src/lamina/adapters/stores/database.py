"""Creates and opens a store's SQLite file, and translates its errors.

Laws: a file that is not ours, or has a later version, is never written to. An empty file becomes
ours in one transaction, so several processes can create it at once, and if one is killed the next
one finishes. Durable data is on disk when its transaction returns: the write-ahead log is synced
with every commit (one sync, where a rollback journal needs three), and readers never wait for a
writer. Leases and snapshots may be lost in a power failure, and are not synced.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from lamina.adapters.files.durable_writes import sync_folder
from lamina.errors import JournalError, LaminaError, WriteFailed

# "lamn", so that other programs can identify the file.
APPLICATION = 0x6C616D6E
SCHEMA = 1
# The time a statement waits while another process writes.
BUSY_S = 30.0
_TABLES = """
create table session (
    key integer primary key, id text not null unique,
    epoch integer not null, owner text not null, until real not null,
    leaf text not null, last integer not null, size integer not null, written real not null,
    title text not null, totals blob
);
create table entry (
    session integer not null, seq integer not null, id text not null, parent text,
    kind text not null, line blob not null, primary key (session, seq)
);
create unique index entry_id on entry (session, id);
create table snapshot (
    session integer primary key, seq integer not null, last integer not null,
    size integer not null, state blob not null
);
create table blob (digest text primary key, bytes blob not null, put real not null);
"""


class Database:
    """A store's SQLite file, with connections to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Check whether the file exists and is not empty."""
        try:
            return self.path.stat().st_size > 0
        except OSError:
            return False

    def create(self) -> None:
        """Create the file if it does not exist.

        Raises:
            JournalError: it cannot be created.
        """
        if self.exists():
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                # Only if missing: closing a handle releases all of this process's locks on the
                # file.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with self.connect():
                pass
            sync_folder(self.path.parent)
        except OSError as error:
            raise JournalError(
                f"sessions cannot be stored in {str(self.path)!r}: {error}"
            ) from error

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for a block, and translate its errors."""
        connection = self.open()
        try:
            with self.telling_errors():
                yield connection
        finally:
            connection.close()

    def open(self) -> sqlite3.Connection:
        """Return a connection that the caller has to close.

        Raises:
            JournalError: the file cannot be opened, is damaged, or is not a store of ours.
        """
        with self.telling_errors():
            try:
                return self._open("mode=rw")
            except sqlite3.OperationalError as error:
                if not _is_refused(error):
                    raise
                self._check_place()
            # If there is no log, no process has the file open for writing.
            return self._open("immutable=1")

    def _open(self, how: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{how}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        # A flipped byte in a name must not make the rest unreadable.
        connection.text_factory = _decode_text
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_place(self) -> None:
        """
        Raises:
            JournalError: the path is a folder, or the file cannot be read on this disk.
        """
        if self.path.is_dir():
            raise JournalError(f"{str(self.path)!r} is a folder, not a session database")
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise JournalError(
                f"{str(self.path)!r} cannot be read here: its newest entries are in {log.name!r}, "
                f"which needs a writable folder. Copy both files to one"
            )

    def _check(self, connection: sqlite3.Connection) -> None:
        if not _pragma(connection, "application_id") and self._is_empty(connection):
            # Another process created the file but not yet its tables, or was killed in between.
            _make_tables(connection)
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        if application != APPLICATION:
            raise JournalError(
                f"{str(self.path)!r} is not a session database but another program's; it was not "
                f"changed"
            )
        if version > SCHEMA:
            raise JournalError(
                f"{str(self.path)!r} has version {version}, but this Lamina reads versions up to "
                f"{SCHEMA}; use a newer Lamina"
            )
        connection.execute("pragma synchronous = full")
        # On macOS, a plain sync reaches only the drive's own cache.
        connection.execute("pragma fullfsync = on")
        connection.execute("pragma checkpoint_fullfsync = on")
        # Overwrite deleted rows, so that their content is erased.
        connection.execute("pragma secure_delete = on")

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        """Check whether the file is empty now: another process may be creating it."""
        if self.path.stat().st_size == 1:
            # SQLite mistakes any one-byte file for an empty database.
            return False
        connection.execute("begin")
        try:
            return _has_nothing(connection)
        finally:
            if connection.in_transaction:
                connection.execute("rollback")

    @contextmanager
    def telling_errors(self, session: str | None = None) -> Iterator[None]:
        """Raises:
        WriteFailed: data for `session` could not be written.
        JournalError: any other error of the database.
        """
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise self._translate(error, session) from error

    def _translate(self, error: Exception, session: str | None) -> LaminaError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_NOTADB"):
            return JournalError(
                f"{str(self.path)!r} is not a session database, or its beginning was overwritten; "
                f"it was not changed"
            )
        # SQLite's message about a damaged schema quotes the schema, and may not be valid text.
        is_quoted = isinstance(error, UnicodeDecodeError)
        if is_quoted or name.startswith("SQLITE_CORRUPT"):
            return self._damaged("malformed database schema" if is_quoted else str(error))
        if session is not None:
            return WriteFailed(session, f"{self.path}: {error}")
        return JournalError(f"{str(self.path)!r} cannot be used: {error}")

    def check_structure(self, connection: sqlite3.Connection) -> None:
        """Check the file of a session with missing entries. A damaged line affects only itself, but
        a damaged page or index may make new rows unfindable.

        Raises:
            JournalError: a page or an index is damaged.
        """
        (found,) = connection.execute("pragma integrity_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(" ".join(found.split()))

    def _damaged(self, what: str) -> JournalError:
        return JournalError(
            f"{str(self.path)!r} is damaged ({what}); no entry was added. `lamina verify`, "
            f"`lamina export` and `lamina repair` still read what is left of each session; or "
            f"restore the file from a backup"
        )


@contextmanager
def transaction(connection: sqlite3.Connection, *, durable: bool = True) -> Iterator[None]:
    """Commit everything in a block or nothing; with `durable`, it is on disk when the block
    ends."""
    connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def seal(data: bytes) -> bytes:
    """Prefix bytes with their checksum, where nothing else verifies them."""
    return crc32(data).to_bytes(4, "big") + data


def unseal(sealed: object) -> bytes | None:
    """Verify and return sealed bytes; None if they have changed."""
    if not isinstance(sealed, bytes) or sealed[:4] != crc32(sealed[4:]).to_bytes(4, "big"):
        return None
    return sealed[4:]


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("pragma auto_vacuum = incremental")
    _become_wal(connection)
    with transaction(connection):
        # Another process may have been faster.
        if _has_nothing(connection):
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {SCHEMA}")


def _become_wal(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log, waiting for other processes, which SQLite itself does not do
    here."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _is_refused(error: sqlite3.Error) -> bool:
    """Check whether an error means that the file cannot be opened without writing beside it, or at
    all."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"pragma {name}").fetchone()
    return int(value)


def _has_nothing(connection: sqlite3.Connection) -> bool:
    if _pragma(connection, "application_id") or _pragma(connection, "user_version"):
        return False
    (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
    return not tables
