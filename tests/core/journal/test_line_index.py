"""An index saves reading; what is read with one is what is read without."""

from collections.abc import Sequence
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import modest, texts, thorough

from lamina.core.codec import decode_entry, mint_id
from lamina.core.journal import GrownEntries, path_to
from lamina.core.journal.journal_file import (
    IndexedEntries,
    JournalFile,
    LineIndex,
    LinePlaces,
    read_journal_file,
)
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import CustomEntry, Entry, SessionEntry, UnknownEntry
from lamina.errors import JournalError

HEADER = SessionEntry(id="000000", parent=None, at=0.5, session="s")


def custom(entry: str, parent: str, text: str = "x") -> Entry:
    return CustomEntry(id=entry, parent=parent, at=1.5, kind="test", data=text)


class Written:
    """A journal as it is written, write by write: the bytes after each, and all entries."""

    def __init__(self, writes: Sequence[Sequence[Entry]]) -> None:
        self.entries = [entry for write in writes for entry in write]
        self.data = b""
        self.ends: list[int] = []
        last = -1
        for write in writes:
            self.data += write_lines(write, last)
            self.ends.append(len(self.data))
            last = max([last, *(int(entry.id, 16) for entry in write)])


@st.composite
def trees(draw: st.DrawFn) -> Written:
    """Writes of one to four entries, anywhere in the tree; between writes ids are given up."""
    writes: list[list[Entry]] = [[HEADER]]
    known, number = ["000000"], 0
    for _ in range(draw(st.integers(0, 6))):
        write: list[Entry] = []
        number += draw(st.sampled_from([0, 0, 0, 3, 299]))
        for _ in range(draw(st.integers(1, 4))):
            number += 1
            parent = draw(st.sampled_from([known[-1], known[-1], draw(st.sampled_from(known))]))
            write.append(custom(mint_id(number), parent, draw(texts)))
            known.append(mint_id(number))
        writes.append(write)
    return Written(writes)


def index_of(data: bytes, state: bytes = b"state") -> LineIndex:
    places = read_journal_file(data, "s").places
    assert places is not None
    return places.index(state)


def same(one: JournalFile, two: JournalFile) -> None:
    assert dict(one.journal.entries) == dict(two.journal.entries)
    assert list(one.journal.entries) == list(two.journal.entries)
    for name in ("leaf", "last", "damage"):
        assert getattr(one.journal, name) == getattr(two.journal, name)
    assert one.ends_line == two.ends_line
    assert (one.places is None) == (two.places is None)
    if one.places and two.places:
        assert one.places.index(b"") == two.places.index(b"")


# -- reading with an index -----------------------------------------------------------------------


@thorough
@given(trees(), st.data())
def test_a_journal_read_with_an_index_of_any_age_is_the_journal(
    tree: Written, data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from(tree.ends))
    file = read_journal_file(tree.data, "s", index_of(tree.data[:end]))
    same(file, read_journal_file(tree.data, "s"))
    journal = file.journal
    assert (journal.snapshot, file.covered) == (b"state", end)
    assert list(journal.since) == [e for e in tree.entries if _offset(tree, e) >= end]
    for entry in tree.entries:
        assert path_to(entry.id, journal.entries) == path_to(
            entry.id, {entry.id: entry for entry in tree.entries}
        )


def _offset(tree: Written, entry: Entry) -> int:
    lines = tree.data.split(b"\n")
    at = tree.entries.index(entry)
    return sum(len(line) + 1 for line in lines[:at])


