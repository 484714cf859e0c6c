"""What people and programs do to the file of a database: odd files, moved ones, full disks."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import anyio
import pytest
from tests.crash.database import (
    BLOB,
    DATABASE,
    LOG,
    SESSIONS,
    check_entries,
    check_going_on,
    check_reading,
    closed_image,
    crashed_image,
)
from tests.crash.sample import SESSION, entry_of, header_of, open_sample, store_in
from tests.crash.scale import luck, much, tally
from tests.fakes.sessions import talk

from lamina.adapters.stores.database import Database
from lamina.adapters.stores.sqlite import SqliteJournal, SqliteStore
from lamina.core.codec import mint_id
from lamina.core.values.entry import Entry
from lamina.errors import JournalError, JournalGone, SessionBusy, UnknownSession, WriteFailed

SHARED = f"{DATABASE}-shm"


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- odd files ------------------------------------------------------------------------------------


def test_an_empty_file_is_a_store_of_nothing_and_can_be_used(tmp_path: Path) -> None:
    (tmp_path / DATABASE).touch()

    async def body() -> None:
        store = store_in(tmp_path, "sqlite", wait=0.0)
        assert not await store.sessions()
        assert not await store.has(SESSION)
        with pytest.raises(UnknownSession):
            await store.open(SESSION)
        assert files_in(tmp_path) == {DATABASE: b""}
        await (await store.create(header_of())).close()
        assert await store.sessions() == (SESSION,)

    anyio.run(body)


def test_a_folder_in_its_place_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / DATABASE).mkdir()

    async def body() -> None:
        store = store_in(tmp_path, "sqlite", wait=0.0)
        for act in (store.create(header_of()), store.open(SESSION), store.put_blob(b"x")):
            with pytest.raises(JournalError, match=DATABASE):
                await act

    anyio.run(body)
    assert [path.name for path in tmp_path.rglob("*")] == [DATABASE]


def test_a_link_to_a_database_is_that_database(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / DATABASE).symlink_to(tmp_path / "there" / DATABASE)

    async def body() -> None:
        here, there = (store_in(tmp_path / name, "sqlite", wait=0.0) for name in ("here", "there"))
        opened = await here.create(header_of())
        with pytest.raises(SessionBusy):
            await there.open(SESSION)
        await opened.append([entry_of("000001", "000000", "first")])
        assert list((await there.read(SESSION)).entries) == ["000000", "000001"]
        await opened.close()

    anyio.run(body)
    assert [path.name for path in (tmp_path / "here").iterdir()] == [DATABASE]


@contextmanager
def as_anybody() -> Iterator[None]:
    """As somebody whom permissions bind, which they do not bind the superuser."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["file", "folder", "file that nobody may read"])
def test_a_database_that_must_not_be_written_is_left_alone(what: str) -> None:
    async def body(folder: Path) -> None:
        store = store_in(folder, "sqlite", wait=0.0)
        await check_reading(store, closed_image())
        for act in (store.create(header_of("new")), store.open(SESSION), store.put_blob(b"x")):
            with pytest.raises(JournalError, match=DATABASE):
                await act

    with TemporaryDirectory() as name:
        folder = Path(name) / "kept"
        closed_image().put(folder)
        Path(name).chmod(0o755)
        modes = {"file": (0o777, 0o444), "folder": (0o555, 0o444)}
        folder_mode, file_mode = modes.get(what, (0o777, 0o000))
        (folder / DATABASE).chmod(file_mode)
        folder.chmod(folder_mode)
        with as_anybody():
            anyio.run(body, folder)
        folder.chmod(0o755)
        (folder / DATABASE).chmod(0o644)
        assert (folder / DATABASE).read_bytes() == closed_image().files[DATABASE]


@pytest.mark.parametrize("shared", [None, b"", bytes(32_768), b"\xff" * 32_768, b"rubbish"],
                         ids=["missing", "empty", "zeros", "ones", "rubbish"])  # fmt: skip
def test_the_shared_memory_of_a_crash_does_not_count(shared: bytes | None, tmp_path: Path) -> None:
    image = crashed_image()
    image.put(tmp_path, {} if shared is None else {SHARED: shared})

    async def body() -> None:
        store = store_in(tmp_path, "sqlite", wait=0.0)
        for session in SESSIONS:
            check_entries(await store.read(session), image.written[session])
        assert await store.get_blob(image.blob) == BLOB
        assert await check_going_on(store, image) == len(SESSIONS)

    anyio.run(body)


def test_a_database_whose_log_is_gone_gives_a_beginning_or_says_that_there_is_nothing(
    tmp_path: Path,
) -> None:
    image = crashed_image()
    image.put(tmp_path)
    (tmp_path / LOG).unlink()

    async def body() -> None:
        store = store_in(tmp_path, "sqlite", wait=0.0)
        await check_reading(store, image)
        async with await open_sample(tmp_path, kind="sqlite", given_anew=True) as session:
            await talk(session, "Q")

    anyio.run(body)


