"""A session of a SQLite file that is open for writing.

Laws: it writes as long as nobody else took the session over, which its epoch tells, inside the
same transaction. With a snapshot, opening reads the header, the last row, the rows behind the
snapshot and nothing else.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterable, Sequence
from threading import Lock

import anyio
import anyio.to_thread

from lamina.adapters.stores.database import Database, seal, transaction, unseal
from lamina.adapters.stores.lease import LEASE_S, forget_holder
from lamina.adapters.stores.row_entries import RowEntries, read_rows
from lamina.adapters.stores.row_salvage import rows_of
from lamina.adapters.stores.session_file import check_format
from lamina.adapters.stores.session_rows import (
    SessionRecord,
    as_bytes,
    insert_entries,
    pack_totals,
    unpack_totals,
)
from lamina.core.audit.totals import add_entries
from lamina.core.codec import entry_number
from lamina.core.journal import GrownEntries, Journal, TreeReader, walk_back
from lamina.core.journal.lines import read_line, write_lines
from lamina.core.values.entry import Entry, SessionEntry
from lamina.errors import JournalError, JournalGone, SessionMoved, WriteFailed


class SqliteJournal:
    """An open session; it holds its lease until it is closed, or nobody refers to it any more."""

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
            # What is wrong is counted by whoever lists the session next.
            query = "update session set totals = null where key = ?"
            with transaction(connection, durable=False):
                connection.execute(query, (self._row.key,))
        return journal

    def _read_behind_snapshot(self, connection: sqlite3.Connection) -> Journal | None:
        """The journal with its snapshot; None if there is none, or anything near it is damaged:
        then everything is looked at."""
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
                    # From here on the ids are used up, whatever becomes of the rows.
                    self.last = last
                    insert_entries(connection, self._row.key, self._count, entries, lines)
                    self._require_found(connection, len(entries))
            except sqlite3.IntegrityError:
                raise SessionMoved(self._session) from None
        self._count += len(entries)
        self.size += len(lines)

    def _require_found(self, connection: sqlite3.Connection, count: int) -> None:
        """So that nothing is acknowledged that a damaged index does not lead to.

        Raises:
            WriteFailed: the rows that were just written are not all found.
        """
        query = "select count(*) from entry where session = ? and seq >= ?"
        if connection.execute(query, (self._row.key, self._count)).fetchone() != (count,):
            place = self._database.path
            raise WriteFailed(self._session, f"an index of {place} is damaged; restore it")

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
        """A look-up takes microseconds."""

    @property
    def _is_found_damaged(self) -> bool:
        """Whether a look-up failed. Then the next opening has to read everything, so no snapshot
        and no totals are kept until then."""
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
            # A convenience: nothing is lost if it cannot be kept.
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
            # Whoever comes next finds out that nobody holds it.
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
