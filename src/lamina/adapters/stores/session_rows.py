"""Reads and writes a session's rows (its own and its entries'), and builds the journal from them.

Law: a row is trusted only if its line's checksum is right. A damaged row is reported when
everything is read, and raises an error when looked up; it never affects its neighbours.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.stores.database import Database, seal, unseal
from lamina.adapters.stores.row_salvage import StoredRow, is_damage, salvage_sessions
from lamina.core.codec import mint_id
from lamina.core.journal import Journal, TreeReader
from lamina.core.journal.lines import Line, read_line
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, UnknownEntry
from lamina.core.values.totals import SessionTotals
from lamina.errors import JournalError

_totals = msgspec.msgpack.Decoder(SessionTotals)


class SessionRecord(Struct, frozen=True, kw_only=True, array_like=True):
    """A session's row. Every writer has its own `epoch`, and writes nothing once there is a later
    one."""

    key: int
    epoch: int
    owner: str
    until: float
    leaf: str
    last: int
    size: int
    written: float
    totals: bytes | None


class SalvagedRecord(SessionRecord, frozen=True, kw_only=True):
    """A stand-in for an unreadable session row."""


_FIELDS = SessionRecord.__struct_fields__
_SELECT = f"select {', '.join(_FIELDS)} from session where id = ?"


def find_record(connection: sqlite3.Connection, session: str) -> SessionRecord | None:
    """Return a session's row; None if there is none.

    Raises:
        JournalError: it is damaged.
    """
    if not is_text(session):
        return None
    row = connection.execute(_SELECT, (session,)).fetchone()
    try:
        return None if row is None else msgspec.convert(row, SessionRecord)
    except msgspec.ValidationError as error:
        raise JournalError(f"the row of session {session!r} is damaged: {error}") from error


def salvage_record(connection: sqlite3.Connection, session: str) -> SessionRecord | None:
    """Return a session's row or, if unreadable, a stand-in based on its entries."""
    try:
        return find_record(connection, session)
    except (sqlite3.DatabaseError, JournalError) as error:
        is_lost = isinstance(error, JournalError) or is_damage(error)
        key = salvage_sessions(connection).get(session) if is_lost else None
        if key is None:
            raise
    return SalvagedRecord(
        key=key, epoch=0, owner="", until=0.0, leaf="", last=0, size=0, written=0.0, totals=None
    )


def insert_entries(
    connection: sqlite3.Connection, key: int, seq: int, entries: Sequence[Entry], lines: bytes
) -> None:
    """Add rows for entries, numbered from `seq`; `lines` are their lines."""
    parts = lines.split(b"\n")
    connection.executemany(
        "insert into entry values (?, ?, ?, ?, ?, ?)",
        (
            (key, seq + at, entry.id, entry.parent, _kind_of(entry), parts[at])
            for at, entry in enumerate(entries)
        ),
    )


def drop_named(connection: sqlite3.Connection, key: int, digests: set[str]) -> set[str]:
    """Return those of `digests` that appear in no other session's lines."""
    query = "select line from entry where session <> ?"
    rows = connection.execute(query, (key,))
    while digests and (lines := rows.fetchmany(1_000)):
        text = b"\n".join(as_bytes(line) for (line,) in lines)
        digests = {digest for digest in digests if digest.encode() not in text}
    return digests


def pack_totals(totals: SessionTotals | None) -> bytes | None:
    """Encode totals for storage; None if there are none, or a provider's figures are out of
    range."""
    try:
        return None if totals is None else seal(msgspec.msgpack.encode(totals))
    except OverflowError:
        return None


def unpack_totals(packed: bytes | None) -> SessionTotals | None:
    """Decode stored totals; None if missing or damaged."""
    data = unseal(packed)
    try:
        return None if data is None else _totals.decode(data)
    except msgspec.MsgspecError:
        return None


def as_bytes(value: object) -> bytes:
    """Return a row's value as bytes, which it is unless the file is damaged."""
    return value if isinstance(value, bytes) else str(value).encode()


