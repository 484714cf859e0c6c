"""Reads a journal file: the positions of its lines, its checkpoints, and how it is opened.

Laws: reading gives the same result with an index, with checkpoints, or without either. An index is
trusted only for the bytes it was made from, as proven by their checksum; if it does not match,
everything is read from the lines themselves. A checkpoint is a cache and never the truth: it has no
id and no place in the tree, and a reader that skips it misses nothing. It is trusted only if its
own checksum and that of every byte before it are right. Each contains what is new since the
previous one, so all of them together cost as much as the last one would. Only a store of files uses
this.
"""

from array import array
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import cast
from zlib import compress, crc32, decompress
from zlib import error as BadStream  # noqa: N812

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import decode_entry, entry_number, mint_id
from lamina.core.journal.journal import Journal, TreeReader
from lamina.core.journal.lines import BEGINS_CHECKPOINT, is_whole_checkpoint, read_lines, write_line
from lamina.core.values.entry import Entry
from lamina.core.values.totals import SessionTotals

# Enough of it to be recognized if the rest is cut off.
_CHECKPOINT = BEGINS_CHECKPOINT[: len(b'{"at":n')]


class LineIndex(Struct, frozen=True, kw_only=True, array_like=True):
    """An index of the first `covered` bytes of an intact journal: each id's number and the position
    of its line, as arrays of machine words. `state` is the engine's snapshot, for the engine only,
    and `totals` are its totals for a list."""

    covered: int
    checksum: int
    numbers: bytes
    offsets: bytes
    lengths: bytes
    state: bytes = b""
    totals: SessionTotals | None = None

    @property
    def count(self) -> int:
        """The number of entries it covers."""
        return len(self.numbers) // array("Q").itemsize

    def with_totals(self, totals: SessionTotals) -> "LineIndex":
        return replace(self, totals=totals)

    def fits(self, data: bytes) -> bool:
        """Return whether `data` starts with the indexed bytes."""
        if not 0 < self.covered <= len(data):
            return False
        return crc32(memoryview(data)[: self.covered]) == self.checksum


class LinePlaces:
    """The positions of a journal's lines; it grows as lines are written."""

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.covered = 0
        self.checksum = 0
        # Ids that are not numbers, or not in order, cannot be looked up this way.
        self.sound = True

    @classmethod
    def of(cls, index: LineIndex) -> "LinePlaces":
        places = cls()
        for name in ("numbers", "offsets", "lengths"):
            getattr(places, name).frombytes(getattr(index, name))
        places.covered, places.checksum = index.covered, index.checksum
        return places

    def add(self, entries: Sequence[Entry], data: bytes) -> None:
        """Add entries written after the rest; `data` contains their lines."""
        at, start = self.covered, 0
        for entry in entries:
            start = _pass_checkpoints(data, start)
            end = data.find(b"\n", start)
            number = entry_number(entry.id)
            last = self.numbers[-1] if self.numbers else -1
            if number is None or end < 0 or mint_id(number) != entry.id or number <= last:
                self.sound = False
                return
            self.numbers.append(number)
            self.offsets.append(at + start)
            self.lengths.append(end - start)
            start = end + 1
        self.covered += len(data)
        self.checksum = crc32(data, self.checksum)
        self.sound &= _pass_checkpoints(data, start) == len(data)

    def index(self, state: bytes, totals: SessionTotals | None = None) -> LineIndex:
        return LineIndex(
            covered=self.covered,
            checksum=self.checksum,
            numbers=self.numbers.tobytes(),
            offsets=self.offsets.tobytes(),
            lengths=self.lengths.tobytes(),
            state=state,
            totals=totals,
        )

    def find(self, entry_id: str) -> int | None:
        """Return the position of an entry in the file, by its id."""
        number = entry_number(entry_id)
        if number is None:
            return None
        place = bisect_left(self.numbers, number)
        is_there = place < len(self.numbers) and self.numbers[place] == number
        return place if is_there and mint_id(number) == entry_id else None


def _pass_checkpoints(data: bytes, start: int) -> int:
    """Return the start of the first line at or after `start` that is not a checkpoint."""
    while data.startswith(_CHECKPOINT, start) and (end := data.find(b"\n", start)) >= 0:
        start = end + 1
    return start


