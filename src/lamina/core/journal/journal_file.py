"""The journal in the bytes of a file, with what only a file has: where its lines stand.

Law: with an index or without one, what is read is the same. Only a store of files knows this.
"""

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal.checkpoint import find_checkpoint, read_checkpoint
from lamina.core.journal.journal import Journal, TreeReader
from lamina.core.journal.line_index import IndexedEntries, LineIndex, LinePlaces
from lamina.core.journal.lines import read_lines
from lamina.core.values.totals import SessionTotals


class JournalFile(Struct, frozen=True, kw_only=True):
    """A journal as a file holds it."""

    journal: Journal
    # Whether the next write begins a line of its own by itself.
    ends_line: bool = True
    # Where the lines stand, if all of them are sound.
    places: LinePlaces | None = None
    # How many bytes the snapshot beside it covers; 0 without one.
    covered: int = 0
    # Where the line of the last checkpoint begins; 0 if there is none.
    checkpointed: int = 0
    # Totals that were kept, and how many of the entries they are of.
    totals: SessionTotals | None = None
    totalled: int = 0


def read_journal_file(
    data: bytes, session: str = "", index: LineIndex | None = None
) -> JournalFile:
    """The journal that `data` holds. `session` is its id, should the header be lost. An `index`
    that fits saves reading what it covers, and so does a checkpoint in `data` itself."""
    if index is not None and not index.fits(data):
        index = None
    # An index without a snapshot was made for a list, and serves if there is nothing better.
    covered = index.covered if index is not None and index.state else 0
    if (latest := read_checkpoint(data, covered) or index) is not None:
        file = replace(_read_behind(data, session, latest), covered=covered)
        if index is not None and file.totals is None and not file.journal.damage:
            return replace(file, totals=index.totals, totalled=index.count)
        return file
    reader = TreeReader()
    for line in read_lines(data):
        reader.take(line)
    return JournalFile(
        journal=reader.finish(session),
        ends_line=not data or data.endswith(b"\n"),
        places=_places(data, reader),
        checkpointed=find_checkpoint(data),
    )


def _places(data: bytes, reader: TreeReader) -> LinePlaces | None:
    if reader.damage:
        return None
    places = LinePlaces()
    places.add(tuple(reader.entries.values()), data)
    return places if places.sound else None


def _read_behind(data: bytes, session: str, index: LineIndex) -> JournalFile:
    """The journal, of which only what stands behind the index is read."""
    older = IndexedEntries(data, LinePlaces.of(index))
    tail = data[index.covered :]
    reader = _read_tail(tail, older, index.covered, 1)
    journal = reader.finish(session)
    since = tuple(reader.entries.values())
    if journal.damage:
        # Said once more with the numbers of the lines, which nobody else needs.
        number = data.count(b"\n", 0, index.covered) + 1
        journal = _read_tail(tail, older, index.covered, number).finish(session)
    places = LinePlaces.of(index)
    places.add(since, tail)
    return JournalFile(
        journal=replace(journal, snapshot=index.state, since=since if index.state else ()),
        ends_line=data.endswith(b"\n"),
        places=places if places.sound and not journal.damage else None,
        checkpointed=find_checkpoint(data),
        # What is damaged is counted anew.
        totals=None if journal.damage else index.totals,
        totalled=index.count,
    )


def _read_tail(tail: bytes, older: IndexedEntries, offset: int, number: int) -> TreeReader:
    reader = TreeReader(older, older.last)
    for line in read_lines(tail, number=number, offset=offset):
        reader.take(line)
    return reader
