"""A long session file opens from its last checkpoint, wherever it was taken without its index."""

import errno
import os
from pathlib import Path

import pytest
from tests.engine.record.test_snapshots import NAME, DiskWorld, checkpointing_from, counting_decoded
from tests.fakes.book import FakeBook
from tests.fakes.sessions import World, run, talk

from lamina.adapters.files.durable_writes import write_all
from lamina.adapters.stores import jsonl as jsonl_journal
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.session_file import index_path
from lamina.apps.wiring.session_importer import import_data
from lamina.core.audit.session_totals import sum_totals
from lamina.core.audit.verification import verify
from lamina.core.journal import read_journal
from lamina.core.journal.lines import BEGINS_CHECKPOINT
from lamina.engine.session.session import Session, core_of

TURNS = 60


async def open_in(folder: Path) -> Session:
    return await DiskWorld(folder).open(NAME, system="You are a clerk.", window=100_000)


async def written(folder: Path, turns: int = TURNS) -> Path:
    """A session with checkpoints and without an index."""
    with checkpointing_from(4_000):
        async with await open_in(folder) as session:
            for number in range(turns):
                await talk(session, f"Question {number}?", answer=f"Answer {number}.")
    path = JsonlStore(folder).path_of(NAME)
    index_path(path).unlink(missing_ok=True)
    assert path.read_bytes().count(BEGINS_CHECKPOINT) > 3
    return path


def test_a_session_without_its_index_decodes_what_came_since_its_last_checkpoint(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        await written(tmp_path)
        with counting_decoded() as count:
            async with await open_in(tmp_path) as session:
                assert core_of(session).record.snapshot is not None
                await session.prepare("And now?")
                assert count[0] < 40
                assert len(session.entries) > 3 * TURNS
        journal = await JsonlStore(tmp_path).read(NAME)
        assert journal.damage == ()
        assert verify(journal, FakeBook()).sound

    run(body())


def test_a_write_that_was_cut_off_behind_a_checkpoint_is_reported_and_decodes_no_more(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        path = await written(tmp_path)
        data = path.read_bytes()
        path.write_bytes(data + b'{"at":1794000900.5,"id":"00')
        whole = read_journal(path.read_bytes(), NAME)
        with counting_decoded() as count:
            async with await open_in(tmp_path) as session:
                assert session.damage == whole.damage
                assert [damage.line for damage in session.damage] == [data.count(b"\n") + 1]
                assert count[0] < 40
                await talk(session, "And now?", answer="Fine.")
        async with await open_in(tmp_path) as session:
            assert session.envelope.cached[-1].text == "Fine."

    run(body())


def test_damage_in_front_of_a_checkpoint_is_found_on_opening(tmp_path: Path) -> None:
    async def body() -> None:
        path = await written(tmp_path)
        data = path.read_bytes()
        path.write_bytes(data.replace(b"Question 7?", b"Question 8?", 1))
        async with await open_in(tmp_path) as session:
            found = read_journal(path.read_bytes(), NAME).damage
            assert found
            assert session.damage[: len(found)] == found

    run(body())


def test_who_only_looks_into_a_session_leaves_its_file_as_it_is(tmp_path: Path) -> None:
    async def body() -> None:
        async with await open_in(tmp_path) as session:
            for number in range(10):
                await talk(session, f"Question {number}?", answer="Yes.")
        path = JsonlStore(tmp_path).path_of(NAME)
        data = path.read_bytes()
        assert BEGINS_CHECKPOINT not in data
        with checkpointing_from(1):
            async with await open_in(tmp_path) as session:
                assert session.envelope.cached
        assert path.read_bytes() == data

    run(body())


def test_a_session_from_before_there_were_checkpoints_gets_one_as_it_goes_on(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with await open_in(tmp_path) as session:
            for number in range(TURNS):
                await talk(session, f"Question {number}?", answer="Yes.")
        path = JsonlStore(tmp_path).path_of(NAME)
        with checkpointing_from(4_000):
            async with await open_in(tmp_path) as session:
                await talk(session, "One more?", answer="Yes.")
        assert path.read_bytes().count(BEGINS_CHECKPOINT) == 1
        index_path(path).unlink(missing_ok=True)
        with counting_decoded() as count:
            async with await open_in(tmp_path) as session:
                await session.prepare("And now?")
                assert count[0] < 40

    run(body())


def test_a_disk_that_is_full_at_a_checkpoint_costs_the_checkpoint_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_half(handle: int, data: bytes) -> None:
        if BEGINS_CHECKPOINT in data:
            os.write(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        write_all(handle, data)

    async def body() -> None:
        monkeypatch.setattr(jsonl_journal, "write_all", write_half)
        with checkpointing_from(4_000):
            async with await open_in(tmp_path) as session:
                for number in range(TURNS):
                    await talk(session, f"Question {number}?", answer=f"Answer {number}.")
        assert BEGINS_CHECKPOINT in JsonlStore(tmp_path).path_of(NAME).read_bytes()
        async with await open_in(tmp_path) as session:
            assert session.damage == ()
            assert len(session.envelope.cached) == 2 * TURNS

    run(body())


def test_a_list_of_sessions_has_the_totals_of_a_checkpoint(tmp_path: Path) -> None:
    async def body() -> None:
        await written(tmp_path)
        with counting_decoded() as count:
            (listed,) = await JsonlStore(tmp_path).list_sessions()
            assert count[0] < 40
        assert listed.totals == sum_totals(await JsonlStore(tmp_path).read(NAME))

    run(body())


def test_an_imported_session_has_a_checkpoint(tmp_path: Path) -> None:
    async def body() -> None:
        data = (await written(tmp_path / "one")).read_bytes()
        store = JsonlStore(tmp_path / "two")
        with checkpointing_from(4_000):
            await import_data(data, name="s.jsonl", session="copy", store=store)
        copy = store.path_of("copy").read_bytes()
        assert copy.count(BEGINS_CHECKPOINT) == 1
        kept = read_journal(copy, "copy").entries
        assert list(kept) == list(read_journal(data, NAME).entries)

    run(body())


def test_a_copy_in_memory_is_the_same_session(tmp_path: Path) -> None:
    """Checkpoints are the file's: the entries are those that any other store keeps."""

    async def body() -> None:
        path = await written(tmp_path)
        world = World()
        async with await world.open(NAME, system="You are a clerk.", window=100_000) as session:
            for number in range(TURNS):
                await talk(session, f"Question {number}?", answer=f"Answer {number}.")
            kept = tuple(read_journal(path.read_bytes(), NAME).entries.values())
            assert kept == session.entries

    run(body())