class IndexedEntries(Mapping[str, Entry]):
    """The entries covered by an index, in the order of writing, decoded on access."""

    def __init__(self, data: bytes, places: LinePlaces) -> None:
        self._data = data
        self._places = places
        self._decoded: dict[str, Entry] = {}

    @property
    def last(self) -> int:
        """The number of the last covered entry."""
        return self._places.numbers[-1]

    def __getitem__(self, entry_id: str) -> Entry:
        if (entry := self._decoded.get(entry_id)) is not None:
            return entry
        place = self._places.find(entry_id)
        if place is None:
            raise KeyError(entry_id)
        start = self._places.offsets[place]
        line = self._data[start : start + self._places.lengths[place]]
        entry = self._decoded[entry_id] = decode_entry(line)
        return entry

    def lines_from(self, start: int) -> Iterator[bytes]:
        """Yield the raw lines from the entry at `start` on, for callers that need little of
        each."""
        places = self._places
        for at, length in zip(places.offsets[start:], places.lengths[start:], strict=True):
            yield self._data[at : at + length]

    def __contains__(self, entry_id: object) -> bool:
        return self._places.find(cast(str, entry_id)) is not None

    def __iter__(self) -> Iterator[str]:
        for number in self._places.numbers:
            yield mint_id(number)

    def __len__(self) -> int:
        return len(self._places.numbers)


_ENDS = b'"}'


class Checkpoint(Struct, frozen=True, kw_only=True, array_like=True):
    """The new content before one position in an intact journal.

    `covered` is the number of bytes before its line, `checksum` theirs; `before` is the start of
    the previous checkpoint's line, 0 if it is the first. `numbers` are the steps between ids since
    then and `lengths` those of their lines, as machine words. `parts` are those of the snapshot:
    for each, how many bytes it shares with the previous one at the front and at the end, and the
    bytes between. `totals` are those for a list, if known.
    """

    covered: int
    checksum: int
    before: int
    numbers: bytes
    lengths: bytes
    parts: tuple[tuple[int, int, bytes], ...]
    totals: SessionTotals | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Checkpoint)
_part_decoder = msgspec.msgpack.Decoder(tuple[bytes, ...])


class Trail(Struct, frozen=True, kw_only=True):
    """The end of a journal's checkpoints: the start of the last one's line, the number of entries
    before it, the number of the last of these, and the parts of the snapshot."""

    place: int = 0
    count: int = 0
    number: int = 0
    parts: tuple[bytes, ...] = ()


def write_checkpoint(
    places: LinePlaces, state: bytes, trail: Trail, totals: SessionTotals | None = None
) -> tuple[bytes, Trail]:
    """Return the line of a checkpoint after all lines of `places`, with its trail. `state` is the
    snapshot there: a MessagePack array of byte strings.

    Raises:
        MsgspecError: it is something else.
    """
    parts = _part_decoder.decode(state)
    numbers, steps = places.numbers[trail.count :], array("Q")
    last = trail.number
    for number in numbers:
        steps.append(number - last)
        last = number
    earlier = (*trail.parts, *(b"" for _ in parts[len(trail.parts) :]))
    checkpoint = Checkpoint(
        covered=places.covered,
        checksum=places.checksum,
        before=trail.place,
        numbers=steps.tobytes(),
        lengths=places.lengths[trail.count :].tobytes(),
        parts=tuple(_difference(*pair) for pair in zip(earlier, parts, strict=False)),
        totals=totals,
    )
    body = b64encode(compress(_encoder.encode(checkpoint)))
    line = write_line(BEGINS_CHECKPOINT + body + _ENDS)
    count = len(places.numbers)
    return line, Trail(place=places.covered, count=count, number=last, parts=parts)


def find_checkpoint(data: bytes, start: int = 0) -> int:
    """Return the start of the last checkpoint's line at or after `start`; 0 if there is none."""
    return data.rfind(b"\n" + BEGINS_CHECKPOINT, max(0, start - 1)) + 1


def read_checkpoint(data: bytes, start: int = 0) -> LineIndex | None:
    """Return the index of `data` from the last intact checkpoint at or after `start`; None if there
    is none, or if the bytes before it have changed."""
    end = len(data)
    while place := data.rfind(b"\n" + BEGINS_CHECKPOINT, max(0, start - 1), end) + 1:
        line = data[place : data.find(b"\n", place)]
        if is_whole_checkpoint(line) and (last := _decode(line)) is not None:
            checksum = crc32(memoryview(data)[:place])
            if (last.covered, last.checksum) != (place, checksum):
                return None
            steps = _follow(data, last)
            return None if steps is None else _index(data, steps, crc32(line + b"\n", checksum))
        end = place
    return None


def read_trail(data: bytes) -> Trail:
    """Return the trail from which to continue. The checksums of `data` were already verified."""
    place = find_checkpoint(data)
    last = _decode(data[place : data.find(b"\n", place)]) if place else None
    steps = _follow(data, last) if last is not None else None
    if not steps or steps[-1].covered != place:
        return Trail()
    places = _covered_places(data, steps)
    if places is None:
        return Trail()
    return Trail(
        place=place,
        count=len(places.numbers),
        number=places.numbers[-1],
        parts=_merge(steps),
    )


def _decode(line: bytes) -> Checkpoint | None:
    end = line.find(_ENDS[:1], len(BEGINS_CHECKPOINT))
    try:
        return _decoder.decode(decompress(b64decode(line[len(BEGINS_CHECKPOINT) : end])))
    except (BadBase64, BadStream, msgspec.MsgspecError):
        return None


