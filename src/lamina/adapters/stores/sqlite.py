"""Stores a workspace's sessions and blobs as rows in a SQLite file.

Laws: an append is one transaction, and on disk before it is acknowledged; entry rows are never
changed. Only one opening writes at a time: its epoch, checked in the same transaction, shows
whether another process has taken over the session. Acknowledged entries survive process crashes and
power failures. Opening reads a bounded number of rows, however many there are: the header, the last
row, and the rows after the snapshot.
"""

import hashlib
import os
import sqlite3
import time
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread
from msgspec.structs import replace

from lamina.adapters.stores.blob_files import check_blob
from lamina.adapters.stores.database import Database, seal, transaction, unseal
from lamina.adapters.stores.lease import LEASE_S, forget_holder, is_held, new_holder
from lamina.adapters.stores.row_salvage import is_damage, rows_of, salvage_rows, salvage_sessions
from lamina.adapters.stores.session_file import check_format
from lamina.adapters.stores.session_rows import (
    RowEntries,
    SalvagedRecord,
    SessionRecord,
    as_bytes,
    drop_named,
    find_record,
    insert_entries,
    is_text,
    pack_totals,
    read_rows,
    salvage_record,
    unpack_totals,
)
from lamina.core.audit.kept_results import blobs_of
from lamina.core.audit.session_totals import add_entries, sum_totals
from lamina.core.codec import entry_number
from lamina.core.journal import GrownEntries, Journal, TreeReader, walk_back
from lamina.core.journal.lines import read_line, write_lines
from lamina.core.ports.store import JournalStore
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, SessionEntry
from lamina.core.values.totals import DeletedSession, ListedSession, SessionTotals
from lamina.errors import (
    JournalError,
    JournalGone,
    LaminaError,
    SessionBusy,
    SessionMoved,
    UnknownSession,
    WriteFailed,
)