# -- moved files ----------------------------------------------------------------------------------


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replace_by_its_copy(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("do", [delete, rename, replace_by_its_copy, replace_by_a_folder])
def test_an_append_to_a_database_that_is_no_longer_there_is_refused(
    do: Callable[[Path], None], tmp_path: Path
) -> None:
    async def body() -> None:
        async with await open_sample(tmp_path, kind="sqlite") as session:
            await talk(session, "Q")
            before, entries = session.state, session.entries
            do(tmp_path / DATABASE)
            there = files_in(tmp_path)
            for _ in range(2):
                with pytest.raises(JournalGone, match="nothing was written"):
                    await session.prepare("more")
            assert (session.state, session.entries) == (before, entries)
            assert files_in(tmp_path) == there
            name = "elsewhere" if do is rename else DATABASE
        assert there.get(name) == files_in(tmp_path).get(name)

    anyio.run(body)


def test_a_new_database_in_place_of_a_deleted_one_is_not_disturbed_by_the_old_opening(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        old = await store_in(tmp_path, "sqlite").create(header_of())
        await old.append([entry_of("000001", "000000", "old")])
        (tmp_path / DATABASE).unlink()
        store = store_in(tmp_path, "sqlite", wait=0.0)
        assert not await store.has(SESSION)
        new = await store.create(header_of())
        written: list[Entry] = [header_of()]
        for number in range(1, 6):
            entry = entry_of(mint_id(number), mint_id(number - 1), f"new {number}")
            await new.append([entry])
            written.append(entry)
            if number < 3:
                with pytest.raises(JournalGone):
                    await old.append([entry_of("000002", "000001", "late")])
            else:
                await old.close()
        await new.close()
        assert list((await store.read(SESSION)).entries.values()) == written

    anyio.run(body)


# -- a full disk ----------------------------------------------------------------------------------


class LimitedDatabase(Database):
    """On a disk that is full when the file has so many pages."""

    pages = 1 << 30

    def open(self) -> sqlite3.Connection:
        connection = super().open()
        connection.execute(f"pragma max_page_count = {self.pages}").fetchall()
        return connection

    def leave_room(self, pages: int, journal: SqliteJournal) -> None:
        """So many pages more, also for an open session."""
        assert journal._connection is not None
        (count,) = journal._connection.execute("pragma page_count").fetchone()
        self.pages = count + pages
        journal._connection.execute(f"pragma max_page_count = {self.pages}").fetchall()


async def try_the_rest(store: SqliteStore, opened: SqliteJournal, chance: Random) -> None:
    """A snapshot is a convenience; a blob and a session are there whole or not at all."""
    await opened.keep_snapshot(b"state" * chance.choice((1, 5_000)))
    data = chance.randbytes(chance.choice((10, 20_000)))
    digest = sha256(data).hexdigest()
    try:
        await store.put_blob(data)
    except WriteFailed:
        assert not await store.known_blobs([digest])
    else:
        assert await store.get_blob(digest) == data
    name = f"new {digest}"
    try:
        await (await store.create(header_of(name))).close()
    except WriteFailed:
        assert not await store.has(name)
    else:
        assert (await store.read(name)).damage == ()


@pytest.mark.parametrize("number", range(much(2, 60)))
def test_a_write_that_finds_no_room_changes_nothing_and_the_next_one_goes_on(
    number: int, tmp_path: Path
) -> None:
    chance = luck(f"full {number}")
    database = LimitedDatabase(tmp_path / DATABASE)
    store = SqliteStore(tmp_path / DATABASE, wait=0.0)
    store._database = database

    async def body() -> None:
        opened = await store.create(header_of())
        written: list[Entry] = [header_of()]
        failed = 0
        for step in range(much(25, 60)):
            database.leave_room(chance.choice((0, 0, 1, 2, 5, 1_000)), opened)
            made: list[Entry] = []
            for ahead in range(chance.randint(1, 3)):
                parent = made[-1].id if made else written[-1].id
                text = f"{step} {'x' * chance.choice((0, 300, 3_000, 30_000))}"
                made.append(entry_of(mint_id(opened.last + 1 + ahead), parent, text))
            size, before = opened.size, dict(opened.entries)
            try:
                await opened.append(made)
            except WriteFailed:
                failed += 1
                assert (opened.size, dict(opened.entries)) == (size, before)
                assert mint_id(opened.last) == made[-1].id, "the ids are given up"
            else:
                written += made
            await try_the_rest(store, opened, chance)
            assert list((await store.read(SESSION)).entries.values()) == written
            if chance.random() < 0.2 and mint_id(opened.last) == written[-1].id:
                await opened.close()
                opened = await store.open(SESSION)
                assert list(opened.entries.values()) == written
        tally["failed writes"] += failed
        assert failed
        database.leave_room(1_000, opened)
        entry = entry_of(mint_id(opened.last + 1), written[-1].id, "there is room again")
        await opened.append([entry])
        await opened.close()
        journal = await store.read(SESSION)
        assert list(journal.entries.values()) == [*written, entry]
        assert journal.damage == ()

    anyio.run(body)
