"""A checkpoint saves reading; what is read with one is what is read without."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.journal.test_line_index import HEADER, Written, custom, same, trees
from tests.strategies import modest, thorough

from lamina.core.codec import decode_entry, mint_id
from lamina.core.journal.journal_file import (
    JournalFile,
    LinePlaces,
    Trail,
    find_checkpoint,
    read_checkpoint,
    read_journal_file,
    read_trail,
    write_checkpoint,
)
from lamina.core.journal.lines import is_checkpoint, read_lines, write_lines
from lamina.core.values.entry import Entry

Parts = Sequence[bytes]


def pack(parts: Parts) -> bytes:
    return msgspec.msgpack.encode(list(parts))


class Checkpointed:
    """A journal with checkpoints behind some of its writes, and the state at each of these."""

    def __init__(self, tree: Written, states: Sequence[Parts | None]) -> None:
        self.data = b""
        self.lines: list[bytes] = []
        self.states: dict[int, bytes] = {}
        places, trail = LinePlaces(), Trail()
        entries, start = list(tree.entries), 0
        for end, state in zip(tree.ends, states, strict=False):
            write = tree.data[start:end]
            count = write.count(b"\n")
            places.add(entries[:count], write)
            self.data += write
            entries, start = entries[count:], end
            if state is not None:
                line, trail = write_checkpoint(places, pack(state), trail)
                places.add((), line)
                self.states[len(self.data)] = pack(state)
                self.data += line
                self.lines.append(line)
        assert places.sound
        assert places.covered == len(self.data)


def write_each(count: int) -> list[Sequence[Entry]]:
    """So many entries behind one another, each a write of its own."""
    return [[HEADER], *([custom(mint_id(n), mint_id(n - 1))] for n in range(1, count))]


words = st.binary(max_size=6)


@st.composite
def states(draw: st.DrawFn) -> list[Parts | None]:
    """Parts that grow, change or shrink from one checkpoint to the next."""
    found: list[Parts | None] = []
    parts = [b"", b"", b""]
    for _ in range(8):
        match draw(st.integers(0, 4)):
            case 0:
                parts = [part + draw(words) for part in parts]
            case 1:
                parts = [part[: draw(st.integers(0, 9))] + draw(words) for part in parts]
            case 2:
                parts = [*parts[: draw(st.integers(0, 4))], draw(words)]
            case _:
                pass
        found.append(tuple(parts) if draw(st.booleans()) else None)
    return found


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """As if a reader knew that there are checkpoints, and believed none of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.core.journal.journal_file.read_checkpoint", lambda *_: None)
        yield


def read_all(data: bytes) -> JournalFile:
    with without_checkpoints():
        return read_journal_file(data, "s")


# -- reading -------------------------------------------------------------------------------------


@thorough
@given(trees(), states())
def test_a_journal_with_checkpoints_is_the_journal_without_them(
    tree: Written, states: list[Parts | None]
) -> None:
    checkpointed = Checkpointed(tree, states)
    file, plain = read_journal_file(checkpointed.data, "s"), read_journal_file(tree.data, "s")
    same(file, read_all(checkpointed.data))
    assert dict(file.journal.entries) == dict(plain.journal.entries)
    assert list(file.journal.entries) == list(plain.journal.entries)
    assert (file.journal.leaf, file.journal.last) == (plain.journal.leaf, plain.journal.last)
    assert file.journal.damage == ()
    last = max(checkpointed.states, default=0)
    assert file.journal.snapshot == checkpointed.states.get(last, b"")
    assert file.checkpointed == last


@thorough
@given(trees(), states(), st.data())
def test_whatever_happens_to_the_journal_a_checkpoint_hides_none_of_it(
    tree: Written, states: list[Parts | None], draw: st.DataObject
) -> None:
    checkpointed = Checkpointed(tree, states)
    data, lines = checkpointed.data, checkpointed.data.splitlines(keepends=True)
    at = draw.draw(st.integers(0, len(data) - 1))
    byte = bytes([draw.draw(st.integers(0, 255))])
    line = draw.draw(st.sampled_from(lines))
    changed = draw.draw(
        st.sampled_from(
            [
                data[:at],
                data[:at] + byte + data[at + 1 :],
                data[:at] + byte + data[at:],
                data[:at] + data[at + 1 :],
                data + line,
                line + data,
                data + byte,
                data.replace(line, b"", 1),
                data[:at] + b"\0" * (len(data) - at),
            ]
        )
    )
    same(read_journal_file(changed, "s"), read_all(changed))


@modest
@given(trees(), states(), st.data())
def test_an_index_and_checkpoints_of_any_age_give_the_journal(
    tree: Written, states: list[Parts | None], draw: st.DataObject
) -> None:
    data = Checkpointed(tree, states).data
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
    places = read_all(data[: draw.draw(st.sampled_from(ends))]).places
    if places is None:
        return  # inside of a write
    index = places.index(draw.draw(st.sampled_from([b"", b"index"])))
    file = read_journal_file(data, "s", index)
    same(file, read_all(data))
    if index.state and index.covered > find_checkpoint(data):
        assert file.journal.snapshot == b"index"


