"""From bytes to a tree: what proves itself is kept, what is amiss is said, with its place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import modest, sessions

from lamina.core.journal import Journal, journal_of, path_to, read_journal, replay_repaired
from lamina.core.journal.journal_file import read_journal_file
from lamina.core.journal.lines import write_line, write_lines
from lamina.core.values.entry import CustomEntry, Entry, LeaveEntry, SessionEntry, UnknownEntry

HEADER = SessionEntry(id="000000", parent=None, at=1.5, session="s", workspace="notes")


def leave(entry: str, parent: str | None) -> LeaveEntry:
    return LeaveEntry(id=entry, parent=parent, at=2.0)


def lines(*entries: Entry) -> bytes:
    """Each a write of its own, with no ids given up."""
    return b"".join(write_lines([entry], 10**9) for entry in entries)


def found(journal: Journal) -> list[tuple[str, int]]:
    return [(each.kind, each.line) for each in journal.damage]


def tree(journal: Journal) -> dict[str, str | None]:
    return {entry.id: entry.parent for entry in journal.entries.values()}


def leaf_path(journal: Journal) -> list[str]:
    path = path_to(journal.leaf, journal.entries)
    replay_repaired(path)
    return [entry.id for entry in path]


CHAIN: list[Entry] = [
    HEADER,
    leave("000001", "000000"),
    leave("000002", "000001"),
    leave("000003", "000002"),
]


# -- laws ----------------------------------------------------------------------------------------


@modest
@given(sessions())
def test_a_sound_journal_is_read_as_it_was_written(entries: list[Entry]) -> None:
    journal = read_journal(write_lines(entries, -1), "s")
    assert list(journal.entries.values()) == entries
    assert [each.kind for each in journal.damage if each.kind != "missing_entries"] == []


@modest
@given(sessions(), st.data())
def test_any_lines_in_any_order_form_a_tree_with_one_header(
    entries: list[Entry], data: st.DataObject
) -> None:
    some = data.draw(st.lists(st.sampled_from(entries), max_size=20))
    journal = read_journal(lines(*some), "s")
    assert leaf_path(journal)
    headers = [entry for entry in journal.entries.values() if isinstance(entry, SessionEntry)]
    assert headers == [next(iter(journal.entries.values()))]
    for entry in journal.entries.values():
        assert path_to(entry.id, journal.entries)[0] == headers[0]


# -- what is amiss -------------------------------------------------------------------------------


def test_a_write_of_one_entry_does_not_pass_for_the_lost_end_of_the_one_before() -> None:
    longer = lines(HEADER, leave("000001", "000000"))
    kept, _lost = write_lines([leave("000002", "000001"), leave("000003", "000002")], 1).splitlines(
        keepends=True
    )
    journal = read_journal(longer + kept + write_lines([leave("000004", "000001")], 3), "s")
    assert [kind for kind, _ in found(journal)] == ["incomplete_write", "missing_entries"]


def test_a_lost_line_is_bridged_and_said() -> None:
    raw = lines(*CHAIN).splitlines(keepends=True)
    journal = read_journal(raw[0] + raw[1] + raw[2].replace(b"leave", b"Leave") + raw[3], "s")
    assert found(journal) == [("checksum", 3), ("missing_entries", 4), ("missing_parent", 4)]
    assert tree(journal) == {"000000": None, "000001": "000000", "000003": "000001"}
    assert [str(each) for each in journal.damage[1:]] == snapshot(
        [
            "line 4, byte 257: in front of it is missing: 000002",
            "line 4, byte 257: the parent '000002' of entry '000003' is missing; "
            "put behind '000001'",
        ]
    )


def test_entries_that_are_gone_without_a_trace_are_said_to_be_missing() -> None:
    journal = read_journal(lines(CHAIN[0], leave("000005", "000000")), "s")
    assert found(journal) == [("missing_entries", 2)]
    assert "000001 to 000004" in journal.damage[0].detail


def test_ids_that_were_given_up_are_not_missing() -> None:
    raw = write_lines([HEADER], -1) + write_lines([leave("000005", "000000")], 0)
    assert read_journal(raw, "s").damage == ()


def test_a_record_that_stands_there_twice_is_one() -> None:
    journal = read_journal(lines(*CHAIN, CHAIN[1], CHAIN[3]), "s")
    assert found(journal) == [("duplicate", 5), ("duplicate", 6)]
    assert leaf_path(journal) == ["000000", "000001", "000002", "000003"]


def test_of_two_entries_of_one_id_the_first_holds() -> None:
    other = CustomEntry(id="000001", parent="000000", at=3.0, kind="x")
    journal = read_journal(lines(CHAIN[0], CHAIN[1], other), "s")
    assert found(journal) == [("conflict", 3)]
    assert journal.entries["000001"] == CHAIN[1]


def test_a_twin_of_an_entry_that_was_bridged_is_a_twin() -> None:
    lost = leave("000003", "000002")
    journal = read_journal(lines(CHAIN[0], CHAIN[1], lost, lost), "s")
    assert ("duplicate", 4) in found(journal)


def test_parents_that_form_a_cycle_are_parted() -> None:
    journal = read_journal(lines(HEADER, leave("a", "b"), leave("b", "c"), leave("c", "a")), "s")
    assert [kind for kind, _ in found(journal)].count("missing_parent") == 2
    assert tree(journal)["c"] == "a"
    leaf_path(journal)


def test_an_entry_that_is_its_own_parent_is_put_behind_the_one_in_front_of_it() -> None:
    journal = read_journal(lines(HEADER, leave("000001", "000001")), "s")
    assert found(journal) == [("missing_parent", 2)]
    assert leaf_path(journal) == ["000000", "000001"]


def test_an_entry_without_a_parent_that_is_no_header_is_put_behind_the_one_in_front() -> None:
    journal = read_journal(lines(HEADER, leave("000001", None)), "s")
    assert found(journal) == [("missing_parent", 2)]
    assert leaf_path(journal) == ["000000", "000001"]


def test_a_second_header_is_reported_and_left_out() -> None:
    other = SessionEntry(id="000001", parent=None, at=3.0, session="other")
    journal = read_journal(lines(HEADER, other, leave("000002", "000000")), "s")
    assert found(journal) == [("conflict", 2)]
    assert leaf_path(journal) == ["000000", "000002"]


def test_an_entry_of_an_unknown_type_keeps_its_place_and_is_reported() -> None:
    line = b'{"at":2.0,"fine":true,"id":"000001","parent":"000000","type":"later"}'
    journal = read_journal(lines(HEADER) + write_line(line) + lines(leave("000002", "000001")), "s")
    assert found(journal) == [("unknown_type", 2)]
    assert isinstance(journal.entries["000001"], UnknownEntry)
    assert leaf_path(journal) == ["000000", "000001", "000002"]


# -- headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", bytes(9), b"rubbish"])
def test_a_journal_with_nothing_in_it_is_an_empty_session_of_its_name(data: bytes) -> None:
    journal = read_journal(data, "s")
    header = journal.entries["000000"]
    assert isinstance(header, SessionEntry)
    assert (header.session, journal.last) == ("s", 0)
    assert journal.damage[0].kind == "bad_header"


def test_a_lost_header_costs_the_header_alone() -> None:
    journal = read_journal(lines(*CHAIN[1:]), "s")
    assert found(journal) == [("bad_header", 0), ("missing_entries", 1)]
    assert leaf_path(journal) == ["000000", "000001", "000002", "000003"]


def test_a_header_behind_other_lines_still_is_the_header() -> None:
    """The lines were put in another order: nothing of them is lost."""
    journal = read_journal(lines(CHAIN[1], HEADER, *CHAIN[2:]), "s")
    first = next(iter(journal.entries.values()))
    assert isinstance(first, SessionEntry)
    assert first.workspace == "notes"
    assert journal.damage


@pytest.mark.parametrize("parent", ["gone", "000000", "000001"])
def test_a_header_with_a_parent_has_none(parent: str) -> None:
    odd = SessionEntry(id="000000", parent=parent, at=1.5, session="s")
    journal = read_journal(lines(odd, CHAIN[1]), "s")
    assert leaf_path(journal) == ["000000", "000001"]
    assert journal.damage


def test_an_entry_that_has_the_id_of_a_lost_header_does_not_become_its_own_parent() -> None:
    journal = read_journal(lines(leave("000000", None), leave("000001", "000000")), "s")
    assert isinstance(next(iter(journal.entries.values())), SessionEntry)
    assert leaf_path(journal)[-1] == "000001"
    assert journal.damage


# -- writes --------------------------------------------------------------------------------------

WRITE = write_lines(CHAIN[1:], 0).splitlines(keepends=True)
TWO = write_lines(CHAIN[1:3], 0).splitlines(keepends=True)


def test_a_write_that_was_cut_between_two_lines_is_not_whole() -> None:
    journal = read_journal(lines(HEADER) + WRITE[0] + WRITE[1], "s")
    assert found(journal) == [("incomplete_write", 3)]
    assert list(journal.entries) == ["000000", "000001", "000002"]


def test_a_write_that_was_cut_is_said_to_be_so_behind_others() -> None:
    after = write_lines([leave("000002", "000001"), leave("000003", "000002")], 1)
    assert found(read_journal(lines(HEADER) + TWO[0] + after, "s")) == [("incomplete_write", 2)]


@pytest.mark.parametrize("last", [1, 0], ids=["opened again", "write failed"])
def test_a_write_that_lacks_its_last_line_is_not_taken_for_whole_with_the_next_one(
    last: int,
) -> None:
    """The next write has one line, too; the id of the lost one is given up."""
    after = write_lines([leave("000003", "000000")], last)
    assert found(read_journal(lines(HEADER) + TWO[0] + after, "s")) == [("incomplete_write", 2)]


def test_whole_writes_behind_one_another_are_sound() -> None:
    raw = lines(HEADER) + b"".join(WRITE) + write_lines([leave("000004", "000003")], 3)
    assert read_journal(raw, "s").damage == ()


# -- what the next write needs to know -----------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "ends"), [(b"", True), (lines(HEADER), True), (lines(HEADER)[:-1], False)]
)
def test_a_journal_knows_whether_it_ends_with_a_line_break(data: bytes, ends: bool) -> None:
    assert read_journal_file(data, "s").ends_line is ends


def test_a_journal_knows_its_highest_id_also_of_branches_and_twins() -> None:
    given: list[Any] = [HEADER, leave("0000ff", "000000"), leave("000003", "000000")]
    assert read_journal(lines(*given), "s").last == 255
    assert journal_of(given).last == 255
