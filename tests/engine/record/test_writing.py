"""What is written on a page is kept whole, in one append, or not at all."""

import anyio
import pytest
from tests.fakes.clock import FakeClock
from tests.fakes.sessions import run
from tests.fakes.store import FakeStore, StoreFailed

from lamina.core.journal import State, replay
from lamina.core.values.entry import CustomEntry, LabelEntry, SessionEntry
from lamina.engine.record.record import Record


class Interrupted(Exception):
    """Something went wrong between two entries."""


async def open_record(store: FakeStore) -> Record:
    header = SessionEntry(id="000000", parent=None, at=1.0, session="s")
    return Record(await store.create(header), FakeClock())


async def write_and_fail(record: Record) -> None:
    async with record.writing() as page:
        page.write(CustomEntry, kind="lost")
        raise Interrupted


async def stored(store: FakeStore) -> State:
    return replay((await store.read("s")).entries.values())


def test_what_is_on_a_page_at_the_end_is_kept_in_one_append() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        writes = store.writes
        async with record.writing() as page:
            page.write(CustomEntry, kind="first")
            await anyio.lowlevel.checkpoint()
            assert record.state.leaf == "000000"
            page.write(LabelEntry, target="000000", label="start")
        assert store.writes == writes + 1
        assert record.state == page.state == await stored(store)
        assert [entry.id for entry in page.written] == [*record.entries][1:]

    run(body())


def test_nothing_is_kept_of_a_page_on_which_something_went_wrong() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        before, writes = record.state, store.writes
        with pytest.raises(Interrupted):
            await write_and_fail(record)
        assert (record.state, store.writes, [*record.entries]) == (before, writes, ["000000"])
        # The next page takes its place.
        async with record.writing() as page:
            page.write(CustomEntry, kind="next")
        assert [*record.entries] == ["000000", "000001"]

    run(body())


def test_nothing_is_kept_of_a_page_whose_writer_was_cancelled() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        before, writes = record.state, store.writes
        with anyio.CancelScope() as scope:
            async with record.writing() as page:
                page.write(CustomEntry, kind="lost")
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert (record.state, store.writes) == (before, writes)

    run(body())


def test_a_store_that_fails_leaves_the_state_where_it_was() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        before = record.state
        store.failing = True
        with pytest.raises(StoreFailed):
            await record.write(CustomEntry, kind="lost")
        assert (record.state, [*record.entries]) == (before, ["000000"])

    run(body())


def test_a_blank_page_appends_nothing() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        before, writes = record.state, store.writes
        async with record.writing():
            pass
        assert (record.state, store.writes) == (before, writes)

    run(body())


def test_a_page_at_an_earlier_state_begins_a_branch_there() -> None:
    async def body() -> None:
        store = FakeStore()
        record = await open_record(store)
        await record.write(CustomEntry, kind="left")
        async with record.writing(record.state_at("000000")) as page:
            entry = page.write(CustomEntry, kind="beside")
        assert (entry.id, entry.parent, record.state.leaf) == ("000002", "000000", "000002")

    run(body())
