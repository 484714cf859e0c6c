"""Every line proves itself; whatever the others are, it is read."""

from typing import get_args
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import modest, thorough, values_of

from lamina.core.codec import entry_number, mint_id
from lamina.core.journal.lines import Line, is_proven, read_lines, write_line, write_lines
from lamina.core.values.damage import Damage
from lamina.core.values.entry import CustomEntry, Entry, LeaveEntry, SessionEntry, UnknownEntry

HEADER = SessionEntry(id="000000", parent=None, at=1.5, session="s")
LEAVE = LeaveEntry(id="000001", parent="000000", at=2.0)
NOTE = CustomEntry(id="000002", parent="000001", at=2.0, kind="note", data={"text": "é\u2028\n{"})
ALL = write_lines([HEADER, LEAVE, NOTE], -1)
# A line that ends like one that proves itself, with more braces than a person would count.
BRACES = b'{"a":' * 200

# What is not known here is written as it was read, and has a test of its own.
known = values_of(Entry).filter(lambda entry: not isinstance(entry, UnknownEntry))
entries: st.SearchStrategy[list[Entry]] = st.lists(known, min_size=1, max_size=4)


def read(data: bytes) -> list[Entry]:
    return [line.entry for line in read_lines(data) if isinstance(line, Line)]


def damage(data: bytes) -> list[Damage]:
    return [line for line in read_lines(data) if isinstance(line, Damage)]


def kinds(data: bytes) -> list[tuple[str, int]]:
    return [(each.kind, each.line) for each in damage(data)]


# -- laws ----------------------------------------------------------------------------------------


@thorough
@given(entries)
def test_what_was_written_is_read(written: list[Entry]) -> None:
    found = list(read_lines(write_lines(written, -1)))
    lines = [each for each in found if isinstance(each, Line)]
    assert [line.entry for line in lines] == written
    assert len(lines) == len(found)
    assert [line.more for line in lines] == list(reversed(range(len(written))))


@thorough
@given(st.binary(max_size=200))
@example(b"\0")
@example(b"\n\n")
@example(b',"sum":"00000000"}')
@example(b'{,"sum":"00000000"}{')
def test_no_bytes_make_reading_raise_and_none_go_unreported(data: bytes) -> None:
    covered = bytearray(len(data))
    for line in read_lines(data):
        covered[line.offset : line.offset + line.length] = b"\1" * line.length
    missed = bytes(byte for byte, seen in zip(data, covered, strict=True) if not seen)
    assert not missed.strip(b"\n")


@modest
@given(entries, st.data())
def test_damage_to_one_line_leaves_all_others_readable(
    written: list[Entry], draw: st.DataObject
) -> None:
    """Bytes of one line, its line break included, become any others, more or fewer."""
    raw = write_lines(written, -1)
    lines = [line for line in read_lines(raw) if isinstance(line, Line)]
    index = draw.draw(st.integers(0, len(lines) - 1))
    line = lines[index]
    begin = draw.draw(st.integers(line.offset, line.offset + line.length))
    end = draw.draw(st.integers(begin, line.offset + line.length + 1))
    put = draw.draw(st.binary(max_size=30))
    left = read(raw[:begin] + put + raw[end:])
    others = [*written[:index], *written[index + 1 :]]
    assert left in (others, written)


@modest
@given(entries, st.data())
def test_a_piece_of_a_file_is_read_as_it_is_within_the_whole(
    written: list[Entry], draw: st.DataObject
) -> None:
    raw = write_lines(written, -1)
    whole = list(read_lines(raw))
    first = whole[draw.draw(st.integers(0, len(whole) - 1))]
    assert isinstance(first, Line)
    piece = list(read_lines(raw[first.offset :], number=first.number, offset=first.offset))
    assert piece == whole[first.number - 1 :]


@given(st.integers(0, 2**40))
def test_an_id_says_its_number(number: int) -> None:
    assert entry_number(mint_id(number)) == number


# -- what a line looks like ----------------------------------------------------------------------


def test_a_line_is_canonical_json_with_its_checksum_last() -> None:
    assert ALL.splitlines()[:2] == snapshot(
        [
            b'{"at":1.5,"id":"000000","parent":null,"session":"s","type":"session","more":2,"sum":"7a8223f1"}',
            b'{"at":2.0,"id":"000001","parent":"000000","type":"leave","more":1,"sum":"eccfca67"}',
        ]
    )


def test_the_checksum_is_over_all_bytes_in_front_of_its_own_comma() -> None:
    line = write_line(b'{"id":"x"}')
    body = b'{"id":"x"'
    assert line == body + b',"sum":"%08x"}\n' % crc32(body)
    assert is_proven(line.rstrip(b"\n"))


