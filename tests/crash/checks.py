"""What must hold of every damaged journal."""

from collections.abc import Container, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from tests.crash.scale import tally

from lamina.core.journal import Journal, State, path_to, read_journal, replay_repaired
from lamina.core.journal.lines import Line, read_lines
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry


class Written(Struct, frozen=True):
    """A line as it was written: where it stood, its bytes without the line break, its entry."""

    offset: int
    raw: bytes
    entry: Entry
    # How many lines of the same write follow.
    more: int

    @property
    def end(self) -> int:
        return self.offset + len(self.raw)


def lines_of(journal: bytes) -> tuple[Written, ...]:
    """The lines of a sound journal."""
    made = []
    for line in read_lines(journal):
        assert isinstance(line, Line), line
        raw = journal[line.offset : line.offset + line.length]
        made.append(Written(line.offset, raw, line.entry, line.more))
    return tuple(made)


def check_covered(data: bytes, found: Sequence[Line | Damage], number: int = 1) -> None:
    """Every byte is part of a line that was read or of a damage that was reported, at its place."""
    at = 0
    for each in found:
        if each.offset > at:
            gap = data[at : each.offset]
            _claim(not gap.strip(b"\n"), "silent drops", f"bytes {at} to {each.offset}: {gap!r}")
        stands = each.number if isinstance(each, Line) else each.line
        assert stands == number + data.count(b"\n", 0, each.offset), each
        at = max(at, each.offset + each.length)
    _claim(not data[at:].strip(b"\n"), "silent drops", f"the end, from byte {at}")


def check_image(image: bytes, written: Sequence[Written], acked: Container[str]) -> Journal:
    """Everything acknowledged and everything that is whole is read, what is not is reported, and
    nothing is read that was not written."""
    found = list(read_lines(image))
    check_covered(image, found)
    read = {each.offset: each.entry for each in found if isinstance(each, Line)}
    for line in written:
        if image[line.offset : line.end] == line.raw:
            same = read.get(line.offset) == line.entry
            _claim(same, "silent drops", f"{line.entry.id!r} is whole at byte {line.offset}")
    journal = read_journal(image, "sample")
    for line in written:
        if line.entry.id in acked:
            kept = journal.entries.get(line.entry.id)
            _claim(kept == line.entry, "lost", f"{line.entry.id!r} was acknowledged")
    check_known(journal.entries.values(), {line.entry.id: line.entry for line in written})
    check_state(journal)
    return journal


def check_known(entries: Iterable[Entry], written: dict[str, Entry]) -> None:
    """Nothing was read that was not written; only a lost parent may be another."""
    for entry in entries:
        known = written.get(entry.id)
        if known is None or entry != replace(known, parent=entry.parent):
            # The header that stands in for a lost one.
            assert (entry.id, entry.parent) == ("000000", None), entry


def check_state(journal: Journal) -> State:
    """The journal gives a state, whatever is wrong with it."""
    state, _ = replay_repaired(path_to(journal.leaf, journal.entries))
    return state


def _claim(true: bool, what: str, detail: str) -> None:
    if not true:
        tally[what] += 1
        raise AssertionError(f"{what}: {detail}")