def test_only_what_stands_behind_the_last_checkpoint_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writes = write_each(101)
    data = Checkpointed(Written(writes), [None] * 40 + [(b"a",)] + [None] * 49 + [(b"ab",)]).data
    data += write_lines([custom(mint_id(91), mint_id(90)), custom(mint_id(92), mint_id(3))], 90)
    decoded: list[bytes] = []

    def decode(line: bytes) -> Entry:
        decoded.append(line)
        return decode_entry(line)

    monkeypatch.setattr("lamina.core.journal.lines.decode_entry", decode)
    monkeypatch.setattr("lamina.core.journal.journal_file.decode_entry", decode)
    journal = read_journal_file(data, "s").journal
    assert len(decoded) == 2
    assert (len(journal.entries), journal.leaf) == (93, mint_id(92))
    assert journal.snapshot == pack([b"ab"])
    assert [entry.id for entry in journal.since] == [mint_id(91), mint_id(92)]


# -- damage --------------------------------------------------------------------------------------


@modest
@given(trees(), states(), st.data())
def test_a_checkpoint_that_was_cut_off_is_no_damage(
    tree: Written, states: list[Parts | None], draw: st.DataObject
) -> None:
    checkpointed = Checkpointed(tree, states)
    if not checkpointed.lines:
        return
    line = checkpointed.lines[-1]
    place = checkpointed.data.rindex(line)
    cut = line[: draw.draw(st.integers(len(b'{"at":n'), len(line) - 3))]
    assert is_checkpoint(cut)
    torn = read_journal_file(checkpointed.data[:place] + cut, "s")
    assert torn.journal.damage == ()
    assert not torn.ends_line
    # What is written next gives it a line of its own.
    whole = read_journal_file(checkpointed.data[:place] + cut + b"\n", "s")
    assert whole.journal.damage == ()
    assert whole.places is not None
    assert dict(whole.journal.entries) == dict(torn.journal.entries)


def test_a_checkpoint_with_a_changed_byte_is_reported_and_not_believed() -> None:
    writes = write_each(20)
    made = Checkpointed(Written(writes), [None] * 9 + [(b"ten",)] + [None] * 9 + [(b"twenty",)])
    for at in range(len(made.lines[-1]) - 1):
        place = made.data.rindex(made.lines[-1]) + at
        changed = made.data[:place] + b"\x07" + made.data[place + 1 :]
        file = read_journal_file(changed, "s")
        assert len(file.journal.entries) == 20
        assert [damage.offset for damage in file.journal.damage] == [place - at], at
        assert file.journal.snapshot == pack([b"ten"])


def test_entries_that_nul_bytes_took_behind_a_checkpoint_are_reported() -> None:
    made = Checkpointed(Written([[HEADER], [custom("000001", "000000")]]), [(b"x",)])
    data = made.data + write_lines([custom("000001", "000000")], 0)
    place = made.data.index(made.lines[0]) + 40
    damage = read_journal_file(data[:place] + b"\0" * (len(data) - place), "s").journal.damage
    assert [each.kind for each in damage] == ["torn"]


def test_a_checkpoint_of_other_bytes_is_not_believed() -> None:
    made = Checkpointed(Written([[HEADER], [custom("000001", "000000")]]), [None, (b"x",)])
    assert read_checkpoint(made.data) is not None
    other = made.data.replace(b'"data":"x"', b'"data":"y"')
    assert read_checkpoint(other) is None
    assert read_checkpoint(made.data[1:]) is None
    moved = write_lines([HEADER], -1) + made.lines[0]
    assert read_checkpoint(moved) is None
    assert read_journal_file(moved, "s").journal.damage == ()


def test_lines_are_read_as_if_there_were_no_checkpoint_between_them() -> None:
    made = Checkpointed(Written([[HEADER], [custom("000001", "000000")]]), [(b"x",), (b"y",)])
    assert [line.number for line in read_lines(made.data)] == [1, 3]  # type: ignore[union-attr]


# -- size ----------------------------------------------------------------------------------------


def test_checkpoints_hold_what_is_new_and_the_trail_is_taken_up_where_it_ended() -> None:
    writes = write_each(2000)
    states = [(bytes(n), b"%d" % n) if n % 100 == 99 else None for n in range(2000)]
    made = Checkpointed(Written(writes), states)
    assert len(made.lines) == 20
    assert len(made.lines[-1]) < 2 * len(made.lines[1])
    trail = read_trail(made.data)
    assert (trail.place, trail.count, trail.number) == (find_checkpoint(made.data), 2000, 1999)
    assert trail.parts == states[-1]
    places = read_journal_file(made.data, "s").places
    assert places is not None
    more = [custom(mint_id(2000), mint_id(1999))]
    data = made.data + write_lines(more, 1999)
    places.add(more, write_lines(more, 1999))
    line, _ = write_checkpoint(places, pack((bytes(2001), b"2001")), trail)
    index = read_checkpoint(data + line)
    assert index is not None
    assert index.count == 2001
    assert index.state == pack((bytes(2001), b"2001"))


def test_a_trail_that_cannot_be_followed_begins_anew() -> None:
    made = Checkpointed(Written([[HEADER], [custom("000001", "000000")]]), [(b"x",), (b"y",)])
    assert read_trail(b"") == Trail()
    assert read_trail(made.data.replace(made.lines[0], b"", 1)) == Trail()
    assert read_trail(made.data[:-30]) == Trail()