@thorough
@given(trees(), st.data())
def test_whatever_happens_to_the_journal_an_index_hides_none_of_it(
    tree: Written, data: st.DataObject
) -> None:
    index = index_of(tree.data[: data.draw(st.sampled_from(tree.ends))])
    at = data.draw(st.integers(0, len(tree.data) - 1))
    byte = bytes([data.draw(st.integers(0, 255))])
    line = tree.data.split(b"\n")[data.draw(st.integers(0, len(tree.entries) - 1))] + b"\n"
    changed = data.draw(
        st.sampled_from(
            [
                tree.data[:at],
                tree.data[:at] + byte + tree.data[at + 1 :],
                tree.data[:at] + byte + tree.data[at:],
                tree.data[:at] + tree.data[at + 1 :],
                tree.data + line,
                tree.data + b"\n",
                tree.data + byte,
                tree.data.replace(line, b"", 1),
                b"",
            ]
        )
    )
    same(read_journal_file(changed, "s", index), read_journal_file(changed, "s"))


def test_only_what_stands_behind_an_index_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [HEADER, *(custom(mint_id(n), mint_id(n - 1)) for n in range(1, 101))]
    data = write_lines(entries, -1)
    index = index_of(data)
    more = write_lines([custom(mint_id(101), mint_id(100)), custom(mint_id(102), mint_id(3))], 100)
    decoded: list[bytes] = []

    def decode(line: bytes) -> Entry:
        decoded.append(line)
        return decode_entry(line)

    monkeypatch.setattr("lamina.core.journal.lines.decode_entry", decode)
    monkeypatch.setattr("lamina.core.journal.journal_file.decode_entry", decode)
    journal = read_journal_file(data + more, "s", index).journal
    assert len(decoded) == 2
    assert (len(journal.entries), journal.leaf) == (103, mint_id(102))
    assert mint_id(50) in journal.entries
    assert len(decoded) == 2
    assert journal.entries[mint_id(50)] is journal.entries[mint_id(50)]
    assert len(decoded) == 3


def test_ids_missing_inside_of_one_write_are_no_damage() -> None:
    """As in a fork, which is written at once and holds the ids of one path."""
    entries = [custom("000001", "000000"), custom("000005", "000001"), custom("000006", "000005")]
    data = write_lines([HEADER], -1) + write_lines(entries, 0)
    file = read_journal_file(data, "s")
    assert file.journal.damage == ()
    assert file.places is not None


@pytest.mark.parametrize("covered", [0, -1, 10**9])
def test_an_index_of_more_bytes_than_there_are_does_not_fit(covered: int) -> None:
    data = write_lines([HEADER], -1)
    assert index_of(data).fits(data)
    assert not replace(index_of(data), covered=covered).fits(data)
    assert not index_of(data).fits(b"")
    assert index_of(data).fits(data + b"and more")
    assert not index_of(data).fits(data.replace(b"session", b"Session"))


# -- ids that are not ours -----------------------------------------------------------------------

FOREIGN = ["A", "a", "0xa", "1_0", " 5", "0000000a", "msg-1", "é", "", "-1", "٣"]


@pytest.mark.parametrize("entry", FOREIGN)
def test_an_id_that_was_not_minted_here_is_found_with_an_index_too(entry: str) -> None:
    entries = [HEADER, custom(entry, "000000"), custom("000100", entry)]
    data = write_lines(entries, -1)
    whole = read_journal_file(data, "s")
    if whole.places is None:
        return  # then there is no index to be wrong
    same(read_journal_file(data, "s", whole.places.index(b"")), whole)
    journal = read_journal_file(data, "s", whole.places.index(b"")).journal
    assert [each.id for each in path_to("000100", journal.entries)] == ["000000", entry, "000100"]


@pytest.mark.parametrize("entry", ["f" * 17, "0123456789abcdef0123456789abcdef", "9" * 400])
def test_an_id_too_large_for_a_machine_word_is_read(entry: str) -> None:
    """As other systems' are, written as hexadecimal digits without dashes."""
    data = write_lines([HEADER, custom(entry, "000000")], -1)
    assert list(read_journal_file(data, "s").journal.entries) == ["000000", entry]
    places = LinePlaces()
    places.add([HEADER, custom(entry, "000000")], data)
    assert not places.sound


# -- places --------------------------------------------------------------------------------------


