"""Checkpoints: lines of a journal that say what stands in front of them, so that opening it need
not read all of that.

Laws: a checkpoint is a cache and never the truth. It is no entry: it has no id and no place in the
tree, and a reader that passes over it misses nothing. It is believed only if its own checksum is
right and so is that of every byte in front of it. Each says what is new since the one before; so
all of them together cost what the last one would.
"""

from array import array
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Sequence
from itertools import accumulate
from zlib import compress, crc32, decompress
from zlib import error as BadStream  # noqa: N812

import msgspec
from msgspec import Struct

from lamina.core.journal.line_index import LineIndex, LinePlaces
from lamina.core.journal.lines import BEGINS_CHECKPOINT, is_whole_checkpoint, write_line
from lamina.core.values.totals import SessionTotals

_ENDS = b'"}'


class Checkpoint(Struct, frozen=True, kw_only=True, array_like=True):
    """What is new in front of one place of a sound journal.

    `covered` is how many bytes are in front of its line, `checksum` theirs; `before` is where the
    line of the checkpoint before it begins, 0 if it is the first. `numbers` are the steps between
    ids since then and `lengths` those of their lines, as machine words. `parts` are those of the
    snapshot: of each, how many bytes of the one before hold at the front and at the end, and what
    is between these. `totals` are those of a list, if they are known."""

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
    """Where the checkpoints of a journal got to: where the line of the last one begins, how many
    entries are in front of it, the number of the last of these, and the parts of the snapshot."""

    place: int = 0
    count: int = 0
    number: int = 0
    parts: tuple[bytes, ...] = ()


def write_checkpoint(
    places: LinePlaces, state: bytes, trail: Trail, totals: SessionTotals | None = None
) -> tuple[bytes, Trail]:
    """The line of a checkpoint behind all lines of `places`, and the trail with it. `state` is the
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
    """Where the line of the last checkpoint at or behind `start` begins; 0 if there is none."""
    return data.rfind(b"\n" + BEGINS_CHECKPOINT, max(0, start - 1)) + 1


def read_checkpoint(data: bytes, start: int = 0) -> LineIndex | None:
    """The index that the last sound checkpoint at or behind `start` gives of `data`; None if there
    is none, or what stands in front of it is not what it was made of."""
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
    """The trail to go on with. The checksums of `data` were verified."""
    place = find_checkpoint(data)
    last = _decode(data[place : data.find(b"\n", place)]) if place else None
    steps = _follow(data, last) if last is not None else None
    if not steps or steps[-1].covered != place:
        return Trail()
    places = _places(data, steps)
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
    """All checkpoints up to the last one, in order; None if one of them is not there."""
    steps = [last]
    while place := steps[-1].before:
        if not place < steps[-1].covered or not data.startswith(BEGINS_CHECKPOINT, place):
            return None
        step = _decode(data[place : data.find(b"\n", place)])
        if step is None or step.covered != place:
            return None
        steps.append(step)
    return steps[::-1]


def _places(data: bytes, steps: Sequence[Checkpoint]) -> LinePlaces | None:
    """Where the lines stand that the checkpoints cover; None if they do not add up."""
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
    places = _places(data, steps)
    if places is None:
        return None
    places.covered = data.find(b"\n", steps[-1].covered) + 1
    places.checksum = checksum
    return places.index(_encoder.encode(_merge(steps)), steps[-1].totals)


def _merge(steps: Sequence[Checkpoint]) -> tuple[bytes, ...]:
    """The parts of the snapshot at the last of the checkpoints."""
    parts: list[bytearray] = []
    for step in steps:
        parts += (bytearray() for _ in step.parts[len(parts) :])
        for part, (front, back, between) in zip(parts, step.parts, strict=False):
            # Nearly always they grow at their ends.
            part[front : len(part) - back] = between
    return tuple(bytes(part) for part in parts[: len(steps[-1].parts)])


def _difference(before: bytes, now: bytes) -> tuple[int, int, bytes]:
    """How many bytes both begin and end with, and what is between these now."""
    front = _shared(before, now)
    room = min(len(before), len(now)) - front
    back = _shared(before[: -room - 1 : -1], now[: -room - 1 : -1]) if room else 0
    return front, back, now[front : len(now) - back]


def _shared(one: bytes, two: bytes) -> int:
    """How many bytes both begin with."""
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
