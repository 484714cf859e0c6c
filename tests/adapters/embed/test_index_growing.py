"""An index whose documents become more, and fewer."""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.chunk_file import ChunkData
from lamina.adapters.embed.index.chunk_table import ChunkTable
from lamina.adapters.embed.index.corpus import IndexedCorpus, LoadCounts
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

pytestmark = pytest.mark.anyio
WORDS = ("pier", "boat", "bees", "june", "hive", "rope", "tide")


def note(number: int) -> Document:
    said = " ".join(WORDS[number // 7**place % 7] for place in range(3))
    return Document(ItemId(f"note:{number}"), (f"{said} {number}", f"of {WORDS[number % 7]}"))


async def found(corpus: IndexedCorpus) -> tuple[bytes, bytes]:
    scores = await corpus.score(["boats at the pier", "bees in june 3"])
    assert scores.cosine is not None
    return scores.lexical.tobytes(), scores.cosine.tobytes()


async def afresh(path: Path, documents: Sequence[Document]) -> tuple[bytes, bytes]:
    return await found(await SqliteIndex(path, FakeEmbedder()).load(documents))


async def test_documents_that_come_and_go_are_scored_as_if_loaded_at_once(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.sqlite", FakeEmbedder())
    now = [note(number) for number in range(60)]
    await index.load(now)
    for step in range(60, 75):
        # One comes at some place, and every now and then one goes.
        now.insert(step * 7 % len(now), note(step))
        if step % 3 == 0:
            del now[step * 5 % len(now)]
        corpus = await index.load(now)
        assert corpus.counts.new == 1
        assert corpus.counts.reused == len({c for document in now for c in document.chunks}) - 1
        assert await found(corpus) == await afresh(tmp_path / f"{step}.sqlite", now)


async def test_a_corpus_that_was_handed_out_does_not_change_when_others_grow_from_it(
    tmp_path: Path,
) -> None:
    index = SqliteIndex(tmp_path / "index.sqlite", FakeEmbedder())
    notes = [note(number) for number in range(40)]
    first = await index.load(notes)
    before = await found(first)
    one = await index.load([*notes, note(41)])
    # From the same beginning, but with another in the same place.
    other = await index.load([*notes, note(42)])
    assert await found(first) == before
    assert await found(one) == await afresh(tmp_path / "one", [*notes, note(41)])
    assert await found(other) == await afresh(tmp_path / "other", [*notes, note(42)])


async def test_an_edited_item_leaves_nothing_of_its_old_text(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.sqlite", FakeEmbedder())
    notes = [note(number) for number in range(40)]
    await index.load(notes)
    edited = [Document(notes[0].id, ("all new words",)), *notes[1:]]
    corpus = await index.load(edited)
    assert corpus.counts == LoadCounts(new=1, reused=len({c for n in notes[1:] for c in n.chunks}))
    assert await found(corpus) == await afresh(tmp_path / "afresh", edited)


def test_two_shelves_that_grow_from_one_do_not_share_what_is_new() -> None:
    vectors = numpy.eye(3, dtype="<f2")
    base = ChunkTable()
    base.put({b"a": ChunkData(vectors[0].tobytes(), b"")}, settled=True)
    one, other = base.extended(), base.extended()
    one.put({b"b": ChunkData(vectors[1].tobytes(), b"")}, settled=True)
    other.put({b"c": ChunkData(vectors[2].tobytes(), b"")}, settled=True)
    assert one.vectors is not None
    assert other.vectors is not None
    assert one.vectors.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert other.vectors.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert base.find([b"a", b"b", b"c"]).tolist() == [0, -1, -1]
    assert one.find([b"a", b"b", b"c"]).tolist() == [0, 1, -1]
    assert other.find([b"a", b"b", b"c"]).tolist() == [0, -1, 1]


def test_a_shelf_that_gets_nothing_new_is_not_copied() -> None:
    base = ChunkTable()
    base.put({b"a": ChunkData(b"", b"")}, settled=False)
    base.extended().put({b"b": ChunkData(b"", b"")}, settled=False)
    again = base.extended()
    again.put({}, settled=True)
    again.put({b"a": ChunkData(b"", b"")}, settled=False)
    assert (again.memory, again.has_changed) == (base.memory, False)
    again.put({b"c": ChunkData(b"", b"")}, settled=False)
    assert (again.memory != base.memory, again.has_changed) == (True, True)


def test_a_vector_that_comes_late_is_not_seen_by_those_who_had_the_row_before() -> None:
    base = ChunkTable()
    base.put({b"a": ChunkData(b"", b""), b"b": ChunkData(b"", b"")}, settled=False)
    extended = base.extended()
    extended.put({b"b": ChunkData(numpy.eye(3, dtype="<f2")[1].tobytes(), b"")}, settled=True)
    assert extended.vectors is not None
    assert numpy.isnan(extended.vectors).tolist() == [[True] * 3, [False] * 3]
    assert base.vectors is None
    assert (base.is_settled.tolist(), extended.is_settled.tolist()) == ([False] * 2, [False, True])


async def test_many_rows_are_read_in_one_go_and_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.sqlite"
    notes = [note(number) for number in range(60)]
    one_by_one = await found(await SqliteIndex(path, FakeEmbedder()).load(notes))
    monkeypatch.setattr("lamina.adapters.embed.index.chunk_file.MANY", 10)
    corpus = await SqliteIndex(path, FakeEmbedder()).load(notes)
    assert corpus.counts.new == 0
    assert await found(corpus) == one_by_one
