"""The journal in the bytes of a file, with what only a file has: where its lines stand.

Law: with an index or without one, what is read is the same. Only a store of files knows this.
"""

from msgspec import Struct

from lamina.codec import mint_id
from lamina.journal.grown_entries import GrownEntries
from lamina.journal.journal import Journal, TreeReader
from lamina.journal.line_index import IndexedEntries, LineIndex, LinePlaces
from lamina.journal.lines import read_lines
from lamina.values.entry import Entry
from lamina.values.totals import SessionTotals


class JournalFile(Struct, frozen=True, kw_only=True):
    """A journal as a file holds it."""

    journal: Journal
    # Whether the next write begins a line of its own by itself.
    ends_line: bool = True
    # Where the lines stand, if all of them are sound.
    places: LinePlaces | None = None
    # How many bytes the snapshot covers; 0 without one.
    covered: int = 0
    # The totals of what an index covers, and the entries behind that.
    totals: SessionTotals | None = None
    since: tuple[Entry, ...] = ()


def read_journal_file(
    data: bytes, session: str = "", index: LineIndex | None = None
) -> JournalFile:
    """The journal that `data` holds. `session` is its id, should the header be lost; an `index`
    that fits saves reading what it covers."""
    if index is not None and index.fits(data) and (file := _read_behind(data, index)):
        return file
    reader = TreeReader()
    for line in read_lines(data):
        reader.take(line)
    return JournalFile(
        journal=reader.finish(session),
        ends_line=not data or data.endswith(b"\n"),
        places=_places(data, reader),
    )


def _places(data: bytes, reader: TreeReader) -> LinePlaces | None:
    if reader.damage:
        return None
    places = LinePlaces()
    places.add(tuple(reader.entries.values()), data)
    return places if places.sound else None


def _read_behind(data: bytes, index: LineIndex) -> JournalFile | None:
    """The journal, of which only what stands behind the index is read; None if that is damaged:
    then everything is looked at."""
    places = LinePlaces.of(index)
    older = IndexedEntries(data, LinePlaces.of(index))
    last = places.numbers[-1]
    reader = TreeReader(older, last)
    tail = data[index.covered :]
    for line in read_lines(tail, offset=index.covered):
        reader.take(line)
    since = tuple(reader.entries.values())
    places.add(since, tail)
    if reader.damage or reader.awaited or not places.sound:
        return None
    journal = Journal(
        entries=GrownEntries(older, since),
        leaf=since[-1].id if since else mint_id(last),
        last=reader.last,
        snapshot=index.state,
        since=since if index.state else (),
    )
    return JournalFile(
        journal=journal,
        places=places,
        covered=index.covered if index.state else 0,
        totals=index.totals,
        since=since,
    )