def _follow(data: bytes, last: Checkpoint) -> list[Checkpoint] | None:
    """Return all checkpoints up to the last one, in order; None if one is missing."""
    steps = [last]
    while place := steps[-1].before:
        if not place < steps[-1].covered or not data.startswith(BEGINS_CHECKPOINT, place):
            return None
        step = _decode(data[place : data.find(b"\n", place)])
        if step is None or step.covered != place:
            return None
        steps.append(step)
    return steps[::-1]


def _covered_places(data: bytes, steps: Sequence[Checkpoint]) -> LinePlaces | None:
    """Return the positions of the lines covered by the checkpoints; None if they are
    inconsistent."""
    places, start = LinePlaces(), 0
    numbers = array("Q")
    for step in steps:
        numbers.frombytes(step.numbers)
        lengths = array("Q")
        lengths.frombytes(step.lengths)
        ends = list(accumulate((length + 1 for length in lengths), initial=start))
        if ends.pop() != step.covered:
            return None
        places.offsets.extend(ends)
        places.lengths.extend(lengths)
        start = data.find(b"\n", step.covered) + 1
    places.numbers.extend(accumulate(numbers))
    return places if len(places.numbers) == len(places.lengths) and places.numbers else None


def _index(data: bytes, steps: Sequence[Checkpoint], checksum: int) -> LineIndex | None:
    places = _covered_places(data, steps)
    if places is None:
        return None
    places.covered = data.find(b"\n", steps[-1].covered) + 1
    places.checksum = checksum
    return places.index(_encoder.encode(_merge(steps)), steps[-1].totals)


def _merge(steps: Sequence[Checkpoint]) -> tuple[bytes, ...]:
    """Return the parts of the snapshot at the last of the checkpoints."""
    parts: list[bytearray] = []
    for step in steps:
        parts += (bytearray() for _ in step.parts[len(parts) :])
        for part, (front, back, between) in zip(parts, step.parts, strict=False):
            # Nearly always, parts only grow at their ends.
            part[front : len(part) - back] = between
    return tuple(bytes(part) for part in parts[: len(steps[-1].parts)])


def _difference(before: bytes, now: bytes) -> tuple[int, int, bytes]:
    """Return the number of bytes shared at the start and at the end, and the new bytes between."""
    front = _shared(before, now)
    room = min(len(before), len(now)) - front
    back = _shared(before[: -room - 1 : -1], now[: -room - 1 : -1]) if room else 0
    return front, back, now[front : len(now) - back]


def _shared(one: bytes, two: bytes) -> int:
    """Return the number of bytes shared at the start."""
    low, high = 0, min(len(one), len(two))
    if one[:high] == two[:high]:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


class JournalFile(Struct, frozen=True, kw_only=True):
    """A journal as stored in a file."""

    journal: Journal
    # Whether the file ends with a line break, so that the next write need not add one.
    ends_line: bool = True
    # The positions of the lines, if all of them are intact.
    places: LinePlaces | None = None
    # The number of bytes covered by the snapshot beside it; 0 without one.
    covered: int = 0
    # The start of the last checkpoint's line; 0 if there is none.
    checkpointed: int = 0
    # Stored totals, and the number of entries they cover.
    totals: SessionTotals | None = None
    totalled: int = 0


def read_journal_file(
    data: bytes, session: str = "", index: LineIndex | None = None
) -> JournalFile:
    """Return the journal in `data`. `session` is its id, in case the header is lost. A matching
    `index` makes it unnecessary to read what it covers, and so does a checkpoint in `data`
    itself."""
    if index is not None and not index.fits(data):
        index = None
    # An index without a snapshot was made for a list, and is used if there is nothing better.
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
    """Return the journal, reading only what comes after the index."""
    older = IndexedEntries(data, LinePlaces.of(index))
    tail = data[index.covered :]
    reader = _read_tail(tail, older, index.covered, 1)
    journal = reader.finish(session)
    since = tuple(reader.entries.values())
    if journal.damage:
        # Damage is reported again with line numbers, which nothing else needs.
        number = data.count(b"\n", 0, index.covered) + 1
        journal = _read_tail(tail, older, index.covered, number).finish(session)
    places = LinePlaces.of(index)
    places.add(since, tail)
    return JournalFile(
        journal=replace(journal, snapshot=index.state, since=since if index.state else ()),
        ends_line=data.endswith(b"\n"),
        places=places if places.sound and not journal.damage else None,
        checkpointed=find_checkpoint(data),
        # Damage is counted from the start again.
        totals=None if journal.damage else index.totals,
        totalled=index.count,
    )


def _read_tail(tail: bytes, older: IndexedEntries, offset: int, number: int) -> TreeReader:
    reader = TreeReader(older, older.last)
    for line in read_lines(tail, number=number, offset=offset):
        reader.take(line)
    return reader
