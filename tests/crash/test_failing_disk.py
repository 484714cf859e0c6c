"""The disk is full or broken, or takes half: that is said, nothing moves on, all goes on later."""

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import anyio
import pytest
from tests.crash.checks import check_state
from tests.crash.faulty import BROKEN, FULL, SHORT, Fault, FaultyOs, put_in
from tests.crash.nursery import Nursery
from tests.crash.sample import KINDS, SESSION, entry_of, header_of, open_sample, store_in
from tests.crash.scale import luck, much, tally
from tests.fakes.replies import openai_reply

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.codec import canonical_bytes, mint_id
from lamina.core.journal import read_journal
from lamina.core.journal.lines import Line, read_lines
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry
from lamina.errors import WriteFailed

# What a partial write leaves is damage; that ids are missing would be a false report.
LEFT_BY_A_CUT = {"torn", "no_checksum", "incomplete_write", "no_final_newline", "not_an_entry"}


def disk_is_full(faulty: FaultyOs, takes: int) -> None:
    faulty.writes.append(Fault(FULL, takes))


def disk_is_broken(faulty: FaultyOs, takes: int) -> None:
    faulty.writes.append(Fault(BROKEN, takes))


def sync_fails(faulty: FaultyOs, takes: int) -> None:
    faulty.syncs.append(Fault(BROKEN))


def part_is_written_and_sync_fails(faulty: FaultyOs, takes: int) -> None:
    faulty.writes.append(Fault(SHORT, max(1, takes)))
    faulty.syncs.append(Fault(BROKEN))


FAILURES = [disk_is_full, disk_is_broken, sync_fails, part_is_written_and_sync_fails]
Failure = Callable[[FaultyOs, int], None]


def check_file(path: Path, acked: dict[str, Entry], failed: dict[str, list[Entry]]) -> None:
    """Everything acknowledged is there and is the one of its id; nothing is reported falsely."""
    tally["failed writes"] += sum(map(len, failed.values()))
    data = path.read_bytes()
    journal = read_journal(data, SESSION)
    tally["lost"] += sum(journal.entries.get(each) != entry for each, entry in acked.items())
    assert acked.items() <= journal.entries.items()
    for entry_id in journal.entries.keys() - acked.keys():
        assert journal.entries[entry_id] in failed[entry_id]
    assert not acked.keys() & failed.keys(), "an id was given out again"
    assert {damage.kind for damage in journal.damage} <= LEFT_BY_A_CUT, journal.damage
    assert [line for line in read_lines(data) if isinstance(line, Damage)] == [
        damage for damage in journal.damage if damage.kind != "incomplete_write"
    ]
    check_state(journal)