class SqliteJournal:
    """An open session, which keeps its lease until closed or no longer referenced."""

    def __init__(
        self,
        database: Database,
        connection: sqlite3.Connection,
        session: str,
        row: SessionRecord,
    ) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = connection
        self._session = session
        self._row = row
        self._inode = _inode_of(database)
        self._lock = Lock()
        self._rows: RowEntries | None = None
        self._snapshot_size = 0
        (count,) = connection.execute(
            "select coalesce(cast(max(seq) as integer) + 1, 0) from entry where session = ?",
            (row.key,),
        ).fetchone()
        self._count: int = count
        self.journal = self._read_behind_snapshot(connection) or self._read_all(connection)
        check_format(self.journal.header, str(database.path))
        self.entries = GrownEntries(self.journal.entries)
        self.last = self.journal.last + self.journal.lost
        self._last_stored = self.journal.last
        self.size = row.size
        self._totals = None if self.journal.damage else unpack_totals(row.totals)
        self._release = weakref.finalize(self, _release, connection, row.owner)

    def _read_all(self, connection: sqlite3.Connection) -> Journal:
        journal = read_rows(rows_of(connection, self._row.key), self._session, self._row.last)
        if journal.damage:
            self._database.check_structure(connection)
            # The next listing of the session counts the damage.
            query = "update session set totals = null where key = ?"
            with transaction(connection, durable=False):
                connection.execute(query, (self._row.key,))
        return journal

    def _read_behind_snapshot(self, connection: sqlite3.Connection) -> Journal | None:
        """Return the journal with its snapshot; None if everything must be read because there is no
        snapshot or rows near it are damaged."""
        key = self._row.key
        found = connection.execute(
            "select cast(seq as integer), cast(last as integer), cast(size as integer), state "
            "from snapshot where session = ?",
            (key,),
        ).fetchone()
        if found is None or None in found:
            return None
        seq, last, size, sealed = found
        state = unseal(sealed)
        if not state or seq >= self._count:
            return None
        rows = RowEntries(self._database, connection, key, self._session, seq + 1)
        reader = TreeReader(rows, last)
        query = "select line from entry where session = ? and seq > ? order by seq"
        for at, (line,) in enumerate(connection.execute(query, (key, seq)), seq + 2):
            for part in read_line(as_bytes(line), number=at):
                reader.take(part)
        since = tuple(reader.entries.values())
        rows.extend(since)
        try:
            header, leaf = rows.first(), rows[self._row.leaf]
        except (JournalError, KeyError):
            return None
        is_whole = not reader.damage and not reader.awaited and reader.last == self._row.last
        is_last = since[-1].id == leaf.id if since else rows.is_at(leaf.id, seq)
        if not is_whole or not is_last or not isinstance(header, SessionEntry):
            return None
        self._rows, self._snapshot_size = rows, size
        return Journal(entries=rows, leaf=leaf.id, last=self._row.last, snapshot=state, since=since)

    async def append(self, entries: Sequence[Entry]) -> None:
        if self._connection is None:
            raise JournalError(f"session {self._session!r} is closed; open it again")
        lines = write_lines(entries, self._last_stored)
        last = max(self.last, *(entry_number(entry.id) or 0 for entry in entries))
        totals = self._totals
        if totals is not None:
            totals = None if self._is_found_damaged else add_entries(totals, entries)
        # What is on disk and what is remembered must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(
                self._write, self._connection, entries, lines, last, pack_totals(totals),
                totals.name if totals else None,
            )  # fmt: skip
        self._last_stored = last
        self._totals = totals
        self.entries.add(entries)

    def _write(
        self,
        connection: sqlite3.Connection,
        entries: Sequence[Entry],
        lines: bytes,
        last: int,
        totals: bytes | None,
        title: str | None,
    ) -> None:
        if _inode_of(self._database) != self._inode:
            raise JournalGone(self._session, str(self._database.path))
        now = time.time()
        with self._lock, self._database.telling_errors(self._session):
            try:
                with transaction(connection):
                    taken = connection.execute(
                        "update session set leaf = ?, last = ?, size = size + ?, written = ?, "
                        "until = ?, totals = ?, title = coalesce(?, title) "
                        "where key = ? and epoch = ?",
                        (
                            entries[-1].id, last, len(lines), now, now + LEASE_S, totals, title,
                            self._row.key, self._row.epoch,
                        ),
                    )  # fmt: skip
                    if not taken.rowcount:
                        self._refuse(connection)
                    # From here on, the ids are used up, even if the rows are lost.
                    self.last = last
                    insert_entries(connection, self._row.key, self._count, entries, lines)
                    self._require_found(connection, len(entries))
            except sqlite3.IntegrityError:
                raise SessionMoved(self._session) from None
        self._count += len(entries)
        self.size += len(lines)

    def _require_found(self, connection: sqlite3.Connection, count: int) -> None:
        """Check that the index finds the new rows before they are acknowledged.

        Raises:
            WriteFailed: some of the rows just written are not found.
        """
        query = "select count(*) from entry where session = ? and seq >= ?"
        if connection.execute(query, (self._row.key, self._count)).fetchone() != (count,):
            place = self._database.path
            raise WriteFailed(
                self._session, f"an index of {place} is damaged; restore the file from a backup"
            )

    def _refuse(self, connection: sqlite3.Connection) -> None:
        query = "select 1 from session where key = ? and id = ?"
        if connection.execute(query, (self._row.key, self._session)).fetchone():
            raise SessionMoved(self._session)
        raise JournalGone(self._session, str(self._database.path))

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self.entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Do nothing: a look-up takes microseconds."""

    @property
    def _is_found_damaged(self) -> bool:
        """Check whether a look-up failed. The next opening must then read everything, so no
        snapshot or totals are saved until then."""
        return self._rows is not None and self._rows.damaged

    @property
    def since_snapshot(self) -> int | None:
        return None if self._is_found_damaged else self.size - self._snapshot_size

    async def keep_snapshot(self, state: bytes) -> None:
        if self._connection is None or self._is_found_damaged:
            return
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._keep_snapshot, self._connection, state)

    def _keep_snapshot(self, connection: sqlite3.Connection, state: bytes) -> None:
        values = (self._row.key, self._count - 1, self._last_stored, self.size, seal(state))
        try:
            with self._lock, transaction(connection, durable=False):
                connection.execute("insert or replace into snapshot values (?, ?, ?, ?, ?)", values)
        except sqlite3.Error:
            # Optional: nothing is lost if it cannot be saved.
            return
        self._snapshot_size = self.size

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._rows is not None:
            self._rows.release()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, connection)

    def _close(self, connection: sqlite3.Connection) -> None:
        try:
            with self._lock, transaction(connection, durable=False):
                connection.execute(
                    "update session set owner = '' where key = ? and epoch = ?",
                    (self._row.key, self._row.epoch),
                )
        except sqlite3.Error:
            # The next opening finds out that the session is free.
            pass
        finally:
            self._release()


def _release(connection: sqlite3.Connection, owner: str) -> None:
    connection.close()
    forget_holder(owner)


def _inode_of(database: Database) -> tuple[int, int] | None:
    try:
        status = os.stat(database.path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# Seconds between checks whether the session is free.
POLL_S = 0.02


class SqliteStore(JournalStore):
    """A store of sessions and blobs in the file `path`. An opening waits up to `wait` seconds for
    another one to close, and takes over a killed process's session at once."""

    def __init__(self, path: str | os.PathLike[str], *, wait: float = 5.0) -> None:
        self.path = Path(path)
        self._database = Database(self.path)
        self._wait = wait

    def place(self, session: str) -> str:
        return f"session {session!r} in {self.path}"

    async def create(self, header: SessionEntry) -> SqliteJournal:
        if not header.session:
            raise JournalError("the session id is empty; give it one")
        lines = write_lines([header], -1)
        owner = new_holder()
        try:
            return await anyio.to_thread.run_sync(self._create, header, lines, owner)
        except BaseException:
            forget_holder(owner)
            raise

    def _create(self, header: SessionEntry, lines: bytes, owner: str) -> SqliteJournal:
        self._database.create()
        totals = sum_totals(Journal(entries={header.id: header}, leaf=header.id))
        now = time.time()
        values = (
            header.session, 1, owner, now + LEASE_S, header.id, entry_number(header.id) or 0,
            len(lines), now, totals.name, pack_totals(totals),
        )  # fmt: skip
        connection = self._database.open()
        try:
            with self._database.telling_errors(header.session), transaction(connection):
                places = ", ".join("?" * len(values))
                query = f"insert into session values (null, {places}) returning key"
                ((key,),) = connection.execute(query, values).fetchall()
                insert_entries(connection, key, 0, [header], lines)
            return self._load(connection, header.session, owner)
        except BaseException as error:
            connection.close()
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                raise SessionMoved(header.session) from None
            raise

    async def open(self, session: str) -> SqliteJournal:
        owner = new_holder()
        try:
            # One connection throughout: closing the last one would copy the log each time.
            connection = await anyio.to_thread.run_sync(self._connect, session)
            try:
                await self._acquire(connection, session, owner)
                return await anyio.to_thread.run_sync(self._load, connection, session, owner)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            forget_holder(owner)
            raise

    def _connect(self, session: str) -> sqlite3.Connection:
        if not self._database.exists():
            raise self._unknown(session)
        return self._database.open()

    def _load(self, connection: sqlite3.Connection, session: str, owner: str) -> SqliteJournal:
        """Return the journal of a session held by `owner`."""
        with self._database.telling_errors():
            row = find_record(connection, session)
            if row is None or row.owner != owner:
                raise SessionMoved(session)
            return SqliteJournal(self._database, connection, session, row)

    async def _acquire(self, connection: sqlite3.Connection, session: str, owner: str) -> None:
        for _ in range(int(self._wait / POLL_S)):
            if await anyio.to_thread.run_sync(self._try_acquire, connection, session, owner):
                return
            await anyio.sleep(POLL_S)
        if not await anyio.to_thread.run_sync(self._try_acquire, connection, session, owner):
            raise SessionBusy(session, self._wait)

    def _try_acquire(self, connection: sqlite3.Connection, session: str, owner: str) -> bool:
        with self._database.telling_errors():
            row = find_record(connection, session)
            if row is None:
                raise self._unknown(session)
            if is_held(row.owner, row.until, time.time()):
                return False
            with transaction(connection, durable=False):
                taken = connection.execute(
                    "update session set owner = ?, until = ?, epoch = epoch + 1 "
                    "where key = ? and epoch = ? and owner = ?",
                    (owner, time.time() + LEASE_S, row.key, row.epoch, row.owner),
                )
            return bool(taken.rowcount)

    def _unknown(self, session: str) -> UnknownSession:
        return UnknownSession(f"no session {session!r} in {self.path}")

    async def read(self, session: str) -> Journal:
        return await anyio.to_thread.run_sync(self._read, session)

    def _read(self, session: str) -> Journal:
        with self._finding(session) as (connection, row):
            return self._read_found(connection, row, session)

    def _read_found(
        self, connection: sqlite3.Connection, row: SessionRecord, session: str
    ) -> Journal:
        """Return the readable part of an existing session, however damaged the file is."""
        journal = read_rows(salvage_rows(connection, row.key, row.last), session, row.last)
        check_format(journal.header, str(self.path))
        if isinstance(row, SalvagedRecord):
            lost_row = Damage(kind="bad_page", detail="the row of the session itself is lost")
            return replace(journal, damage=(*journal.damage, lost_row))
        return journal

    async def export(self, session: str) -> bytes:
        return await anyio.to_thread.run_sync(self._export, session)

    def _export(self, session: str) -> bytes:
        with self._finding(session) as (connection, row):
            rows = salvage_rows(connection, row.key, row.last)
            return b"".join(b"%b\n" % as_bytes(r[2]) for r in rows if not isinstance(r, Damage))

    async def is_sound(self) -> bool:
        """Check whether the file is an intact database that can be written to; damaged lines do not
        count. Reads the whole file."""
        return await anyio.to_thread.run_sync(self._is_sound)

    def _is_sound(self) -> bool:
        try:
            with self._database.connect() as connection:
                self._database.check_structure(connection)
                return True
        except JournalError:
            return False

    async def has(self, session: str) -> bool:
        return await anyio.to_thread.run_sync(self._has, session)

    def _has(self, session: str) -> bool:
        try:
            with self._finding(session):
                return True
        except UnknownSession:
            return False

    async def sessions(self) -> Sequence[str]:
        return await anyio.to_thread.run_sync(self._sessions)

    def _sessions(self) -> tuple[str, ...]:
        if not self._database.exists():
            return ()
        with self._database.connect() as connection:
            query = "select id from session order by written desc, key desc"
            try:
                return tuple(str(session) for (session,) in connection.execute(query))
            except sqlite3.DatabaseError as error:
                if not is_damage(error) or not (found := salvage_sessions(connection)):
                    raise
                return tuple(reversed(found))

    async def list_sessions(self) -> Sequence[ListedSession]:
        """List all sessions. Damage that occurred after a session's totals were saved is not
        noticed until it is read."""
        return await anyio.to_thread.run_sync(
            lambda: [self._describe(session) for session in self._sessions()]
        )

    def _describe(self, session: str) -> ListedSession:
        listed = ListedSession(session=session)
        try:
            with self._finding(session) as (connection, row):
                listed = replace(listed, bytes=row.size, written=row.written)
                totals = unpack_totals(row.totals)
                if totals is None:
                    journal = self._read_found(connection, row, session)
                    totals = sum_totals(journal)
                    if not any(damage.kind == "bad_page" for damage in journal.damage):
                        _keep_totals(connection, row, totals)
        except LaminaError as error:
            return replace(listed, problem=str(error))
        return replace(listed, totals=totals)

    async def delete(self, session: str) -> DeletedSession:
        owner = new_holder()
        try:
            connection = await anyio.to_thread.run_sync(self._connect, session)
            try:
                await self._acquire(connection, session, owner)
            finally:
                connection.close()
            return await anyio.to_thread.run_sync(self._delete, session)
        finally:
            forget_holder(owner)

    def _delete(self, session: str) -> DeletedSession:
        with self._finding(session) as (connection, row):
            journal = read_rows(rows_of(connection, row.key), session, row.last)
            with transaction(connection):
                digests = drop_named(connection, row.key, set(blobs_of(journal.entries.values())))
                for table in ("entry", "snapshot"):
                    connection.execute(f"delete from {table} where session = ?", (row.key,))
                connection.execute("delete from session where key = ?", (row.key,))
                # A blob stored again since then may soon be named.
                query = "delete from blob where digest = ? and put <= ?"
                blobs = [
                    digest
                    for digest in sorted(digests)
                    if connection.execute(query, (digest, row.written)).rowcount
                ]
            connection.execute("pragma incremental_vacuum").fetchall()
        return DeletedSession(session=session, bytes=row.size, blobs=tuple(blobs))

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await anyio.to_thread.run_sync(self._put_blob, digest, data)
        return digest

    def _put_blob(self, digest: str, data: bytes) -> None:
        self._database.create()
        with self._database.connect() as connection, self._database.telling_errors(digest):
            query = "select bytes from blob where digest = ?"
            is_there = connection.execute(query, (digest,)).fetchone() == (data,)
            change = "put = excluded.put" + ("" if is_there else ", bytes = excluded.bytes")
            with transaction(connection):
                connection.execute(
                    f"insert into blob values (?, ?, ?) on conflict do update set {change}",
                    (digest, data, time.time()),
                )

    async def get_blob(self, digest: str) -> bytes:
        data = await anyio.to_thread.run_sync(self._get_blob, digest)
        if data is None:
            raise JournalError(f"no blob {digest!r} in {self.path}")
        return check_blob(digest, data)

    def _get_blob(self, digest: str) -> bytes | None:
        if not self._database.exists() or not is_text(digest):
            return None
        with self._database.connect() as connection:
            query = "select bytes from blob where digest = ?"
            row = connection.execute(query, (digest,)).fetchone()
        return as_bytes(row[0]) if row else None

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        return await anyio.to_thread.run_sync(self._known_blobs, digests)

    def _known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        if not digests or not self._database.exists():
            return frozenset()
        with self._database.connect() as connection:
            query = "select 1 from blob where digest = ?"
            return frozenset(d for d in digests if connection.execute(query, (d,)).fetchone())

    @contextmanager
    def _finding(self, session: str) -> Iterator[tuple[sqlite3.Connection, SessionRecord]]:
        """Yield a connection and a session's row.

        Raises:
            UnknownSession: no session has that id.
        """
        if not self._database.exists():
            raise self._unknown(session)
        with self._database.connect() as connection:
            row = salvage_record(connection, session)
            if row is None:
                raise self._unknown(session)
            yield connection, row


def _keep_totals(connection: sqlite3.Connection, row: SessionRecord, totals: SessionTotals) -> None:
    """Save totals for next time, unless entries were added since or the file is read-only."""
    values = (pack_totals(totals), totals.name, row.key, row.size)
    query = "update session set totals = ?, title = ? where key = ? and size = ?"
    with suppress(sqlite3.OperationalError), transaction(connection, durable=False):
        connection.execute(query, values)
