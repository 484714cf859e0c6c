"""Reads the intact session rows from a file with damaged pages.

Law: an unreadable page costs only the rows on it. Nothing is written, and a row counts only if the
row itself states that it belongs to the session: a damaged index may lead anywhere.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any, TypeAlias

from lamina.core.codec import mint_id
from lamina.core.journal.lines import Line, read_line
from lamina.core.values.damage import Damage
from lamina.core.values.entry import SessionEntry

# A row's number, entry id and line.
StoredRow: TypeAlias = tuple[int, str, object]

_BAD_PAGE = "a page of the database is damaged, and what is on it is lost"
# The number of row numbers to try after the last known one.
_BEYOND = 1_024
# A number even if the file is damaged.
_NUMBER = "coalesce(cast(seq as integer), 0)"
_ALL = f"select {_NUMBER}, id, line from entry where session = ? order by seq"
# Each of these is answered from an index alone.
_BY_SEQ = "select rowid from entry where session = ? and seq = ?"
_BY_ID = "select rowid from entry where session = ? and id = ?"
# Read from the row itself: SQLite would otherwise trust the index.
_ROW = "select session, seq, id, line from entry not indexed where rowid = ?"


def rows_of(connection: sqlite3.Connection, key: int) -> Iterator[StoredRow]:
    """Yield all of a session's rows in order.

    Raises:
        sqlite3.DatabaseError: a page of the file is damaged.
    """
    yield from connection.execute(_ALL, (key,))


def salvage_rows(
    connection: sqlite3.Connection, key: int, last: int
) -> Iterator[StoredRow | Damage]:
    """Yield a session's readable rows in order, and the damage that hides others. `last` is the
    highest known entry number."""
    seen = -1
    try:
        for row in rows_of(connection, key):
            yield row
            seen = row[0]
        return
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        yield Damage(kind="bad_page", detail=f"{_BAD_PAGE} ({error})")
    found: dict[int, StoredRow] = {}
    for number in range(max(last, seen) + _BEYOND):
        for seq, entry_id, line in _find_rows(connection, key, number):
            if seq > seen:
                found[seq] = (seq, entry_id, line)
    yield from (found[seq] for seq in sorted(found))


def salvage_sessions(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the sessions with readable headers, with their keys, if the sessions table is
    unreadable."""
    keys: dict[str, int] = {}
    key = tried = 0
    while tried < _BEYOND:
        key, tried = key + 1, tried + 1
        for seq, _, line in _find_rows(connection, key, 0):
            found = next(read_line(line)) if isinstance(line, bytes) else None
            if seq == 0 and isinstance(found, Line) and isinstance(found.entry, SessionEntry):
                keys[found.entry.session] = key
                tried = 0
    return keys


def is_damage(error: BaseException) -> bool:
    """Check whether an error means that the file is damaged."""
    return (getattr(error, "sqlite_errorname", None) or "").startswith("SQLITE_CORRUPT")


def _find_rows(connection: sqlite3.Connection, key: int, number: int) -> Iterator[StoredRow]:
    """Yield the row with that number and the row of the entry with that number, if found through an
    index."""
    places = {
        place: None
        for query, value in ((_BY_SEQ, number), (_BY_ID, mint_id(number)))
        for (place,) in _try_query(connection, query, key, value)
    }
    for place in places:
        for session, seq, entry_id, line in _try_query(connection, _ROW, place):
            if session == key and isinstance(seq, int):
                yield seq, entry_id, line


def _try_query(connection: sqlite3.Connection, query: str, *values: object) -> list[Any]:
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return []