@pytest.mark.parametrize("fail", FAILURES)
def test_a_failed_append_is_not_acknowledged_and_costs_nothing_else(
    fail: Failure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, chance = put_in(monkeypatch), luck(f"failures {fail.__name__}")

    async def body(folder: Path) -> None:
        store = JsonlStore(folder)
        opened = await store.create(header_of())
        acked: dict[str, Entry] = {"000000": header_of()}
        failed: dict[str, list[Entry]] = {}
        parent = "000000"
        for step in range(20):
            made: list[Entry] = []
            for ahead in range(chance.randint(1, 3)):
                number = mint_id(opened.last + 1 + ahead)
                made.append(entry_of(number, parent, f"{step} {'x' * chance.randint(0, 300)}"))
            if chance.random() < 0.5:
                await opened.append(made)
                acked.update((entry.id, entry) for entry in made)
                parent = made[-1].id
            else:
                fail(faulty, chance.choice((0, 1, chance.randint(0, 900))))
                try:
                    await opened.append(made)
                except WriteFailed:
                    for entry in made:
                        failed.setdefault(entry.id, []).append(entry)
                else:
                    # All of it fitted after all.
                    acked.update((entry.id, entry) for entry in made)
                faulty.writes.clear()
                faulty.syncs.clear()
            if chance.random() < 0.2 and acked.keys() >= {mint_id(opened.last)}:
                await opened.close()
                opened = await store.open(SESSION)
        check_file(store.path_of(SESSION), acked, failed)
        await opened.close()

    async def all_of_them() -> None:
        for number in range(much(10, 300)):
            await body(tmp_path / str(number))

    anyio.run(all_of_them)


def test_a_short_write_is_finished_by_another_and_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = put_in(monkeypatch)

    async def body() -> None:
        opened = await JsonlStore(tmp_path).create(header_of())
        faulty.writes.extend([Fault(SHORT, 1), Fault(SHORT, 40), None])
        entry = entry_of("000001", "000000", "in three parts")
        await opened.append([entry])
        assert not faulty.writes
        await opened.close()
        journal = await JsonlStore(tmp_path).read(SESSION)
        assert (journal.entries["000001"], journal.damage) == (entry, ())

    anyio.run(body)


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize("step", ["prepare", "commit", "resume"])
def test_a_session_stays_as_it_was_when_a_write_fails_and_does_it_again(
    fail: Failure, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = put_in(monkeypatch)
    calling = openai_reply(None, input=9, calls=[("c1", "find")])

    async def body() -> None:
        async with await open_sample(tmp_path) as session:
            turn = await session.prepare("first")
            await turn.commit(openai_reply("one", input=9))
            turn = answered = await session.prepare("second")
            if step == "resume":
                answered = await turn.commit(calling)

            async def do() -> object:
                match step:
                    case "prepare":
                        return await session.prepare("third", attach=["a.md"])
                    case "commit":
                        return await turn.commit(calling)
                    case _:
                        return await answered.resume({"c1": "found"})

            before, entries = session.state, session.entries
            for takes in (0, 1, 100, 250):
                fail(faulty, takes)
                with pytest.raises(WriteFailed):
                    await do()
                faulty.writes.clear()
                assert (session.state, session.entries) == (before, entries)
            await do()
            state, entries = session.state, session.entries
        async with await open_sample(tmp_path) as session:
            # What was not acknowledged may be there, as branches that lead nowhere.
            assert session.state == state
            assert {entry.id: entry for entry in session.entries}.items() >= {
                entry.id: entry for entry in entries
            }.items()
            assert {damage.kind for damage in session.damage} <= LEFT_BY_A_CUT

    anyio.run(body)


@pytest.mark.parametrize("fail", FAILURES)
def test_a_session_whose_header_cannot_be_written_can_be_created_again(
    fail: Failure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = put_in(monkeypatch)

    async def body() -> None:
        fail(faulty, 60)
        with pytest.raises(WriteFailed):
            await open_sample(tmp_path)
        faulty.writes.clear()
        async with await open_sample(tmp_path, given_anew=True) as session:
            assert session.envelope.system[0].text == "You are terse."
            turn = await session.prepare("Q")
            await turn.commit(openai_reply("A"))
        async with await open_sample(tmp_path) as session:
            assert [message.text for message in session.envelope.cached][::2] == ["Q"]

    anyio.run(body)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_blobs_are_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = put_in(monkeypatch)

    async def body() -> None:
        store = JsonlStore(tmp_path)
        for fail in FAILURES:
            fail(faulty, 5)
            with pytest.raises(WriteFailed):
                await store.put_blob(b"a picture of a harbour")
            faulty.writes.clear()
            assert files_in(tmp_path) == []
        digest = await store.put_blob(b"a picture of a harbour")
        assert await store.get_blob(digest) == b"a picture of a harbour"

    anyio.run(body)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_the_system_lets_grow_no_further_goes_on_when_there_is_room(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    """A real limit of the kernel: writes take what fits, then fail."""

    async def create() -> None:
        await (await store_in(tmp_path, kind).create(header_of())).close()

    anyio.run(create)
    acks = tmp_path / "acks"
    given = {"folder": str(tmp_path), "session": SESSION, "acks": str(acks)}
    child = nursery.start("fill_the_disk", **given, kind=kind)
    assert nursery.wait(child) == 0
    data = anyio.run(store_in(tmp_path, kind).export, SESSION)
    journal = read_journal(data, SESSION)
    there = {f"{e.id} {crc32(canonical_bytes(e)):08x}" for e in journal.entries.values()}
    said = set(acks.read_text().splitlines())
    assert said <= there
    # A transaction that found no room is not there at all.
    assert {d.kind for d in journal.damage} <= (LEFT_BY_A_CUT if kind == "jsonl" else set())
    lines = [line.entry.id for line in read_lines(data) if isinstance(line, Line)]
    assert len(set(lines)) == len(lines)
