"""A database of which a page is bad, that cannot be written to, or that is none."""

import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

import anyio
import pytest
from msgspec.structs import replace
from tests.crash.sample import entry_of, header_of

from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core.codec import mint_id
from lamina.core.journal import read_journal
from lamina.core.values.entry import Entry
from lamina.errors import JournalError, UnknownSession

PAGE = 4096
SESSIONS = ("a", "b", "c")
COUNT = 120


async def write_three(path: Path) -> dict[str, dict[str, Entry]]:
    """Three sessions whose rows stand between one another; what was written."""
    store = SqliteStore(path)
    journals = {session: await store.create(header_of(session)) for session in SESSIONS}
    for number in range(1, COUNT):
        for session, journal in journals.items():
            text = f"{number} of {session}, and so on. " * 8
            await journal.append([entry_of(mint_id(number), mint_id(number - 1), text)])
    written = {session: dict(journal.entries) for session, journal in journals.items()}
    for journal in journals.values():
        await journal.close()
    return written


@pytest.fixture
def written(tmp_path: Path) -> dict[str, dict[str, Entry]]:
    return anyio.run(write_three, tmp_path / "kept.sqlite")


def bad_pages(path: Path) -> Iterator[int]:
    """The file with one page after the other zeroed."""
    data = path.read_bytes()
    for page in range(1, len(data) // PAGE):
        start = page * PAGE
        path.write_bytes(data[:start] + bytes(PAGE) + data[start + PAGE :])
        yield page + 1
    path.write_bytes(data)


def root_pages(path: Path) -> dict[int, str]:
    connection = sqlite3.connect(path)
    roots = dict(connection.execute("select rootpage, name from sqlite_master").fetchall())
    connection.close()
    return roots


def test_a_bad_page_costs_the_rows_on_it_and_no_others(
    tmp_path: Path, written: dict[str, dict[str, Entry]]
) -> None:
    path = tmp_path / "kept.sqlite"
    roots = root_pages(path)
    damaged_reads = 0

    async def check(page: int) -> int:
        store = SqliteStore(path, wait=0.0)
        before = path.read_bytes()
        damaged = 0
        assert set(await store.sessions()) == set(SESSIONS)
        for session in SESSIONS:
            journal = await store.read(session)
            for entry in list(journal.entries.values())[1:]:
                # One behind a hole hangs on what is in front of it.
                as_written = replace(written[session][entry.id], parent=entry.parent)
                assert entry == as_written
            missing = COUNT - len(journal.entries)
            # The rows of all sessions are below the root of their table.
            assert missing <= 8 or roots.get(page) == "entry", (page, session)
            assert not missing or journal.damage, (page, session)
            exported = read_journal(await store.export(session), session)
            assert dict(exported.entries) == dict(journal.entries)
            damaged += any(damage.kind == "bad_page" for damage in journal.damage)
        for listed in await store.list_sessions():
            assert not listed.problem
        assert path.read_bytes() == before, "reading has changed the file"
        return damaged

    for page in bad_pages(path):
        damaged_reads += anyio.run(check, page)
    assert damaged_reads > len(SESSIONS) * 20


def test_a_session_with_a_bad_page_takes_no_more_and_says_what_to_do(
    tmp_path: Path, written: dict[str, dict[str, Entry]]
) -> None:
    path = tmp_path / "kept.sqlite"
    # The file stays as it is when this is left behind.
    assert next(page for page in bad_pages(path) if page == 40)

    async def body() -> None:
        store = SqliteStore(path, wait=0.0)
        assert not await store.is_sound()
        for act in (store.open(SESSIONS[1]), store.delete(SESSIONS[1])):
            with pytest.raises(JournalError, match="`lamina export` and `lamina repair`") as caught:
                await act
            assert ".recover" not in str(caught.value)
        assert set(await store.sessions()) == set(SESSIONS)

    anyio.run(body)


def test_a_sound_database_is_known_for_it(
    tmp_path: Path, written: dict[str, dict[str, Entry]]
) -> None:
    assert anyio.run(SqliteStore(tmp_path / "kept.sqlite").is_sound)


# -- files that cannot be written to -------------------------------------------------------------


def in_a_child_without_rights(act: Callable[[], None]) -> None:
    """Runs something as nobody, whom permissions bind."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            act()
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder for a test to fill, that everybody can look into; nobody may write to it once
    `close_folder` was called."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def close_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


@pytest.mark.parametrize("has_totals", [True, False])
def test_everything_can_be_read_where_nothing_can_be_written(
    tmp_path: Path,
    written: dict[str, dict[str, Entry]],
    closed_folder: Path,
    has_totals: bool,
) -> None:
    path = closed_folder / "kept.sqlite"
    copy(tmp_path / "kept.sqlite", path)
    if not has_totals:
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("update session set totals = null")
        connection.close()
    close_folder(closed_folder)

    async def read() -> None:
        store = SqliteStore(path, wait=0.0)
        assert set(await store.sessions()) == set(SESSIONS)
        assert await store.has("a")
        assert dict((await store.read("a")).entries) == written["a"]
        assert (await store.export("a")).count(b"\n") == COUNT
        for listed in await store.list_sessions():
            assert listed.totals is not None
            assert (listed.problem, listed.totals.entries) == ("", COUNT)
        assert not await store.known_blobs(["0" * 64])
        with pytest.raises(JournalError, match="readonly"):
            await store.open("a")

    in_a_child_without_rights(lambda: anyio.run(read))
    assert [file.name for file in closed_folder.iterdir()] == ["kept.sqlite"]


def test_entries_that_are_only_in_a_log_are_read_or_an_error_says_where_they_are(
    tmp_path: Path, written: dict[str, dict[str, Entry]], closed_folder: Path
) -> None:
    source = tmp_path / "kept.sqlite"
    places = [closed_folder / "whole", closed_folder / "without"]

    async def write_more() -> None:
        journal = await SqliteStore(source).open("a")
        await journal.append([entry_of(mint_id(COUNT), mint_id(COUNT - 1), "late")])
        for place, ends in zip(places, (("", "-wal", "-shm"), ("", "-wal")), strict=True):
            place.mkdir()
            for end in ends:
                copy(f"{source}{end}", place)
            close_folder(place)
        await journal.close()

    anyio.run(write_more)

    async def read() -> None:
        whole, without = (SqliteStore(place / "kept.sqlite", wait=0.0) for place in places)
        assert mint_id(COUNT) in (await whole.read("a")).entries
        with pytest.raises(JournalError, match=r"newest entries are in 'kept\.sqlite-wal'"):
            await without.read("a")

    in_a_child_without_rights(lambda: anyio.run(read))
    for place in places:
        place.chmod(0o755)


# -- what is no database -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "message"),
    [("text", "is not a session database"), ("folder", "is a folder, not a session database")],
)
def test_what_is_no_database_is_called_so(what: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    if what == "text":
        path.write_text("Not a database at all. " * 100)
    else:
        path.mkdir()

    async def body() -> None:
        store = SqliteStore(path, wait=0.0)
        for act in (store.sessions(), store.read("a"), store.create(header_of("a"))):
            with pytest.raises(JournalError, match=message) as caught:
                await act
            assert not isinstance(caught.value, UnknownSession)

    anyio.run(body)