@thorough
@given(trees())
def test_places_grow_by_writes_as_they_are_read_at_once(tree: Written) -> None:
    places, start, entries = LinePlaces(), 0, list(tree.entries)
    for end in tree.ends:
        count = tree.data.count(b"\n", start, end)
        places.add(entries[:count], tree.data[start:end])
        entries, start = entries[count:], end
    assert places.sound
    assert places.index(b"") == index_of(tree.data, b"")
    assert LinePlaces.of(places.index(b"")).index(b"") == places.index(b"")


@modest
@given(trees(), st.text("0123456789abcdefxA_- ", max_size=8))
def test_places_find_the_ids_that_are_there_and_no_other_spelling(
    tree: Written, other: str
) -> None:
    places = read_journal_file(tree.data, "s").places
    assert places is not None
    ids = [entry.id for entry in tree.entries]
    for place, entry in enumerate(ids):
        assert places.find(entry) == place
    if other not in ids:
        assert places.find(other) is None


def test_lines_that_do_not_match_their_entries_are_not_placed() -> None:
    one, two = custom("000001", "000000"), custom("000002", "000001")
    for entries, data in (
        ([HEADER, one], write_lines([HEADER], -1)),
        ([HEADER], write_lines([HEADER, one], -1)),
        ([HEADER, two, one], write_lines([HEADER, two, one], -1)),
        ([HEADER, HEADER], write_lines([HEADER, HEADER], -1)),
        ([HEADER], write_lines([HEADER], -1)[:-1]),
    ):
        places = LinePlaces()
        places.add(entries, data)
        assert not places.sound


def test_a_damaged_journal_has_no_places() -> None:
    data = write_lines([HEADER, custom("000001", "000000")], -1)
    for damaged in (data[:-1], data + b"\n", data.replace(b"test", b"Test"), b"", data[5:]):
        assert read_journal_file(damaged, "s").places is None


def test_a_journal_with_entries_of_a_later_version_has_no_places() -> None:
    line = write_lines([custom("000001", "000000")], 0)
    later = line.replace(b'"type":"custom"', b'"type":"dreams"')
    body = later[: later.index(b',"sum"')]
    data = write_lines([HEADER], -1) + body + b',"sum":"%08x"}\n' % crc32(body)
    file = read_journal_file(data, "s")
    assert isinstance(file.journal.entries["000001"], UnknownEntry)
    assert file.places is None


# -- entries -------------------------------------------------------------------------------------


@thorough
@given(trees(), st.data())
def test_entries_are_a_mapping_like_a_dict(tree: Written, data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(tree.ends))
    places = read_journal_file(tree.data[:end], "s").places
    assert places is not None
    count = tree.data.count(b"\n", 0, end)
    entries = GrownEntries(IndexedEntries(tree.data, places), tree.entries[count:])
    model = {entry.id: entry for entry in tree.entries}
    assert len(entries) == len(model)
    assert list(entries) == list(model)
    assert list(entries.values()) == list(model.values())
    assert entries == model
    for wrong in ("ffffff", "", "1", "000000 ", "A"):
        assert (wrong in entries) == (wrong in model)
        assert entries.get(wrong) == model.get(wrong)
    with pytest.raises(KeyError):
        entries["nowhere"]


def test_entries_that_are_added_while_somebody_goes_through_them_do_no_harm() -> None:
    data = write_lines([HEADER], -1)
    places = read_journal_file(data, "s").places
    assert places is not None
    entries = GrownEntries(IndexedEntries(data, places))
    seen = []
    for entry in entries:
        seen.append(entry)
        number = len(entries)
        if number < 4:
            entries.add([custom(mint_id(number), entry)])
    assert seen[0] == "000000"
    assert len(entries) > 1


def test_a_line_that_is_no_entry_is_an_error_that_says_so() -> None:
    with pytest.raises(JournalError, match="not a journal entry"):
        decode_entry(b"[]")