def is_text(name: str) -> bool:
    """Check whether a database can store a name: it must have no lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind_of(entry: Entry) -> str:
    if isinstance(entry, UnknownEntry):
        return entry.kind
    return str(type(entry).__struct_config__.tag)


# The first _SINGLE look-ups read one row each. A caller that makes more is probably reading
# everything, so later look-ups also read the following rows.
_SINGLE = 64
_TOGETHER = 256


class RowEntries(Mapping[str, Entry]):
    """A session's first `count` entries in order of writing, read on demand."""

    def __init__(
        self, database: Database, connection: sqlite3.Connection, key: int, session: str, count: int
    ) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = connection
        self._key = key
        self._session = session
        self._count = count
        self._entries: dict[str, Entry] = {}
        self._lines: dict[str, bytes] = {}
        self._lookups = 0
        self._lock = Lock()
        # Whether a looked-up row was damaged.
        self.damaged = False

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add the entries of the following rows, which have already been read."""
        self._entries.update((entry.id, entry) for entry in entries)
        self._count += len(entries)

    def first(self) -> Entry:
        """The header.

        Raises:
            KeyError: there is no row.
        """
        return self[self._id_at(0)]

    def is_at(self, entry_id: str, seq: int) -> bool:
        return self._id_at(seq) == entry_id

    def _id_at(self, seq: int) -> str:
        rows = self._rows("select id, line from entry where session = ? and seq = ?", seq)
        return rows[0][0] if rows else ""

    def release(self) -> None:
        """Release the connection; each later look-up opens a new one."""
        with self._lock:
            self._connection = None

    def _rows(self, query: str, *values: object) -> list[tuple[str, bytes]]:
        with self._lock:
            if self._connection is not None:
                with self._database.telling_errors():
                    return self._connection.execute(query, (self._key, *values)).fetchall()
        with self._database.connect() as connection:
            return connection.execute(query, (self._key, *values)).fetchall()

    def __getitem__(self, entry_id: str) -> Entry:
        if (entry := self._entries.get(entry_id)) is not None:
            return entry
        line = self._lines.pop(entry_id, None) or self._read(entry_id)
        if line is None:
            raise KeyError(entry_id)
        entry = self._entries[entry_id] = self._prove(entry_id, line)
        return entry

    def _read(self, entry_id: str) -> bytes | None:
        self._lookups += 1
        if self._lookups <= _SINGLE:
            query = "select id, line from entry where session = ? and id = ? and seq < ?"
            rows = self._rows(query, entry_id, self._count)
            return rows[0][1] if rows else None
        query = (
            "select id, line from entry where session = ?1 and seq < ?3 and seq >= "
            "(select seq from entry where session = ?1 and id = ?2) order by seq limit ?4"
        )
        rows = self._rows(query, entry_id, self._count, _TOGETHER)
        self._lines.update((found, line) for found, line in rows if found not in self._entries)
        return self._lines.pop(entry_id, None)

    def _prove(self, entry_id: str, line: bytes) -> Entry:
        found = next(iter(read_line(as_bytes(line))))
        if isinstance(found, Line) and found.entry.id == entry_id:
            return found.entry
        what = found.detail if isinstance(found, Damage) else f"it contains {found.entry.id!r}"
        self.damaged = True
        self._forget_snapshot()
        raise JournalError(
            f"entry {entry_id!r} of session {self._session!r} ({self._database.path}) is damaged: "
            f"{what}. Open the session again to continue without it; `lamina verify` lists what "
            f"is lost"
        )

    def _forget_snapshot(self) -> None:
        """Make the next opening read everything and report the damage."""
        with self._database.connect() as connection:
            connection.execute("delete from snapshot where session = ?", (self._key,))
            connection.execute("update session set totals = null where key = ?", (self._key,))

    def __contains__(self, entry_id: object) -> bool:
        if entry_id in self._entries or entry_id in self._lines:
            return True
        query = "select 1 from entry where session = ? and id = ? and seq < ?"
        return isinstance(entry_id, str) and bool(self._rows(query, entry_id, self._count))

    def __iter__(self) -> Iterator[str]:
        query = (
            "select id, line from entry where session = ? and seq >= ? and seq < ? "
            "order by seq limit ?"
        )
        start = 0
        while start < self._count:
            # Many callers want only the header.
            end = min(self._count, start + _TOGETHER if start else 1)
            rows = self._rows(query, start, end, _TOGETHER)
            self._lines.update((found, line) for found, line in rows if found not in self._entries)
            yield from [found for found, _ in rows]
            start = end

    def __len__(self) -> int:
        return self._count


def read_rows(rows: Iterable[StoredRow | Damage], session: str, last: int) -> Journal:
    """Return the journal of all of a session's rows, verifying every checksum. `last` is the
    highest number recorded in the session's own row."""
    reader = TreeReader()
    offset = 0
    others: list[Damage] = []
    for row in rows:
        if isinstance(row, Damage):
            others.append(row)
            continue
        seq, entry_id, line = row[0], row[1], as_bytes(row[2])
        for found in read_line(line, number=seq + 1, offset=offset):
            reader.take(found)
            if isinstance(found, Line) and found.entry.id != entry_id:
                detail = f"entry {found.entry.id!r} is filed under another id, {entry_id!r}"
                others.append(Damage(kind="conflict", detail=detail, line=seq + 1, offset=offset))
        # The line's position if all lines were in one file.
        offset += len(line) + 1
    journal = reader.finish(session)
    damage = (*journal.damage, *others)
    if not reader.damage and last > journal.last:
        first = mint_id(journal.last + 1)
        detail = f"the end of the session is missing: {first} to {mint_id(last)}"
        damage += (Damage(kind="missing_entries", detail=detail),)
    damage = tuple(replace(found, row=found.line) for found in damage)
    # Ids of unreadable lines may come after the last readable one: the row's number counts them.
    behind = max(0, journal.last + journal.lost - max(journal.last, last))
    return replace(journal, damage=damage, last=max(journal.last, last), lost=behind)
