"""An index of a journal: where its lines stand, so that they need not all be read.

Laws: an index is only believed of bytes that it was made of, which their checksum proves; without
it, or where it does not fit, everything is read from the lines themselves.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import cast
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import decode_entry, entry_number, mint_id
from lamina.core.journal.lines import BEGINS_CHECKPOINT
from lamina.core.values.entry import Entry
from lamina.core.values.totals import SessionTotals

# As much of it as says what it is, should the rest be cut off.
_CHECKPOINT = BEGINS_CHECKPOINT[: len(b'{"at":n')]


class LineIndex(Struct, frozen=True, kw_only=True, array_like=True):
    """The first `covered` bytes of a sound journal: the number of each id and where its line is,
    as arrays of machine words. `state` is what the engine made of them, for the engine alone, and
    `totals` what they amount to in a list."""

    covered: int
    checksum: int
    numbers: bytes
    offsets: bytes
    lengths: bytes
    state: bytes = b""
    totals: SessionTotals | None = None

    @property
    def count(self) -> int:
        """How many entries it covers."""
        return len(self.numbers) // array("Q").itemsize

    def with_totals(self, totals: SessionTotals) -> "LineIndex":
        return replace(self, totals=totals)

    def fits(self, data: bytes) -> bool:
        """Whether `data` begins with the bytes that this is an index of."""
        if not 0 < self.covered <= len(data):
            return False
        return crc32(memoryview(data)[: self.covered]) == self.checksum


class LinePlaces:
    """Where the lines of a journal stand; it grows as lines are written."""

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
        """Takes in what was written behind the rest; `data` is its lines."""
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
        """The position of an entry in the file, by its id."""
        number = entry_number(entry_id)
        if number is None:
            return None
        place = bisect_left(self.numbers, number)
        is_there = place < len(self.numbers) and self.numbers[place] == number
        return place if is_there and mint_id(number) == entry_id else None


def _pass_checkpoints(data: bytes, start: int) -> int:
    """Where the first line at or behind `start` begins that is not a checkpoint."""
    while data.startswith(_CHECKPOINT, start) and (end := data.find(b"\n", start)) >= 0:
        start = end + 1
    return start


class IndexedEntries(Mapping[str, Entry]):
    """The entries that an index covers, in order of writing, decoded when they are looked at."""

    def __init__(self, data: bytes, places: LinePlaces) -> None:
        self._data = data
        self._places = places
        self._decoded: dict[str, Entry] = {}

    @property
    def last(self) -> int:
        """The number of the last of them."""
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
        """The lines themselves from the entry at `start` on: for those who need little of each."""
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
