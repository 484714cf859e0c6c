"""What only a store of rows does: one file, leases, and openings that read a bounded number."""

import gc
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.crash.sample import SESSION, entry_of, header_of, open_sample
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import run
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.adapters.stores.database import APPLICATION, SCHEMA
from lamina.adapters.stores.lease import LEASE_S, is_held, new_holder
from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core.codec import mint_id
from lamina.core.values.entry import MessageEntry, start_entry
from lamina.core.values.message import Message, Text
from lamina.core.values.settings import Settings
from lamina.errors import JournalError, JournalGone, SessionBusy, SessionMoved, UnknownSession

DATABASE = "kept.sqlite"
FLIP = (
    "update entry set line = cast(replace(cast(line as text), '{}', '{}') as blob) where seq = {}"
)


def store_in(folder: Path, wait: float = 0.0) -> SqliteStore:
    return SqliteStore(folder / DATABASE, wait=wait)


async def write_some(store: SqliteStore, count: int = 5) -> None:
    opened = await store.create(header_of())
    for number in range(1, count + 1):
        await opened.append([entry_of(mint_id(number), mint_id(number - 1), f"text {number}")])
    await opened.close()


def change(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    with connection:
        assert connection.execute(statement, values).rowcount == 1
    connection.close()


# -- how much is read ----------------------------------------------------------------------------


@contextmanager
def counting_rows() -> Iterator[list[int]]:
    """How many rows queries gave, and how many steps the database took for all of them."""
    counts = [0, 0]
    connect = sqlite3.connect

    def count_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        counts[0] += 1
        return row

    def count_steps() -> int:
        counts[1] += 10
        return 0

    def connect_counting(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.row_factory = count_row
        connection.set_progress_handler(count_steps, 10)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlite3.connect", connect_counting)
        yield counts


async def open_long(folder: Path) -> lamina.Session:
    return await lamina.open_session(
        SESSION, store=store_in(folder), book=FakeBook(), clock=FakeClock(),
        workspace=FakeWorkspace(),
    )  # fmt: skip


async def count_opening(folder: Path, messages: int) -> tuple[int, int]:
    """Rows and steps of opening a session of so many messages and preparing a turn in it. Two
    requests were sent before: the first one of all those messages names the digest of each."""
    settings = Settings(target=SMALL.name, window=1 << 40, output_reserve=100)
    opened = await store_in(folder).create(start_entry(SESSION, 0.0, settings=settings))
    entries = [
        MessageEntry(
            id=mint_id(number), parent=mint_id(number - 1), at=1.0,
            message=Message(
                role="user" if number % 2 else "assistant", blocks=(Text(f"word {number}"),),
                id=mint_id(number),
            ),
        )
        for number in range(1, messages + 1)
    ]  # fmt: skip
    await opened.append(entries)
    await opened.close()
    async with await open_long(folder) as session:
        for question in ("And now?", "And here?"):
            turn = await session.prepare(question)
            await turn.commit(openai_reply("Yes.", input=9))
    with counting_rows() as counts:
        async with await open_long(folder) as session:
            await session.prepare("And then?")
            found = (counts[0], counts[1])
        assert len(session.envelope.cached) == messages + 5
    return found


def test_opening_and_preparing_a_turn_read_as_many_rows_of_100_000_messages_as_of_10_000(
    tmp_path: Path,
) -> None:
    (rows, steps), (more_rows, more_steps) = [
        anyio.run(count_opening, tmp_path / str(size), size) for size in (10_000, 100_000)
    ]
    assert rows == more_rows < 40
    # Steps of the database, so that nothing goes through rows that it does not give.
    assert more_steps <= steps + 50 < 2_000


async def count_going_on(folder: Path, messages: int) -> int:
    """Rows of opening a session whose last request was left, and asking beside it."""
    await count_opening(folder, messages)
    with counting_rows() as counts:
        async with await open_long(folder) as session:
            await session.prepare("And instead?")
            found = counts[0]
        assert len(session.envelope.cached) == messages + 5
    return found


def test_going_on_beside_a_request_that_was_left_reads_no_more_of_a_longer_session(
    tmp_path: Path,
) -> None:
    rows, more_rows = [
        anyio.run(count_going_on, tmp_path / str(size), size) for size in (1_000, 4_000)
    ]
    assert max(rows, more_rows) < 60


def test_going_through_all_entries_reads_them_together(tmp_path: Path) -> None:
    async def body() -> None:
        await write_some(store_in(tmp_path), 600)
        opened = await store_in(tmp_path).open(SESSION)
        await opened.keep_snapshot(b"state")
        await opened.close()
        opened = await store_in(tmp_path).open(SESSION)
        assert opened.journal.snapshot == b"state"
        whole = (await store_in(tmp_path).read(SESSION)).entries
        for entry in reversed(list(whole)):
            assert opened.entries[entry] == whole[entry]
        assert list(opened.entries.values()) == list(whole.values())
        assert (len(opened.entries), "000258" in opened.entries) == (601, True)
        assert "nowhere" not in opened.entries
        assert opened.entries.get("nowhere") is None
        await opened.close()
        # What was open can be looked at when it is closed.
        assert list(opened.entries.values()) == list(whole.values())

    run(body())


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_flipped_byte_is_found_and_costs_itself_alone(number: int, tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        whole = dict((await store.read(SESSION)).entries)
        change(tmp_path, FLIP.format("1.5", "1.6", number))
        for journal in (await store.read(SESSION), (await store.open(SESSION)).journal):
            kinds = {damage.kind for damage in journal.damage}
            assert kinds & {"checksum", "bad_header"}
            assert any(damage.row == number + 1 for damage in journal.damage)
            rest = {i: e for i, e in journal.entries.items() if i not in ("000000", mint_id(4))}
            assert rest == {
                i: e for i, e in whole.items() if i not in ("000000", mint_id(4), mint_id(number))
            }
        gc.collect()
        (row,) = await store.list_sessions()
        assert row.totals is not None
        assert row.totals.damage == len(journal.damage)

    run(body())


def test_a_damaged_row_behind_a_snapshot_is_an_error_and_the_next_opening_goes_on_without_it(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        opened = await store.open(SESSION)
        await opened.keep_snapshot(b"state")
        await opened.close()
        change(tmp_path, FLIP.format("text", "tent", 3))
        opened = await store.open(SESSION)
        assert opened.journal.snapshot == b"state"
        with pytest.raises(JournalError, match=r"'000003' of session 'sample' .* is damaged"):
            opened.entries["000003"]
        await opened.close()
        opened = await store.open(SESSION)
        assert opened.journal.snapshot == b""
        assert opened.journal.damage[0].kind == "checksum"
        await opened.append([entry_of("000006", "000005", "and on")])
        await opened.close()
        assert "000006" in (await store.read(SESSION)).entries

    run(body())


@pytest.mark.parametrize(
    "statement",
    [
        "delete from entry where seq = 5", "delete from entry where seq = 2",
        "update entry set id = 'x' where seq = 2", "update entry set id = x'ff' where seq = 2",
        "update entry set line = x'' where seq = 2", "update entry set line = 7 where seq = 2",
    ],
)  # fmt: skip
def test_rows_that_are_gone_or_misfiled_are_reported(statement: str, tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        change(tmp_path, statement)
        journal = await store.read(SESSION)
        assert journal.damage
        assert {"000001", "000003", "000004"} <= set(journal.entries)
        assert b'"id":"000001"' in await store.export(SESSION)
        opened = await store.open(SESSION)
        await opened.append([entry_of(mint_id(opened.last + 1), opened.journal.leaf, "and on")])
        await opened.close()

    run(body())


def test_a_damaged_last_row_gives_up_its_id_alone(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        change(tmp_path, FLIP.format("text", "tent", 5))
        opened = await store.open(SESSION)
        assert (opened.journal.leaf, opened.last) == ("000004", 5)
        await opened.close()

    run(body())


def test_nothing_is_written_to_a_session_that_an_index_does_not_lead_to(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        path = tmp_path / DATABASE
        connection = sqlite3.connect(path)
        query = "select rootpage from sqlite_master where name = 'sqlite_autoindex_entry_1'"
        ((page,),) = connection.execute(query).fetchall()
        connection.close()
        data = bytearray(path.read_bytes())
        # How many cells there are: the last two rows are in the table, and not found any more.
        data[(page - 1) * 4096 + 4] -= 2
        path.write_bytes(data)
        journal = await store.read(SESSION)
        assert list(journal.entries) == [mint_id(number) for number in range(4)]
        assert "the end of the session is missing: 000004 to 000005" in str(journal.damage)
        with pytest.raises(JournalError, match=r"kept\.sqlite' is damaged .* no entry was added"):
            await store.open(SESSION)

    run(body())


@pytest.mark.parametrize("column", ["totals", "state"])
def test_kept_totals_and_snapshots_are_believed_only_as_they_were_kept(
    column: str, tmp_path: Path
) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store)
        opened = await store.open(SESSION)
        await opened.keep_snapshot(b"state")
        await opened.close()
        before = await store.list_sessions()
        table = "session" if column == "totals" else "snapshot"
        change(tmp_path, f"update {table} set {column} = x'0102030405060708'")
        assert await store.list_sessions() == before
        opened = await store.open(SESSION)
        assert list(opened.entries) == [mint_id(number) for number in range(6)]
        assert opened.journal.snapshot == (b"state" if column == "totals" else b"")
        await opened.close()

    run(body())


# -- files that are not ours ---------------------------------------------------------------------


def make_foreign(path: Path, what: str) -> None:
    if what == "text":
        path.write_text("Not a database at all. " * 100)
        return
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("create table thing (x)")
        if what == "later":
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {SCHEMA + 1}")
    connection.close()


@pytest.mark.parametrize("what", ["text", "foreign", "later"])
def test_a_file_that_is_not_ours_is_never_written_to(what: str, tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / DATABASE
        make_foreign(path, what)
        before, store = path.read_bytes(), store_in(tmp_path)
        acts: list[Any] = [
            store.create(header_of()), store.open("s"), store.read("s"), store.sessions(),
            store.delete("s"), store.put_blob(b"x"), store.get_blob("0" * 64), store.has("s"),
        ]  # fmt: skip
        for act in acts:
            with pytest.raises(JournalError, match=r"kept\.sqlite") as caught:
                await act
            assert not isinstance(caught.value, UnknownSession)
        assert path.read_bytes() == before

    run(body())


def test_a_file_whose_maker_was_killed_before_anything_was_in_it_is_made_by_the_next_one(
    tmp_path: Path,
) -> None:
    connection = sqlite3.connect(tmp_path / DATABASE)
    connection.execute("pragma journal_mode = wal")
    connection.close()
    assert (tmp_path / DATABASE).stat().st_size > 0

    async def body() -> None:
        store = store_in(tmp_path)
        assert await store.sessions() == ()
        assert not await store.has(SESSION)
        await write_some(store)
        assert await store.sessions() == (SESSION,)

    run(body())


def test_a_database_of_which_pages_are_lost_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store, 200)
        path = tmp_path / DATABASE
        data = path.read_bytes()
        path.write_bytes(data[:8192] + bytes(len(data) - 8192))
        with pytest.raises(JournalError, match="is damaged"):
            await store.read(SESSION)
        with pytest.raises(JournalError):
            await store.open(SESSION)

    run(body())


def test_looking_makes_no_file(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path / "nowhere")
        assert not await store.has("s")
        assert not await store.sessions()
        assert not await store.list_sessions()
        assert await store.known_blobs(["0" * 64]) == frozenset()
        with pytest.raises(UnknownSession):
            await store.open("s")

    run(body())
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    async def body() -> None:
        opened = await store_in(tmp_path / "new").create(header_of())
        for path in (tmp_path / "new").iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
        await opened.close()

    run(body())


# -- one writer ----------------------------------------------------------------------------------


def test_a_session_is_open_once_until_it_is_closed_or_forgotten(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        opened = await store.create(header_of())
        with pytest.raises(SessionBusy, match="'sample'"):
            await store.open(SESSION)
        await opened.close()
        opened = await store.open(SESSION)
        del opened
        gc.collect()
        await (await store.open(SESSION)).close()

    run(body())


def test_an_opening_waits_for_another_one_to_close(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path, wait=30.0)
        opened = await store.create(header_of())
        async with anyio.create_task_group() as tasks:
            again: list[Any] = []

            async def wait() -> None:
                again.append(await store.open(SESSION))

            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await opened.append([entry_of("000001", "000000", "first")])
            await opened.close()
        assert again[0].last == 1
        await again[0].close()

    run(body())


def test_an_opening_that_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        opened = await store.create(header_of())
        # As if its machine were not to be heard of any more.
        change(tmp_path, "update session set owner = 'somebody', until = 0")
        other = await store.open(SESSION)
        with pytest.raises(SessionMoved):
            await opened.append([entry_of("000001", "000000", "late")])
        await opened.close()
        await other.append([entry_of("000001", "000000", "in time")])
        with pytest.raises(SessionBusy):
            await store.open(SESSION)
        await other.close()
        assert list((await store.read(SESSION)).entries) == ["000000", "000001"]

    run(body())


def test_a_holder_that_runs_is_believed_and_one_that_is_gone_is_not() -> None:
    mine = new_holder()
    assert is_held(mine, until=0.0, now=1.0)
    assert not is_held("", until=9.0, now=1.0)
    assert not is_held(mine.replace('"token":"', '"token":"0'), until=9.0, now=1.0)
    nobody = mine.replace(f'"pid":{os.getpid()}', '"pid":999999999')
    assert not is_held(nobody, until=9.0, now=1.0)
    restarted = mine.replace('"boot":"', '"boot":"0')
    assert not is_held(restarted, until=9.0, now=1.0)
    elsewhere = mine.replace('"host":"', '"host":"other ')
    assert is_held(elsewhere, until=LEASE_S, now=1.0)
    assert not is_held(elsewhere, until=0.0, now=1.0)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_nothing_is_acknowledged_once_the_file_is_gone(how: str, tmp_path: Path) -> None:
    async def body() -> None:
        opened = await store_in(tmp_path).create(header_of())
        path = tmp_path / DATABASE
        path.rename(tmp_path / "moved")
        if how == "replaced":
            path.write_bytes((tmp_path / "moved").read_bytes())
        with pytest.raises(JournalGone):
            await opened.append([entry_of("000001", "000000", "late")])
        await opened.close()

    run(body())


def test_a_session_that_was_deleted_under_an_opening_is_gone(tmp_path: Path) -> None:
    async def body() -> None:
        opened = await store_in(tmp_path).create(header_of())
        change(tmp_path, "delete from session")
        with pytest.raises(JournalGone):
            await opened.append([entry_of("000001", "000000", "late")])
        await opened.close()

    run(body())


def test_what_was_deleted_is_not_in_the_file_any_more(tmp_path: Path) -> None:
    async def body() -> None:
        store = store_in(tmp_path)
        await write_some(store, 300)
        path = tmp_path / DATABASE
        assert b"text 299" in path.read_bytes()
        size = path.stat().st_size
        await store.delete(SESSION)
        assert b"text 2" not in path.read_bytes()
        assert path.stat().st_size < size

    run(body())


def test_a_conversation_in_rows_goes_on_where_it_was(tmp_path: Path) -> None:
    async def body() -> None:
        async with await open_sample(tmp_path, kind="sqlite") as session:
            turn = await session.prepare("One?")
            await turn.commit(openai_reply("1", input=9))
            state = session.state
        async with await open_sample(tmp_path, kind="sqlite") as session:
            assert session.state == state

    run(body())
