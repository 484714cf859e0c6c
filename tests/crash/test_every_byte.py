"""Every byte of a journal cut off or changed: one line is lost at most, and that is said."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import anyio
import pytest
from msgspec import Struct
from tests.crash.checks import Written, check_covered, check_known, check_state, lines_of
from tests.crash.continuation import check_going_on
from tests.crash.sample import SESSION, sample_journal
from tests.crash.scale import LONG, luck, much, tally

from lamina.core.journal import Journal, read_journal
from lamina.core.journal.lines import Line, read_lines
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, MessageEntry

FLIPS = (0x01, 0x20, 0x80, 0xFF)
# How many of the journals that lack something new are read whole, and of the others.
NEW, KNOWN = (1.0 if LONG else 0.1), (0.001 if LONG else 0.0)


class Place(Struct, frozen=True):
    """A byte of the journal: where it is, and the index of the line it belongs to. The line break
    belongs to the line in front of it."""

    at: int
    line: int


def places(chance: Random, count: int) -> Iterator[Place]:
    """Every byte in a long run; otherwise some of every line, its ends among them."""
    lines = lines_of(sample_journal())
    for index, line in enumerate(lines):
        every = range(line.offset, line.end + 1)
        if not LONG:
            inner = chance.sample(every, max(1, count // len(lines) - 4))
            ends = (line.offset, line.end - 1, line.end - 5, line.end)
            every = sorted({*inner, *ends})  # type: ignore[assignment]
        for at in every:
            yield Place(at, index)


def near(lines: tuple[Written, ...], index: int) -> tuple[int, int, int]:
    """The first line of a piece around a line, and where the piece begins and ends. Lines prove
    themselves one by one, so the piece is read as it is read within the whole."""
    first, last = max(0, index - 1), min(len(lines) - 1, index + 2)
    return first, lines[first].offset, lines[last].end + 1


def test_a_changed_byte_costs_its_line_at_most_and_is_reported_there() -> None:
    journal, lines = sample_journal(), lines_of(sample_journal())
    chance, whole = luck("flips"), set[tuple[int, bool, bool]]()
    for place in places(chance, much(3_000, 0)):
        first, begin, end = near(lines, place.line)
        for flip in FLIPS if LONG else (chance.choice((*FLIPS, chance.randrange(1, 256))),):
            tally["bytes flipped"] += 1
            piece = bytearray(journal[begin:end])
            piece[place.at - begin] ^= flip
            found = list(read_lines(bytes(piece), number=first + 1, offset=begin))
            _check_flip(found, lines, place, first, end)
            line = lines[place.line]
            key = (place.line, place.at == line.end, piece[place.at - begin] == 0x0A)
            if chance.random() < (KNOWN if key in whole else NEW):
                whole.add(key)
                data = bytearray(journal)
                data[place.at] ^= flip
                _check_whole(bytes(data), lines, place)


def _check_flip(
    found: list[Line | Damage], lines: tuple[Written, ...], place: Place, first: int, end: int
) -> None:
    broken = place.at == lines[place.line].end
    expected = {
        line.offset: line.entry
        for index, line in enumerate(lines[first:], first)
        if line.offset < end and (broken or index != place.line)
    }
    assert {each.offset: each.entry for each in found if isinstance(each, Line)} == expected, place
    damage = [each for each in found if isinstance(each, Damage)]
    assert damage, place
    # A byte that became a line break makes two lines of one.
    assert damage[0].line == place.line + 1, (place, damage)
    assert all(damage.line - place.line in (1, 2) for damage in damage), (place, damage)
    assert any(d.offset <= place.at <= d.offset + d.length for d in damage), (place, damage)


def _check_whole(data: bytes, lines: tuple[Written, ...], place: Place) -> Journal:
    tally["journals read whole"] += 1
    check_covered(data, list(read_lines(data)))
    journal = read_journal(data, SESSION)
    kept = {line.entry.id for index, line in enumerate(lines) if index != place.line}
    assert kept <= journal.entries.keys()
    check_known(journal.entries.values(), {line.entry.id: line.entry for line in lines})
    assert any(damage.line == place.line + 1 for damage in journal.damage)
    check_state(journal)
    return journal


def test_a_cut_at_any_byte_keeps_every_line_in_front_of_it_and_is_reported() -> None:
    journal, lines = sample_journal(), lines_of(sample_journal())
    chance, whole = luck("cuts"), set[tuple[int, int]]()
    for place in places(chance, much(3_000, 0)):
        tally["bytes cut at"] += 1
        line = lines[place.line]
        first, begin, _ = near(lines, place.line)
        found = list(read_lines(journal[begin : place.at], number=first + 1, offset=begin))
        read = [each.entry for each in found if isinstance(each, Line)]
        assert read == [
            line.entry for line in lines[first : place.line + (place.at == line.end)]
        ], place
        damage = [each for each in found if isinstance(each, Damage)]
        kinds = [(damage.kind, damage.line) for damage in damage]
        if place.at == line.offset:
            assert kinds == []
        elif place.at == line.end:
            assert kinds == [("no_final_newline", place.line + 1)]
        else:
            assert kinds == [("torn", place.line + 1)], place
        key = (place.line, (place.at > line.offset) + (place.at == line.end))
        if chance.random() < (KNOWN if key in whole else NEW):
            whole.add(key)
            _check_cut(journal[: place.at], lines, place)


def _check_cut(data: bytes, lines: tuple[Written, ...], place: Place) -> None:
    tally["journals read whole"] += 1
    check_covered(data, list(read_lines(data)))
    journal = read_journal(data, SESSION)
    line = lines[place.line]
    kept = [line.entry for line in lines[: place.line + (place.at == line.end)]]
    if place.line or place.at == line.end:
        assert list(journal.entries.values()) == kept
    kinds = {damage.kind for damage in journal.damage}
    if place.at == line.offset and place.line:
        # Between two writes nothing is amiss; within one, something is missing.
        assert kinds == ({"incomplete_write"} if lines[place.line - 1].more else set())
    check_state(journal)


async def _check_sessions(folder: Path, way: str, damaged: Iterable[tuple[str, bytes]]) -> None:
    """Goes on in every one of these; those that fail are told together."""
    problems = []
    for number, (what, data) in enumerate(damaged):
        try:
            await check_going_on(folder / str(number), data, way)
        except Exception as problem:  # noqa: BLE001 - told below
            problems.append(f"{what}: {problem!r}")
    assert not problems, "\n".join([f"{len(problems)} sessions do not go on", *problems[:40]])


@pytest.mark.parametrize("way", ["prepare", "current_turn"])
def test_a_session_cut_off_behind_any_line_goes_on_with_calls_and_results_in_pairs(
    way: str, tmp_path: Path
) -> None:
    """Behind the last line of a write the process ended; behind another, the power failed."""
    journal, lines = sample_journal(), lines_of(sample_journal())
    some = lines if LONG else luck(f"ends {way}").sample(lines, 40)
    cut = [(f"cut behind {line.entry.id}", journal[: line.end + 1]) for line in some]
    anyio.run(_check_sessions, tmp_path, way, cut)


@pytest.mark.parametrize("way", ["prepare", "current_turn"])
@pytest.mark.parametrize("behind", [0, 1, 2, 3, 999])
def test_a_session_with_a_line_lost_goes_on_with_calls_and_results_in_pairs(
    behind: int, way: str, tmp_path: Path
) -> None:
    """The journal ends so many lines behind the one that is lost."""
    journal, lines = sample_journal(), lines_of(sample_journal())
    damaged = []
    for index, line in enumerate(lines):
        data = bytearray(journal[: lines[min(index + behind, len(lines) - 1)].end + 1])
        data[line.offset + 9] ^= 0x15
        damaged.append((f"lost {line.entry.id}", bytes(data)))
    # In a short run some, and the first calls and results: what answers them may be open.
    pairs = [row for row, line in zip(damaged, lines, strict=True) if _is_of_a_call(line.entry)]
    some = damaged if LONG else [*luck(f"lost {way} {behind}").sample(damaged, 10), *pairs[:4]]
    anyio.run(_check_sessions, tmp_path, way, some)


def _is_of_a_call(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and bool(
        entry.message.calls or entry.message.role == "tool"
    )