def test_a_line_says_how_many_ids_were_given_up_in_front_of_it() -> None:
    (line,) = read_lines(write_lines([NOTE], -1))
    assert isinstance(line, Line)
    assert (line.more, line.skip) == (0, 2)


def test_ids_that_are_no_numbers_give_up_nothing() -> None:
    foreign = LeaveEntry(id="msg-7", parent=None, at=0.0)
    lines = list(read_lines(write_lines([HEADER, foreign, LEAVE], -1)))
    assert [line.skip for line in lines if isinstance(line, Line)] == [0, 0, 0]


@pytest.mark.parametrize("foreign", ["-1", "+1", " 1", "1_0", "0x10", "٣", "FF", ""])
def test_only_ids_as_they_are_minted_have_numbers(foreign: str) -> None:
    """Others would count as ids of ours, and a gap in front of them as entries that are lost."""
    assert entry_number(foreign) is None


def test_a_field_of_an_entry_is_not_taken_for_one_of_the_write() -> None:
    entry = CustomEntry(id="000001", parent=None, at=0.0, kind="x", data={"more": 9, "skip": 9})
    (line,) = read_lines(write_lines([entry], 0))
    assert isinstance(line, Line)
    assert (line.entry, line.more, line.skip) == (entry, 0, 0)


# -- what is wrong with one ----------------------------------------------------------------------


def test_each_kind_of_damage_has_its_name_and_place() -> None:
    lines = ALL.splitlines(keepends=True)
    rubbish = [b"hello\n", b"\0\0\0\n", b"\n", lines[1].replace(b"leave", b"leaVe")]
    unlike = [write_line(b'{"id":5}'), write_line(b"[1]"), write_line(b"{}")]
    data = b"".join([lines[0], *rubbish, *unlike, lines[1], b'{"at":'])
    assert kinds(data) == snapshot(
        [
            ("no_checksum", 2),
            ("nul_bytes", 3),
            ("not_an_entry", 4),
            ("checksum", 5),
            ("not_an_entry", 6),
            ("not_an_entry", 7),
            ("not_an_entry", 8),
            ("torn", 10),
        ]
    )
    assert read(data) == [HEADER, LEAVE]
    for each in damage(data):
        assert data.count(b"\n", 0, each.offset) == each.line - 1


def test_damage_says_itself_to_a_person() -> None:
    said = [str(each) for each in damage(ALL + b"\xff\x00torn off")]
    assert said == snapshot(
        ["line 4, byte 297: the last write was cut off; it begins '\\\\xff\\x00torn off'"]
    )


def test_a_lost_line_break_costs_nothing() -> None:
    lines = ALL.splitlines()
    assert read(lines[0] + lines[1] + b"\n" + lines[2] + b"\n") == [HEADER, LEAVE, NOTE]
    assert kinds(lines[0] + lines[1] + b"\n") == [("no_line_break", 1)]


def test_a_line_behind_rubbish_is_read() -> None:
    assert read(b'{"at":1.5,"id":"00' + ALL) == [HEADER, LEAVE, NOTE]
    assert kinds(b"\xef\xbb\xbf" + ALL)[0] == ("no_checksum", 1)


def test_a_line_behind_rubbish_with_its_own_line_break_is_not_said_to_have_none() -> None:
    assert "no_final_newline" not in dict(kinds(b"\xef\xbb\xbf" + ALL))


@pytest.mark.parametrize("rubbish", [b"{" * 33, BRACES, BRACES + bytes(512), b'{"at":1,' * 2_000],
                         ids=["braces", "nested", "nested and NULs", "like lines"])  # fmt: skip
def test_a_line_behind_rubbish_full_of_braces_is_read(rubbish: bytes) -> None:
    """As when the sector with the end of a long line is lost, line break and all."""
    assert read(rubbish + ALL) == [HEADER, LEAVE, NOTE]


def test_carriage_returns_cost_nothing() -> None:
    assert read(ALL.replace(b"\n", b"\r\n")) == [HEADER, LEAVE, NOTE]


def test_a_last_line_without_its_line_break_is_read_and_that_is_said() -> None:
    assert read(ALL[:-1]) == [HEADER, LEAVE, NOTE]
    assert kinds(ALL[:-1]) == [("no_final_newline", 3)]


def test_every_kind_of_entry_begins_with_its_time() -> None:
    """A reader of damaged journals looks for that."""
    for kind in get_args(Entry):
        assert min([*kind.__struct_fields__, "type"]) == "at", kind
