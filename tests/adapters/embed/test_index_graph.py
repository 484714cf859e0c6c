"""Which documents are alike: worked out once, kept, and never taken for another's."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.selection.expansion import SimilarityGraph, build_similarity_graph
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

pytestmark = pytest.mark.anyio
PIER = Document(ItemId("note:pier"), ("where boats land", "the pier opens in may"))
QUAY = Document(ItemId("note:quay"), ("boats land",))
BEES = Document(ItemId("note:bees"), ("bees swarm in june",))
NOTES = (PIER, QUAY, BEES)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many documents each graph had that was built."""
    sizes: list[int] = []

    def counted(documents: tuple[Document, ...], *rest: object) -> SimilarityGraph:
        sizes.append(len(documents))
        return build_similarity_graph(documents, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(
        "lamina.adapters.embed.index.similarity_graph.build_similarity_graph", counted
    )
    return sizes


async def graph(
    path: Path, *notes: Document, threshold: float = 0.3, name: str = "fake"
) -> SimilarityGraph:
    index = SqliteIndex(path, FakeEmbedder(name))
    corpus = await index.load(notes)
    found = await corpus.graph(threshold, 5)
    assert await corpus.graph(threshold, 5) is found
    assert index.notes() == ()
    index.close()
    return found


async def test_a_graph_is_built_once_and_read_again(tmp_path: Path, built: list[int]) -> None:
    first = await graph(tmp_path / "i", *NOTES)
    assert [other for other, _ in first[PIER.id]] == [QUAY.id]
    assert [other for other, _ in first[QUAY.id]] == [PIER.id]
    assert first[BEES.id] == ()
    assert await graph(tmp_path / "i", *NOTES) == first
    assert built == [3]


async def test_whatever_a_graph_depends_on_makes_it_another(
    tmp_path: Path, built: list[int]
) -> None:
    path = tmp_path / "i"
    renamed = Document(ItemId("note:wharf"), QUAY.chunks)
    edited = Document(QUAY.id, ("bees land",))
    await graph(path, *NOTES)
    assert ItemId("note:wharf") in await graph(path, PIER, renamed, BEES)
    assert [other for other, _ in (await graph(path, PIER, edited, BEES))[BEES.id]] == [QUAY.id]
    assert len((await graph(path, *NOTES, threshold=-1.0))[BEES.id]) == 2
    await graph(path, *NOTES, name="another model")
    await graph(path, PIER, QUAY)
    assert built == [3, 3, 3, 3, 3, 2]


async def test_a_graph_that_does_not_prove_itself_is_built_anew(
    tmp_path: Path, built: list[int]
) -> None:
    path = tmp_path / "i"
    first = await graph(path, *NOTES)
    with closing(sqlite3.connect(path)) as file, file:
        changed = file.execute(
            "UPDATE chunks SET vector = x'00' WHERE maker = "
            "(SELECT id FROM makers WHERE name = 'graphs')"
        )
        assert changed.rowcount == 1
    assert await graph(path, *NOTES) == first
    assert built == [3, 3]


async def test_without_vectors_there_is_no_graph(tmp_path: Path) -> None:
    corpus = await SqliteIndex(tmp_path / "i", None).load(NOTES)
    assert await corpus.graph(0.5, 5) == {}


async def test_a_graph_is_no_chunk(tmp_path: Path) -> None:
    await graph(tmp_path / "i", *NOTES)
    stats = SqliteIndex(tmp_path / "i", None).stats()
    assert (stats.chunks, stats.graphs) == ({"fake": 4}, 1)
