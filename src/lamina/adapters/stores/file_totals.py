"""Totals of sessions in files, kept in their indexes so that a list need not read everything.

Law: kept totals are believed of the bytes that their index fits, and of no others.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from lamina.adapters.stores.journal_index import (
    index_path,
    read_index,
    write_first_index,
    write_index,
)
from lamina.adapters.stores.session_file import check_header
from lamina.core.audit.totals import add_entries, sum_totals
from lamina.core.journal import GrownEntries, Journal
from lamina.core.journal.journal_file import JournalFile, read_journal_file
from lamina.core.journal.line_index import IndexedEntries, LineIndex, LinePlaces
from lamina.core.values.entry import Entry
from lamina.core.values.totals import ListedSession, SessionTotals
from lamina.errors import LaminaError


def sum_file(file: JournalFile, written: Sequence[Entry] = ()) -> SessionTotals:
    """The totals of a file, with what was `written` to it since it was read."""
    journal = file.journal
    entries = GrownEntries(journal.entries, written)
    if file.totals is not None:
        totals = add_entries(file.totals, entries.since(file.totalled))
        if totals is not None:
            return totals
    if written:
        journal = Journal(entries=entries, leaf=written[-1].id, damage=journal.damage)
    return sum_totals(journal)


def list_file(path: Path, session: str) -> ListedSession:
    """One session file, with its totals; if none are kept they are, for the next time."""
    try:
        status, data = path.stat(), path.read_bytes()
    except OSError as error:
        return ListedSession(session=session, problem=f"{path} cannot be read: {error}")
    index = read_index(index_path(path))
    file = read_journal_file(data, session, index)
    totals, problem = None, ""
    try:
        check_header(file.journal.header, session, path)
        totals = sum_file(file)
    except LaminaError as error:
        problem = str(error)
    if totals is not None and file.places is not None and file.totals is None:
        # A convenience: nothing is lost if it cannot be written.
        with contextlib.suppress(OSError, OverflowError):
            _keep_totals(path, data, index, file.places, totals)
    return ListedSession(
        session=session, totals=totals, bytes=len(data), written=status.st_mtime, problem=problem
    )


def _keep_totals(
    path: Path, data: bytes, index: LineIndex | None, places: LinePlaces, totals: SessionTotals
) -> None:
    place = index_path(path)
    if index is None and place.exists():
        place.unlink()
    if index is None or not index.fits(data):
        write_first_index(place, places.index(b"", totals))
        return
    # It has a snapshot of what it covers, and stays the index of that.
    entries = IndexedEntries(data, LinePlaces.of(index))
    *_, leaf = entries
    write_index(place, index.with_totals(sum_totals(Journal(entries=entries, leaf=leaf))))
