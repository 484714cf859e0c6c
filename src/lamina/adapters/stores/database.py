"""The SQLite file of a store: made, opened and spoken to, with its errors in our words.

Laws: a file that is not ours, or of a later version, is never written to. An empty one becomes ours
in one transaction, so that many processes may begin it at once, and one that is killed meanwhile
leaves it to the next. What is durable is on disk when the transaction returns: the write-ahead log
is synced with every commit (one sync, where a rollback journal needs three), and readers never wait
for a writer. A lease and a snapshot may be lost with the power, and are not synced.
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

# "lamn", so that others know the file for what it is.
APPLICATION = 0x6C616D6E
SCHEMA = 1
# How long a statement waits for another process that writes.
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
    """Connections to one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether anything was ever kept there."""
        try:
            return self.path.stat().st_size > 0
        except OSError:
            return False

    def create(self) -> None:
        """Makes the file, if it is not there.

        Raises:
            JournalError: it cannot be made.
        """
        if self.exists():
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                # Only then: closing it gives up all locks that this process has on the file.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with self.connect():
                pass
            sync_folder(self.path.parent)
        except OSError as error:
            raise JournalError(f"no session can be kept in {self.path}: {error}") from error

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """A connection for the time of a block; errors in it are told in our words."""
        connection = self.open()
        try:
            with self.telling_errors():
                yield connection
        finally:
            connection.close()

    def open(self) -> sqlite3.Connection:
        """A connection that somebody has to close.

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
            # Nobody can have the file open for writing without a log.
            return self._open("immutable=1")

    def _open(self, how: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{how}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        # A flipped byte in a name must not keep anybody from reading the rest.
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
            JournalError: there is no file, or one that cannot be read where it is.
        """
        if self.path.is_dir():
            raise JournalError(f"{self.path} is a folder, where a database of sessions should be")
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise JournalError(
                f"{self.path} cannot be read here: its newest entries are in {log.name}, and that "
                f"takes a folder that can be written to. Copy both files to one"
            )

    def _check(self, connection: sqlite3.Connection) -> None:
        if not _pragma(connection, "application_id") and self._is_empty(connection):
            # Another process has made the file and not yet what is in it, or was killed before.
            _make_tables(connection)
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        if application != APPLICATION:
            raise JournalError(
                f"{self.path} is a database of something else, and no store of sessions; "
                f"it was not touched"
            )
        if version > SCHEMA:
            raise JournalError(
                f"{self.path} has version {version}, this one reads up to {SCHEMA}; use a newer "
                f"Lamina"
            )
        connection.execute("pragma synchronous = full")
        # On macOS, a plain sync only reaches the drive's own cache.
        connection.execute("pragma fullfsync = on")
        connection.execute("pragma checkpoint_fullfsync = on")
        # What is deleted is overwritten, as a file that is deleted is gone.
        connection.execute("pragma secure_delete = on")

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        """Whether nothing is in the file at this moment: another process may be making it."""
        if self.path.stat().st_size == 1:
            # SQLite takes one byte of anything for an empty database.
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
        WriteFailed: what was to be written to `session` could not be.
        JournalError: anything else that the database says.
        """
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise self._translate(error, session) from error

    def _translate(self, error: Exception, session: str | None) -> LaminaError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_NOTADB"):
            return JournalError(
                f"{self.path} is no database of sessions, or its beginning is overwritten; it was "
                f"not touched"
            )
        # What SQLite says of a damaged schema quotes it, and need not be text.
        is_quoted = isinstance(error, UnicodeDecodeError)
        if is_quoted or name.startswith("SQLITE_CORRUPT"):
            return self._damaged("malformed database schema" if is_quoted else str(error))
        if session is not None:
            return WriteFailed(session, f"{self.path}: {error}")
        return JournalError(f"{self.path} cannot be used: {error}")

    def check_structure(self, connection: sqlite3.Connection) -> None:
        """For a session of which something is missing: lines that are damaged cost themselves, but
        in a damaged page or index, what is written might not be found again.

        Raises:
            JournalError: there is one.
        """
        (found,) = connection.execute("pragma integrity_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(" ".join(found.split()))

    def _damaged(self, what: str) -> JournalError:
        return JournalError(
            f"{self.path} is damaged ({what}); no entry was added to it. `lamina verify`, "
            f"`lamina export` and `lamina repair` work with what can be read of each session; "
            f"or restore the file from a copy"
        )


@contextmanager
def transaction(connection: sqlite3.Connection, *, durable: bool = True) -> Iterator[None]:
    """All of a block, or nothing of it; on disk at its end if it is `durable`."""
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
    """Bytes with their checksum, for what nothing else would prove."""
    return crc32(data).to_bytes(4, "big") + data


def unseal(sealed: object) -> bytes | None:
    """What was sealed; None if it is not as it was."""
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
    """Changing the kind of journal does not wait for others by itself."""
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
    """Whether a file could not be opened, or not without writing beside it."""
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
