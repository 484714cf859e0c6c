"""Which store is meant, by name or as an object; and imports that open flat in each of them."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.fakes.book import FakeBook
from tests.fakes.clock import FakeClock

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.sqlite import SqliteStore
from lamina.apps.wiring.session_importer import import_data
from lamina.apps.wiring.stores import choose_store, count_elsewhere, default_store, list_stores
from lamina.core import journal as journal_room
from lamina.core.ports import JournalStore
from lamina.errors import UsageError

CHAT = "".join(f"**user**: What is {n}?\n\n**ai**: It is {n + 1}.\n\n" for n in range(200))


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("LAMINA_STORE", raising=False)


def test_files_are_the_default_and_the_environment_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(default_store(tmp_path), JsonlStore)
    monkeypatch.setenv("LAMINA_STORE", "sqlite")
    assert isinstance(default_store(tmp_path), SqliteStore)
    assert isinstance(choose_store("jsonl", tmp_path), JsonlStore)
    memory = lamina.MemoryStore()
    assert choose_store(memory, tmp_path) is memory


def test_a_store_that_nobody_knows_is_an_error_that_names_those_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="store is 'csv', but must be 'jsonl' or 'sqlite'"):
        choose_store("csv", tmp_path)
    monkeypatch.setenv("LAMINA_STORE", "postgres")
    with pytest.raises(UsageError, match="LAMINA_STORE is 'postgres', but must be"):
        default_store(tmp_path)


@pytest.mark.parametrize("thing", [Path("x.db"), 3, lamina.SqliteStore, object()])
def test_what_is_no_store_is_refused_before_anything_is_written(tmp_path: Path, thing: Any) -> None:
    async def body() -> None:
        with pytest.raises(UsageError, match="which is not a store: it can be 'jsonl'"):
            await open_named(tmp_path, thing)

    anyio.run(body)
    assert list(tmp_path.iterdir()) == []


async def open_named(folder: Path, store: Any, session: str = "s") -> lamina.Session:
    return await lamina.open_session(
        session, workspace=folder, store=store, book=FakeBook(), clock=FakeClock(),
        target="fake:small",
    )  # fmt: skip


def test_a_session_is_kept_in_the_store_that_is_named(tmp_path: Path) -> None:
    async def body() -> None:
        for name in ("jsonl", "sqlite"):
            async with await open_named(tmp_path, name, name):
                pass
            assert list(await default_store(tmp_path, name).sessions()) == [name]
        assert await count_elsewhere(tmp_path) == {"sqlite": 1}
        assert [kept.store.place("s") for kept in list_stores()] == [
            default_store(tmp_path).place("s")
        ]

    anyio.run(body)


def test_the_stores_of_all_workspaces_are_those_of_the_kind_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            async with await open_named(tmp_path / name, "sqlite", name):
                pass
        assert list_stores() == ()
        monkeypatch.setenv("LAMINA_STORE", "sqlite")
        sessions = [tuple(await kept.store.sessions()) for kept in list_stores()]
        assert sorted(sessions) == [("one",), ("two",)]

    anyio.run(body)


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_the_first_opening_of_an_import_replays_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[str] = []

    async def body() -> None:
        store: JournalStore = default_store(tmp_path, kind)
        given = {"name": "chat.md", "session": "s", "workspace": tmp_path, "store": store}
        report = await import_data(CHAT.encode(), **given, target="openai:gpt-4o")  # type: ignore[arg-type]
        assert report.entries > 400

        def fold(state: Any, entry: Any, damage: Any) -> Any:
            folded.append(entry.id)
            return journal_room.fold_repaired(state, entry, damage)

        monkeypatch.setattr("lamina.engine.record.record.fold_repaired", fold)
        async with await lamina.open_session("s", workspace=tmp_path, store=store) as session:
            assert folded == []
            assert len(session.envelope.cached) == 400
            assert session.envelope.cached[-1].text == "It is 200."
        whole = await store.read("s")
        assert list(session.entries) == list(whole.entries.values())

    anyio.run(body)


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_requests_that_were_left_do_not_make_the_next_opening_replay_everything(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[str] = []

    def fold(state: Any, entry: Any, damage: Any) -> Any:
        folded.append(entry.id)
        return journal_room.fold_repaired(state, entry, damage)

    async def body() -> None:
        store: JournalStore = default_store(tmp_path, kind)
        given = {"name": "chat.md", "session": "s", "workspace": tmp_path, "store": store}
        await import_data(CHAT.encode(), **given, target="openai:gpt-4o")  # type: ignore[arg-type]
        monkeypatch.setattr("lamina.engine.record.record.fold_repaired", fold)
        monkeypatch.setattr("lamina.core.journal.repair.fold_repaired", fold)
        for _ in range(3):
            async with await lamina.open_session("s", workspace=tmp_path, store=store) as session:
                await session.prepare("And what is 200?")
        # Each was left in front of the last answer, so each is a branch of its own.
        assert len(folded) < 10, folded
        replayed = journal_room.replay_repaired(session.path)[0]
        assert session.state == replayed

    anyio.run(body)
