"""The power fails at any moment: what was acknowledged is there, what was not is reported.

A run of the real store is recorded as its writes and syncs. A disk may keep, of what was not synced
yet, any beginning, nothing but the length, or any of its sectors, and leave rubbish in the others.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import anyio
import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.crash.checks import Written, check_image, lines_of
from tests.crash.faulty import BROKEN, Fault, FaultyOs, put_in
from tests.crash.sample import SESSION, entry_of, header_of, sample_journal
from tests.crash.scale import luck, much, tally

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.codec import mint_id
from lamina.core.journal import read_journal
from lamina.core.journal.lines import Line, read_lines
from lamina.core.values.entry import Entry
from lamina.errors import WriteFailed

PAGE = 4096
RUBBISH = (b"\0", b"\xff", b"{", b"\n", b'"}\n{"at":', b"\r")


class Moment(Struct, frozen=True):
    """A state the disk may be in: all bytes written so far, how many of them surely are there,
    which ids were acknowledged, and earlier bytes whose sync failed."""

    data: bytes
    sure: int
    acked: frozenset[str]
    doubtful: tuple[range, ...] = ()


class Recording(Struct, frozen=True):
    written: tuple[Written, ...]
    moments: tuple[Moment, ...]
    # Where writes end: a file that ends there is sound.
    ends: frozenset[int]


def some_entries(chance: Random, count: int) -> Iterator[Entry]:
    """Neighbours from the sample."""
    lines = lines_of(sample_journal())[1:]
    start = chance.randrange(len(lines) - count)
    return iter([line.entry for line in lines[start : start + count]])


async def record(
    folder: Path, faulty: FaultyOs, chance: Random, source: Iterator[Entry], appends: int
) -> Recording:
    """Appends entries of the sample, some at a time; now and then a sync fails."""
    store = JsonlStore(folder)
    opened = await store.create(header_of())
    path = store.path_of(SESSION)
    sure = path.stat().st_size
    parent, acked, doubtful = "000000", {"000000"}, list[range]()
    moments, ends = [], {0, sure}
    for _ in range(appends):
        made: list[Entry] = []
        for entry in islice(source, chance.randint(1, 4)):
            number = mint_id(opened.last + 1 + len(made))
            made.append(replace(entry, id=number, parent=made[-1].id if made else parent))
        fails = chance.random() < 0.2
        faulty.syncs.append(Fault(BROKEN) if fails else None)
        before = path.stat().st_size
        try:
            await opened.append(made)
        except WriteFailed:
            assert fails
        data = path.read_bytes()
        ends.add(len(data))
        moments.append(Moment(data, sure, frozenset(acked), tuple(doubtful)))
        if fails:
            doubtful.append(range(before, len(data)))
            continue
        # The page on which this write began went to the disk with it.
        page = before // PAGE * PAGE
        doubtful = [each for each in (range(d.start, min(d.stop, page)) for d in doubtful) if each]
        sure, parent = len(data), made[-1].id
        acked |= {entry.id for entry in made}
        moments.append(Moment(data, sure, frozenset(acked), tuple(doubtful)))
    await opened.close()
    return Recording(lines_of(path.read_bytes()), tuple(moments), frozenset(ends))


# -- what may be left ----------------------------------------------------------------------------


def cut_short(moment: Moment) -> Iterator[bytes]:
    """Every beginning of what was not synced."""
    for end in range(moment.sure, len(moment.data) + 1):
        yield moment.data[:end]


def zero_filled(moment: Moment) -> Iterator[bytes]:
    """The file has its length, the bytes are not there from some place on."""
    for end in range(moment.sure, len(moment.data)):
        yield moment.data[:end] + bytes(len(moment.data) - end)


def with_bad_sectors(moment: Moment, chance: Random, times: int) -> Iterator[bytes]:
    """Some sectors of what was not synced, or whose sync failed, are zero or rubbish."""
    for _ in range(times):
        image = bytearray(moment.data)
        size = chance.choice((512, PAGE))
        for bad in (range(moment.sure, len(image)), *moment.doubtful):
            for sector in range(bad.start // size * size, bad.stop, size):
                begin, end = max(sector, bad.start), min(sector + size, bad.stop)
                # A sector goes to the disk whole: with what was written behind, or without.
                shared = end < sector + size and end < len(image)
                if not shared and chance.random() < 0.5:
                    image[begin:end] = _rubbish(chance, end - begin)
        if chance.random() < 0.3:
            del image[chance.randint(moment.sure, len(image)) :]
        yield bytes(image)


def _rubbish(chance: Random, length: int) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        return bytes(length)
    if kind < 0.7:
        return chance.randbytes(length)
    return (chance.choice(RUBBISH) * length)[:length]


# -- what must hold ------------------------------------------------------------------------------


def check(image: bytes, moment: Moment, run: Recording) -> None:
    tally["power-loss images"] += 1
    journal = check_image(image, run.written, moment.acked)
    sound = len(image) in run.ends and moment.data.startswith(image)
    assert bool(journal.damage) is not sound, (len(image), journal.damage)


async def check_next_append(image: bytes, run: Recording, folder: Path) -> None:
    """On that image, the next append can be read and nothing that was there has changed."""
    tally["images appended to"] += 1
    store = JsonlStore(folder)
    path = store.path_of(SESSION)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image)
    opened = await store.open(SESSION)
    before = opened.journal
    entry = entry_of(mint_id(opened.last + 1), before.leaf, "and on")
    await opened.append([entry])
    await opened.close()
    data = path.read_bytes()
    if not data.startswith(image):
        tally["rewritten"] += 1
        raise AssertionError("the file was rewritten")
    after = read_journal(data, SESSION)
    assert after.entries == {**before.entries, entry.id: entry}
    assert "missing_entries" not in {damage.kind for damage in after.damage[len(before.damage) :]}
    lines = [line for line in read_lines(image) if isinstance(line, Line)]
    again = [line for line in read_lines(data) if isinstance(line, Line)]
    assert again[:-1] == lines


@pytest.mark.parametrize("number", range(much(3, 12)))
def test_what_was_acknowledged_survives_every_loss_of_power(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = luck(f"power {number}")
    source = some_entries(chance, 48)
    run = anyio.run(record, tmp_path / "run", put_in(monkeypatch), chance, source, 12)
    images = [
        (image, moment)
        for moment in run.moments
        for image in (
            *_some(chance, cut_short(moment), much(10, 600)),
            *_some(chance, zero_filled(moment), much(8, 400)),
            *with_bad_sectors(moment, chance, much(12, 100)),
        )
    ]
    for image, moment in images:
        check(image, moment, run)

    async def body() -> None:
        for image, _ in chance.sample(images, much(20, 150)):
            await check_next_append(image, run, tmp_path / "images")

    anyio.run(body)


def test_every_cut_of_one_write_of_several_entries_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = luck("every cut")
    source = some_entries(chance, 32)
    run = anyio.run(record, tmp_path, put_in(monkeypatch), chance, source, much(1, 8))
    for moment in run.moments:
        for image in cut_short(moment):
            check(image, moment, run)
        for image in islice(zero_filled(moment), 0, None, much(8, 1)):
            check(image, moment, run)


def _some(chance: Random, images: Iterator[bytes], count: int) -> Sequence[bytes]:
    made = list(images)
    return made if len(made) <= count else chance.sample(made, count)
