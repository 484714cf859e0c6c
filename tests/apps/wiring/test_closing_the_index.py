"""The index that was opened for a session is closed with it; one that was given is its giver's."""

from pathlib import Path

import pytest
from tests.fakes.index import IndexFake

from lamina import open_session
from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.wiring.index import LazyIndex
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document
from lamina.engine.session.session import core_of

pytestmark = pytest.mark.anyio
NOTES = (Document(ItemId("note:pier"), ("where boats land",)),)


class Closing(IndexFake):
    """An index of somebody's own that could be closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _by_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_EMBED", "off")


def left_open(tmp_path: Path) -> list[str]:
    """Files that SQLite removes when the last connection is closed."""
    return sorted(path.name for path in (tmp_path / "data").glob("*.sqlite-*"))


async def test_an_index_is_closed_and_opens_again(tmp_path: Path) -> None:
    index = LazyIndex()
    await index.aclose()
    await index.load(NOTES)
    assert left_open(tmp_path)
    await index.aclose()
    assert left_open(tmp_path) == []
    more = Document(ItemId("note:bees"), ("bees swarm",))
    assert len((await index.load([*NOTES, more])).documents) == 2
    await index.aclose()
    assert left_open(tmp_path) == []


async def test_a_session_closes_what_it_was_opened_with(tmp_path: Path) -> None:
    session = await open_session("one", store=MemoryStore(), workspace=tmp_path)
    copied = await session.save_as("two")
    assert core_of(session).ports.closing == core_of(copied).ports.closing
    made = [close.__self__ for close in core_of(session).ports.closing]  # type: ignore[attr-defined]
    (searched,) = [index for index in made if isinstance(index, LazyIndex)]
    await searched.load(NOTES)
    assert left_open(tmp_path)
    await session.close()
    assert left_open(tmp_path) == []
    # Whoever was copied from it goes on, and closes it once more.
    await searched.load([*NOTES, Document(ItemId("note:bees"), ("bees swarm",))])
    await copied.close()
    assert left_open(tmp_path) == []


async def test_an_index_that_was_given_is_not_closed(tmp_path: Path) -> None:
    index = Closing()
    async with await open_session(store=MemoryStore(), workspace=tmp_path, index=index) as session:
        assert index.aclose not in core_of(session).ports.closing
    assert not index.closed
