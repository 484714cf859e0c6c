"""The rows of a session: its own, and those of its entries."""

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.adapters.stores.database import seal, unseal
from lamina.adapters.stores.row_salvage import is_damage, salvage_sessions
from lamina.core.values.entry import Entry, UnknownEntry
from lamina.core.values.totals import SessionTotals
from lamina.errors import JournalError

_totals = msgspec.msgpack.Decoder(SessionTotals)


class SessionRecord(Struct, frozen=True, kw_only=True, array_like=True):
    """The row of a session. Every writer has an `epoch` of its own, and writes nothing once there
    is a later one."""

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
    """Stands in for the row of a session that cannot be read."""


_FIELDS = SessionRecord.__struct_fields__
_SELECT = f"select {', '.join(_FIELDS)} from session where id = ?"


def find_record(connection: sqlite3.Connection, session: str) -> SessionRecord | None:
    """The row of a session, if there is one.

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
    """The row of a session, or what its entries say of it where the row cannot be read."""
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
    """Adds rows for entries, the first of which gets the number `seq`; `lines` are theirs."""
    parts = lines.split(b"\n")
    connection.executemany(
        "insert into entry values (?, ?, ?, ?, ?, ?)",
        (
            (key, seq + at, entry.id, entry.parent, _kind_of(entry), parts[at])
            for at, entry in enumerate(entries)
        ),
    )


def drop_named(connection: sqlite3.Connection, key: int, digests: set[str]) -> set[str]:
    """Those of `digests` that no line of another session names, whatever it names them for."""
    query = "select line from entry where session <> ?"
    rows = connection.execute(query, (key,))
    while digests and (lines := rows.fetchmany(1_000)):
        text = b"\n".join(as_bytes(line) for (line,) in lines)
        digests = {digest for digest in digests if digest.encode() not in text}
    return digests


def pack_totals(totals: SessionTotals | None) -> bytes | None:
    """Totals to be kept; None if there are none, or a provider's figures are beyond all bounds."""
    try:
        return None if totals is None else seal(msgspec.msgpack.encode(totals))
    except OverflowError:
        return None


def unpack_totals(packed: bytes | None) -> SessionTotals | None:
    """Totals that were kept; None if there are none that could be believed."""
    data = unseal(packed)
    try:
        return None if data is None else _totals.decode(data)
    except msgspec.MsgspecError:
        return None


def as_bytes(value: object) -> bytes:
    """The value of a row as bytes, which it is unless the file is damaged."""
    return value if isinstance(value, bytes) else str(value).encode()


def is_text(name: str) -> bool:
    """Whether a name can be in a database: no lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind_of(entry: Entry) -> str:
    if isinstance(entry, UnknownEntry):
        return entry.kind
    return str(type(entry).__struct_config__.tag)
