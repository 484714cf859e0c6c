"""Sessions as rows of a SQLite file: one file for a workspace's sessions and blobs.

Laws: an append is one transaction, and on disk before it is acknowledged; a row of an entry is
never changed; only one opening writes at a time. What was acknowledged survives a crash of the
process and a power failure. Opening reads a bounded number of rows, however many there are.
"""

import hashlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from lamina.adapters.stores.blob_files import check_blob
from lamina.adapters.stores.database import Database, transaction
from lamina.adapters.stores.lease import LEASE_S, forget_holder, is_held, new_holder
from lamina.adapters.stores.row_entries import read_rows
from lamina.adapters.stores.row_salvage import is_damage, rows_of, salvage_rows, salvage_sessions
from lamina.adapters.stores.session_file import check_format
from lamina.adapters.stores.session_rows import (
    SalvagedRecord,
    SessionRecord,
    as_bytes,
    drop_named,
    find_record,
    insert_entries,
    is_text,
    pack_totals,
    salvage_record,
    unpack_totals,
)
from lamina.adapters.stores.sqlite_journal import SqliteJournal
from lamina.core.audit.blobs import blobs_of
from lamina.core.audit.totals import sum_totals
from lamina.core.codec import entry_number
from lamina.core.journal import Journal
from lamina.core.journal.lines import write_lines
from lamina.core.ports.store import JournalStore
from lamina.core.values.damage import Damage
from lamina.core.values.entry import SessionEntry
from lamina.core.values.totals import DeletedSession, ListedSession, SessionTotals
from lamina.errors import JournalError, LaminaError, SessionBusy, SessionMoved, UnknownSession

# How often an opening checks whether the session is free.
POLL_S = 0.02


class SqliteStore(JournalStore):
    """Keeps sessions and blobs in one file, `path`. An opening waits up to `wait` seconds for
    another one to close; from a process that was killed it takes the session over at once."""

    def __init__(self, path: str | os.PathLike[str], *, wait: float = 5.0) -> None:
        self.path = Path(path)
        self._database = Database(self.path)
        self._wait = wait

    def place(self, session: str) -> str:
        return f"session {session!r} in {self.path}"

    async def create(self, header: SessionEntry) -> SqliteJournal:
        if not header.session:
            raise JournalError("a session needs an id that is not empty")
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
            # One connection for all of it: closing the last one would copy the log each time.
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
        """The journal of a session that is held by `owner`."""
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
        """What can be read of a session that is there, however damaged the file is."""
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
        """Whether the file as a whole is as SQLite wrote it, so that it can be written to; a line
        that is damaged is none of its business. Reads all of it."""
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
        """A row that was damaged since is not noticed here before somebody has read the session."""
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
                # What was put again since may be named soon.
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
        """A connection, and the row of a session.

        Raises:
            UnknownSession: there is none of that id.
        """
        if not self._database.exists():
            raise self._unknown(session)
        with self._database.connect() as connection:
            row = salvage_record(connection, session)
            if row is None:
                raise self._unknown(session)
            yield connection, row


def _keep_totals(connection: sqlite3.Connection, row: SessionRecord, totals: SessionTotals) -> None:
    """For the next time, unless something was written meanwhile, or nothing can be."""
    values = (pack_totals(totals), totals.name, row.key, row.size)
    query = "update session set totals = ?, title = ? where key = ? and size = ?"
    with suppress(sqlite3.OperationalError), transaction(connection, durable=False):
        connection.execute(query, values)
