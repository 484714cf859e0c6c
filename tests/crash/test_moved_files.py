"""The file is taken away under an open session: nothing is written to another one."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.crash.sample import SESSION, entry_of, header_of, open_sample
from tests.fakes.sessions import talk

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import Entry
from lamina.errors import JournalError, JournalGone, SessionBusy, SessionMoved, UnknownSession

FIRST = entry_of("000001", "000000", "first")


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


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def write_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"a line of another program\n")


@pytest.mark.parametrize(
    ("do", "error"),
    [
        (delete, JournalGone),
        (rename, JournalGone),
        (replace_by_its_copy, JournalGone),
        (replace_by_a_folder, JournalGone),
        (truncate, SessionMoved),
        (empty, SessionMoved),
        (write_to, SessionMoved),
    ],
)
def test_an_append_to_a_file_that_is_no_longer_the_one_that_was_opened_is_refused(
    do: Callable[[Path], None], error: type[JournalError], tmp_path: Path
) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        opened = await store.create(header_of())
        await opened.append([FIRST])
        path = store.path_of(SESSION)
        do(path)
        there = {path: path.read_bytes() for path in path.parent.iterdir() if path.is_file()}
        for _ in range(2):
            with pytest.raises(error, match="nothing was written"):
                await opened.append([entry_of("000002", "000001", "second")])
        assert there == {path: path.read_bytes() for path in there}
        await opened.close()

    anyio.run(body)


def test_a_session_whose_file_is_gone_stays_as_it_was(tmp_path: Path) -> None:
    async def body() -> None:
        async with await open_sample(tmp_path) as session:
            await talk(session, "Q")
            before, entries = session.state, session.entries
            JsonlStore(tmp_path).path_of(SESSION).unlink()
            with pytest.raises(JournalGone):
                await session.prepare("more")
            assert (session.state, session.entries) == (before, entries)
            assert not JsonlStore(tmp_path).path_of(SESSION).exists()

    anyio.run(body)


def test_a_file_replaced_while_an_opening_waits_for_its_lock_is_opened_anew(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        holder = await store.create(header_of())
        path = store.path_of(SESSION)
        other = write_lines([header_of(), FIRST], -1)
        draft = path.with_name("draft")
        draft.write_bytes(other)
        found: list[Entry] = []

        async def open_it() -> None:
            opened = await store.open(SESSION)
            found.extend(opened.journal.entries.values())
            await opened.append([entry_of("000002", "000001", "second")])
            await opened.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_it)
            await anyio.wait_all_tasks_blocked()
            draft.replace(path)
            await holder.close()
        assert found == [header_of(), FIRST]
        assert path.read_bytes().startswith(other)

    anyio.run(body)


def test_a_file_deleted_while_an_opening_waits_for_its_lock_is_unknown(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        holder = await store.create(header_of())
        said = []

        async def open_it() -> None:
            try:
                await store.open(SESSION)
            except UnknownSession as error:
                said.append(error.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_it)
            await anyio.wait_all_tasks_blocked()
            store.path_of(SESSION).unlink()
            await holder.close()
        assert said == ["unknown_session"]

    anyio.run(body)


def test_an_opening_that_waited_in_vain_says_so_and_leaves_the_file_alone(tmp_path: Path) -> None:
    async def body() -> None:
        holder = await JsonlStore(tmp_path).create(header_of())
        before = JsonlStore(tmp_path).path_of(SESSION).read_bytes()
        for refused in (JsonlStore(tmp_path, wait=0.0), JsonlStore(tmp_path, wait=0.05)):
            with pytest.raises(SessionBusy, match=SESSION):
                await refused.open(SESSION)
        assert JsonlStore(tmp_path).path_of(SESSION).read_bytes() == before
        await holder.append([FIRST])
        await holder.close()
        again = await JsonlStore(tmp_path, wait=0.0).open(SESSION)
        await again.close()

    anyio.run(body)
