"""The one index: what is made of chunks, once, and what is said of it."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.corpus import IndexedCorpus, LoadCounts
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.core.selection import lexicon as packed_terms
from lamina.core.selection.scores import Matrix, Scores
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

pytestmark = pytest.mark.anyio
PIER = Document(ItemId("note:pier"), ("pier: where boats land", "the pier opens in may"))
BEES = Document(ItemId("note:bees"), ("bees: about the hives", "bees swarm in june"))
SHIPS = Document(ItemId("note:ships"), ("ships land at the pier",))


def documents(*texts: str) -> list[Document]:
    return [Document(ItemId(f"note:{number}"), (text,)) for number, text in enumerate(texts)]


async def scores(corpus: IndexedCorpus, *parts: str) -> Scores:
    return await corpus.score(parts)


def equal(one: Scores, other: Scores) -> bool:
    assert one.cosine is not None
    assert other.cosine is not None
    return one.lexical.tobytes() == other.lexical.tobytes() and (
        one.cosine.tobytes() == other.cosine.tobytes()
    )


async def test_nothing_is_embedded_twice(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    first = await SqliteIndex(tmp_path / "index.sqlite", embedder).load([PIER, BEES])
    assert first.counts == LoadCounts(new=4)
    second = await SqliteIndex(tmp_path / "index.sqlite", embedder).load([BEES, PIER, SHIPS])
    assert second.counts == LoadCounts(new=1, reused=4)
    assert sorted(embedder.texts) == sorted(PIER.chunks + BEES.chunks + SHIPS.chunks)


async def test_an_edited_item_is_embedded_again_and_the_others_are_not(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = SqliteIndex(tmp_path / "index.sqlite", embedder)
    await index.load([PIER, BEES])
    edited = Document(PIER.id, (PIER.chunks[0], "the pier opens in june"))
    corpus = await index.load([edited, BEES])
    assert corpus.counts == LoadCounts(new=1, reused=3)
    assert embedder.texts[4:] == ["the pier opens in june"]
    found = (await scores(corpus, "pier opens june")).cosine
    assert found is not None
    assert int(found[0].argmax()) == 1


async def test_a_text_that_occurs_twice_is_embedded_once_and_scored_alike(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    corpus = await SqliteIndex(tmp_path / "i", embedder).load(documents("a b", "c d", "a b"))
    assert embedder.texts == ["a b", "c d"]
    got = await scores(corpus, "a c")
    assert got.cosine is not None
    assert got.cosine.shape == got.lexical.shape == (1, 3)
    assert got.cosine[0, 0] == got.cosine[0, 2]
    assert got.lexical[0, 0] == got.lexical[0, 2]


async def test_two_embedders_do_not_share_vectors(tmp_path: Path) -> None:
    one, other = FakeEmbedder("one"), FakeEmbedder("other")
    await SqliteIndex(tmp_path / "i", one).load([PIER])
    corpus = await SqliteIndex(tmp_path / "i", other).load([PIER])
    assert corpus.counts == LoadCounts(new=2)
    assert other.texts == list(PIER.chunks)


async def test_the_same_documents_cost_no_reading_the_next_time(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "i" / "index.sqlite", FakeEmbedder())
    first = await scores(await index.load([PIER, BEES]), "bees in june")
    index.close()
    for path in (tmp_path / "i").iterdir():
        path.unlink()
    corpus = await index.load([Document(each.id, each.chunks) for each in (PIER, BEES)])
    assert not list((tmp_path / "i").iterdir())
    assert equal(first, await scores(corpus, "bees in june"))


async def test_questions_are_embedded_once(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    corpus = await SqliteIndex(tmp_path / "i", embedder).load([PIER])
    before = len(embedder.texts)
    for _ in range(3):
        await scores(corpus, "when", "where", "when")
    assert embedder.texts[before:] == ["when", "where"]


async def test_a_search_from_a_chunk_embeds_nothing(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    corpus = await SqliteIndex(tmp_path / "i", embedder).load([PIER, BEES])
    before = len(embedder.texts)
    got = await scores(corpus, *BEES.chunks)
    assert got.cosine is not None
    assert got.cosine.argmax(axis=1).tolist() == [2, 3]
    assert got.cosine.max() <= 1
    assert len(embedder.texts) == before


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.text(alphabet="abc .\ud800\x00é漢", max_size=12), max_size=12),
    parts=st.lists(st.text(alphabet="abc .", max_size=8), max_size=3),
)
def test_fresh_and_reloaded_scores_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], parts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("index") / "index.sqlite"

    async def both() -> None:
        fresh = await SqliteIndex(path, FakeEmbedder()).load(documents(*texts))
        again = await SqliteIndex(path, FakeEmbedder()).load(documents(*texts))
        one, other = await scores(fresh, *parts), await scores(again, *parts)
        assert one.lexical.shape == (len(parts), len(texts))
        assert one.lexical.tobytes() == other.lexical.tobytes()
        assert (one.cosine is None) == (other.cosine is None)
        if one.cosine is not None and other.cosine is not None:
            assert one.cosine.shape == one.lexical.shape
            assert numpy.array_equal(one.cosine, other.cosine, equal_nan=True)
        assert again.counts.new == 0

    anyio.run(both)


async def test_no_documents_and_no_parts_are_no_error(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "i", FakeEmbedder())
    empty = await scores(await index.load([]), "what")
    assert empty.lexical.shape == (1, 0)
    silent = await scores(await index.load([PIER]))
    assert silent.lexical.shape == (0, 2)
    blank = await index.load(documents(" ", ""))
    assert (blank.failed, blank.counts) == ((), LoadCounts(new=2))


async def test_scores_do_not_depend_on_what_else_is_indexed(tmp_path: Path) -> None:
    full = SqliteIndex(tmp_path / "full", FakeEmbedder())
    await full.load(documents(*(f"pier number {number}" for number in range(100))))
    alone = SqliteIndex(tmp_path / "alone", FakeEmbedder())
    question = "where is the pier"
    one = await scores(await full.load([PIER, BEES]), question)
    assert equal(one, await scores(await alone.load([PIER, BEES]), question))


# -- progress, cancellation, company -------------------------------------------------------------


async def test_progress_goes_from_nothing_to_all_and_only_if_there_is_work(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "i", FakeEmbedder())
    seen: list[tuple[int, int]] = []
    texts = documents(*(f"text {number}" for number in range(150)))
    await index.load(texts, lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 150)
    assert seen[-1] == (150, 150)
    assert seen == sorted(seen)
    seen.clear()
    await index.load(texts, lambda done, total: seen.append((done, total)))
    await index.load(texts[:20], lambda done, total: seen.append((done, total)))
    assert seen == []


async def test_what_was_done_before_a_cancellation_is_kept(tmp_path: Path) -> None:
    texts = documents(*(f"text {number}" for number in range(200)))
    stopped = FakeEmbedder()
    stopped.waits_at = "text 150"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SqliteIndex(tmp_path / "i", stopped).load, texts)
        await stopped.waiting.wait()
        tasks.cancel_scope.cancel()
    assert len(stopped.texts) == 128
    corpus = await SqliteIndex(tmp_path / "i", FakeEmbedder()).load(texts)
    assert corpus.counts == LoadCounts(new=72, reused=128)


async def test_an_index_goes_on_after_a_cancelled_load(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.waits_at = "pier"
    index = SqliteIndex(tmp_path / "i", embedder)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.load, [PIER])
        await embedder.waiting.wait()
        tasks.cancel_scope.cancel()
    embedder.waits_at = ""
    assert (await index.load([PIER])).counts == LoadCounts(new=2)


async def test_sessions_that_want_the_same_at_once_make_it_once(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = SqliteIndex(tmp_path / "i", embedder)
    texts = documents(*(f"text {number}" for number in range(300)))
    async with anyio.create_task_group() as tasks:
        for start in range(3):
            tasks.start_soon(index.load, texts[start:])
    assert len(embedder.texts) == len(set(embedder.texts)) == 300


async def test_a_short_load_does_not_wait_for_a_long_one(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "i", FakeEmbedder())
    ended: list[str] = []

    async def load(name: str, wanted: Sequence[Document]) -> None:
        await index.load(wanted)
        ended.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(load, "long", documents(*(f"text {number}" for number in range(2000))))
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(load, "short", [PIER])
    assert ended == ["short", "long"]


# -- what cannot be embedded ---------------------------------------------------------------------


async def test_a_text_that_fails_is_said_found_by_its_words_and_tried_again(tmp_path: Path) -> None:
    embedder = FakeEmbedder(failing={"swarm"})
    index = SqliteIndex(tmp_path / "i", embedder)
    corpus = await index.load([PIER, BEES])
    assert corpus.failed == (
        "'bees swarm in june' cannot be embedded: ValueError: cannot embed 'bees swarm in june'",
    )
    assert corpus.counts == LoadCounts(new=3, failed=1)
    assert corpus.lexical == ""
    # A question that holds the word fails, too.
    assert (await scores(corpus, "bees swarm")).cosine is None
    assert len(corpus.failed) == 2
    got = await scores(corpus, "bees swarm", "bees")
    assert got.cosine is not None
    assert numpy.isnan(got.cosine[0]).all()
    got = await scores(corpus, "bees")
    assert got.cosine is not None
    assert numpy.isnan(got.cosine).tolist() == [[False, False, False, True]]
    assert int(got.lexical[0].argmax()) in (2, 3)
    assert got.lexical[0, 3] > 0
    assert len(corpus.failed) == 1
    for again in (index, SqliteIndex(tmp_path / "i", embedder)):
        assert (await again.load([PIER, BEES])).counts == LoadCounts(reused=3, failed=1)
    embedder.failing.clear()
    mended = await index.load([PIER, BEES])
    assert (mended.counts, mended.failed) == (LoadCounts(new=1, reused=3), ())
    got = await scores(mended, "bees swarm")
    assert got.cosine is not None
    assert int(got.cosine[0].argmax()) == 3


async def test_a_corpus_that_was_handed_out_does_not_change_when_a_failed_text_is_mended(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder(failing={"swarm"})
    index = SqliteIndex(tmp_path / "i", embedder)
    old = await index.load([BEES])
    embedder.failing.clear()
    await index.load([BEES])
    got = await scores(old, "bees")
    assert got.cosine is not None
    assert numpy.isnan(got.cosine).tolist() == [[False, True]]


async def test_a_text_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(200)]
    texts[7], texts[130] = "bad seven", "bad hundred"
    embedder = FakeEmbedder(failing={"bad"})
    corpus = await SqliteIndex(tmp_path / "i", embedder).load(documents(*texts))
    assert corpus.counts == LoadCounts(new=198, failed=2)


async def test_an_embedder_that_fails_on_everything_is_not_asked_for_every_text(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder(failing={"text"})
    texts = documents(*(f"text {number}" for number in range(640)))
    corpus = await SqliteIndex(tmp_path / "i", embedder).load(texts)
    assert corpus.counts == LoadCounts(failed=640)
    assert corpus.lexical == "no text could be embedded: ValueError: cannot embed 'text 0'"
    assert len(embedder.calls) < 200
    assert (await scores(corpus, "text 7")).cosine is None


class _Odd(FakeEmbedder):
    """Gives rows that are no vectors for some texts."""

    async def embed(self, texts: Sequence[str], progress: object = None) -> Matrix:
        rows = await super().embed(texts)
        for row, text in zip(rows, texts, strict=True):
            if "zero" in text:
                row[:] = 0
            if "nan" in text:
                row[0] = numpy.nan
        return rows


async def test_what_is_no_vector_is_never_kept(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "i", _Odd())
    corpus = await index.load(documents("fine", "zero", "nan"))
    assert corpus.failed == (
        "'zero' cannot be embedded: the embedder gave no vector",
        "'nan' cannot be embedded: the embedder gave no vector",
    )
    again = await SqliteIndex(tmp_path / "i", FakeEmbedder()).load(documents("fine", "zero", "nan"))
    assert again.counts == LoadCounts(new=2, reused=1)


class _Short(FakeEmbedder):
    async def embed(self, texts: Sequence[str], progress: object = None) -> Matrix:
        return (await super().embed(texts))[:, :32] * (2 if "longer" in texts[0] else 1)


async def test_a_vector_of_another_length_than_the_others_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "i"
    await SqliteIndex(path, FakeEmbedder()).load([PIER])
    corpus = await SqliteIndex(path, _Short()).load([PIER, *documents("a b c d e f g h")])
    assert corpus.counts.failed == 1


async def test_an_embedder_that_is_not_there_leaves_lexical_search_and_says_why(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder()
    embedder.missing = "the model is not here; get it"
    index = SqliteIndex(tmp_path / "i", embedder)
    corpus = await index.load([PIER, BEES])
    assert (corpus.lexical, corpus.failed) == ("the model is not here; get it", ())
    got = await scores(corpus, "bees in june")
    assert got.cosine is None
    assert int(got.lexical[0].argmax()) == 3
    # Terms are kept, and once the model is there so are vectors, in the same process.
    assert (await index.load([PIER, BEES])).counts == LoadCounts(reused=4)
    embedder.missing = ""
    there = await index.load([PIER, BEES])
    assert (there.lexical, there.counts) == ("", LoadCounts(new=4))
    assert (await scores(there, "bees in june")).cosine is not None


async def test_a_model_that_is_gone_when_the_question_comes_is_said(tmp_path: Path) -> None:
    await SqliteIndex(tmp_path / "i", FakeEmbedder()).load([PIER])
    embedder = FakeEmbedder()
    embedder.missing = "gone"
    corpus = await SqliteIndex(tmp_path / "i", embedder).load([PIER])
    assert corpus.lexical == ""
    assert (await scores(corpus, "pier")).cosine is None
    assert corpus.lexical == "gone"


async def test_a_missing_model_is_asked_for_once_a_load(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.missing = "gone"
    index = SqliteIndex(tmp_path / "i", embedder)
    texts = documents(*(f"text {number}" for number in range(500)))
    await index.load(texts)
    await index.load(texts)
    assert len(embedder.calls) == 2


async def test_without_an_embedder_chunks_are_found_by_their_words(tmp_path: Path) -> None:
    corpus = await SqliteIndex(tmp_path / "i", None).load([PIER, BEES])
    assert corpus.lexical == "embeddings are switched off"
    assert (await scores(corpus, "june")).lexical[0].tolist()[3] > 0
    with_vectors = await SqliteIndex(tmp_path / "i", FakeEmbedder()).load([PIER, BEES])
    assert with_vectors.counts == LoadCounts(new=4)
    both = await SqliteIndex(tmp_path / "i", None).load([PIER, BEES])
    assert both.counts == LoadCounts(reused=4)


async def test_terms_of_another_version_are_packed_again_and_vectors_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "i"
    await SqliteIndex(path, FakeEmbedder()).load([PIER])
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE chunks SET terms_version = ?", (packed_terms.TERMS_VERSION - 1,))
        file.commit()
    embedder = FakeEmbedder()
    corpus = await SqliteIndex(path, embedder).load([PIER])
    assert embedder.texts == []
    assert int((await scores(corpus, "opens may")).lexical[0].argmax()) == 1
    assert (await SqliteIndex(path, embedder).load([PIER])).counts == LoadCounts(reused=2)


# -- the real model ------------------------------------------------------------------------------


async def test_the_real_model_finds_what_shares_no_word(
    tmp_path: Path, embedding_cache: Path
) -> None:
    texts = documents(
        "weather_forecast: tells how warm and rainy it will be",
        "send_mail: writes to somebody",
        "book_flight: buys a plane ticket",
    )
    path = tmp_path / "index.sqlite"
    fresh = await SqliteIndex(path, MiniLM()).load(texts)
    again = await SqliteIndex(path, MiniLM()).load(texts)
    assert (fresh.counts, again.counts) == (LoadCounts(new=3), LoadCounts(reused=3))
    parts = ("do I need an umbrella tomorrow?", "travel to Rome")
    one, other = await scores(fresh, *parts), await scores(again, *parts)
    assert equal(one, other)
    assert one.cosine is not None
    assert one.cosine.argmax(axis=1).tolist() == [0, 2]
