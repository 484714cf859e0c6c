"""Files that no session writes: what crashes, editors and other programs leave behind."""

from pathlib import Path

import anyio
import pytest
from tests.crash.checks import check_state, lines_of
from tests.crash.sample import SESSION, entry_of, header_of, open_sample, sample_journal
from tests.fakes.book import SMALL
from tests.fakes.replies import openai_reply

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.codec import mint_id
from lamina.core.journal import Journal, read_journal
from lamina.core.journal.lines import write_line, write_lines
from lamina.core.values.damage import Damage
from lamina.errors import JournalError

FIRST = entry_of("000001", "000000", "first")
TWO = write_lines([header_of(), FIRST], -1)


def put(folder: Path, data: bytes) -> Path:
    path = JsonlStore(folder).path_of(SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def append_to(folder: Path, data: bytes) -> Journal:
    """The journal after one more append, which is read and has rewritten nothing."""
    path = put(folder, data)

    async def body() -> None:
        opened = await JsonlStore(folder).open(SESSION)
        parent = opened.journal.leaf
        entry = entry_of(mint_id(opened.last + 1), parent, "next")
        await opened.append([entry])
        await opened.close()
        journal = await JsonlStore(folder).read(SESSION)
        assert journal.entries[journal.leaf] == entry
        assert list(journal.entries)[:-1] == list(opened.journal.entries)

    anyio.run(body)
    now = path.read_bytes()
    assert now.startswith(data)
    return read_journal(now, SESSION)


def kinds(damage: tuple[Damage, ...]) -> list[tuple[str, int]]:
    return [(damage.kind, damage.line) for damage in damage]


def test_an_empty_file_is_a_session_that_is_not_there_yet(tmp_path: Path) -> None:
    put(tmp_path, b"")

    async def body() -> None:
        assert not await JsonlStore(tmp_path).has(SESSION)
        async with await open_sample(tmp_path) as session:
            assert session.damage == ()
            assert session.envelope.system[0].text == "You are terse."
        journal = await JsonlStore(tmp_path).read(SESSION)
        assert journal.damage == ()

    anyio.run(body)


@pytest.mark.parametrize(
    "left",
    [bytes(4096), bytes(1), TWO[:30], b"\n", bytes(100) + b"\n", b"\xef\xbb\xbf", b"rubbish\n"],
    ids=["page of NULs", "NUL", "torn header", "line break", "NULs and line break", "BOM", "text"],
)  # fmt: skip
def test_a_file_with_nothing_to_read_in_it_becomes_the_session_that_is_asked_for(
    left: bytes, tmp_path: Path
) -> None:
    """That is what a crash leaves while a session is created: it was never acknowledged."""
    path = put(tmp_path, left)

    async def body() -> None:
        async with await open_sample(tmp_path, given_anew=True) as session:
            assert session.damage
            assert session.envelope.system[0].text == "You are terse."
            turn = await session.prepare("Q")
            await turn.commit(openai_reply("A"))
            before = session.state
        assert path.read_bytes().startswith(left)
        async with await open_sample(tmp_path) as session:
            assert session.state == before

    anyio.run(body)


@pytest.mark.parametrize("left", [bytes(4096), TWO[:30], b"rubbish\n"],
                         ids=["NULs", "torn header", "text"])  # fmt: skip
def test_a_file_with_nothing_to_read_in_it_can_be_appended_to(left: bytes, tmp_path: Path) -> None:
    journal = append_to(tmp_path, left)
    assert kinds(journal.damage)[0] == ("bad_header", 0)
    check_state(journal)


def test_a_bad_header_costs_the_header_alone(tmp_path: Path) -> None:
    data = bytearray(sample_journal())
    data[20] ^= 1
    journal = append_to(tmp_path, bytes(data))
    assert kinds(journal.damage)[:2] == [("bad_header", 0), ("checksum", 1)]
    assert len(journal.entries) == len(lines_of(sample_journal())) + 1
    assert len(check_state(journal).envelope.cached) > 10

    async def body() -> None:
        async with await open_sample(tmp_path) as session:
            assert (await session.prepare("Q", target=SMALL.name)).warnings

    anyio.run(body)


def test_a_header_of_a_newer_format_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    line = b'{"at":1.0,"format":2,"id":"000000","parent":null,"session":"sample","type":"session"}'
    path = put(tmp_path, write_line(line))

    async def body() -> None:
        for act in (JsonlStore(tmp_path).open, JsonlStore(tmp_path).read):
            with pytest.raises(JournalError, match="use a newer Lamina"):
                await act(SESSION)

    anyio.run(body)
    assert path.read_bytes() == write_line(line)


def test_a_file_of_another_session_is_refused(tmp_path: Path) -> None:
    put(tmp_path, write_lines([header_of("another")], -1))
    with pytest.raises(JournalError, match="'another', not 'sample'"):
        anyio.run(JsonlStore(tmp_path).open, SESSION)


def test_a_missing_final_line_break_is_supplied_by_the_next_append(tmp_path: Path) -> None:
    journal = append_to(tmp_path, TWO[:-1])
    assert list(journal.entries) == ["000000", "000001", "000002"]
    assert journal.damage == ()


def test_a_torn_line_becomes_a_line_of_its_own(tmp_path: Path) -> None:
    journal = append_to(tmp_path, TWO + TWO[:40])
    assert kinds(journal.damage) == [("no_checksum", 3)]
    # The torn line may have had the next id: it is given up.
    assert list(journal.entries) == ["000000", "000001", "000003"]


def test_a_byte_order_mark_is_reported_and_costs_nothing(tmp_path: Path) -> None:
    journal = append_to(tmp_path, b"\xef\xbb\xbf" + TWO)
    assert kinds(journal.damage) == [("no_checksum", 1)]
    assert journal.damage[0].length == 3
    assert list(journal.entries) == ["000000", "000001", "000002"]


def test_windows_line_ends_cost_nothing(tmp_path: Path) -> None:
    """An editor or git has converted the file; new lines get no carriage return."""
    converted = sample_journal().replace(b"\n", b"\r\n")
    journal = append_to(tmp_path, converted)
    assert len(journal.entries) == len(lines_of(sample_journal())) + 1
    check_state(journal)


def test_old_mac_line_ends_cost_nothing() -> None:
    journal = read_journal(sample_journal().replace(b"\n", b"\r"), SESSION)
    assert len(journal.entries) == len(lines_of(sample_journal()))
    assert journal.damage


def test_two_copies_of_a_file_behind_one_another_are_one_session() -> None:
    data = sample_journal()
    journal = read_journal(data + data, SESSION)
    count = len(lines_of(data))
    assert list(journal.entries.values()) == [line.entry for line in lines_of(data)]
    assert kinds(journal.damage) == [
        ("duplicate", count + number) for number in range(1, count + 1)
    ]
