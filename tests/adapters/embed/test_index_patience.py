"""A load that may not take long: what it has no time for is found by words, and made later."""

from pathlib import Path

import pytest
from tests.adapters.embed.test_index_loading import documents, equal, scores
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.chunk_maker import BATCH
from lamina.adapters.embed.index.chunk_table import digest_text
from lamina.adapters.embed.index.corpus import LoadCounts
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.selection import Document

pytestmark = pytest.mark.anyio
HASTE = 0.0
MANY = 3 * BATCH + 5


def notes(count: int = MANY) -> list[Document]:
    return documents(*(f"the berth of boat{number} is free" for number in range(count)))


def opened(tmp_path: Path, embedder: FakeEmbedder) -> SqliteIndex:
    return SqliteIndex(tmp_path / "index.sqlite", embedder)


async def test_in_haste_all_are_found_by_their_words_and_that_is_said(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    corpus = await opened(tmp_path, embedder).load(notes(), patience=HASTE)
    left = MANY - len(embedder.texts)
    assert 0 < left < MANY
    assert corpus.counts == LoadCounts(new=MANY, late=left)
    assert corpus.late == left
    assert corpus.lexical == f"{left:,} of {MANY:,} passages are not embedded yet"
    found = await scores(corpus, "boat190")
    assert found.cosine is None
    assert found.lexical[0].argmax() == 190


async def test_every_load_goes_on_and_nothing_is_embedded_twice(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = opened(tmp_path, embedder)
    left = [(await index.load(notes(), patience=HASTE)).late for _ in range(5)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert sorted(embedder.texts) == sorted(document.chunks[0] for document in notes())
    last = await index.load(notes(), patience=HASTE)
    assert (last.lexical, last.late) == ("", 0)
    whole = await opened(tmp_path / "other", FakeEmbedder()).load(notes())
    assert equal(await scores(last, "a free berth"), await scores(whole, "a free berth"))


async def test_another_process_goes_on_as_well(tmp_path: Path) -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    await opened(tmp_path, first).load(notes(), patience=HASTE)
    corpus = await opened(tmp_path, second).load(notes())
    assert (corpus.late, corpus.lexical) == (0, "")
    assert not set(first.texts) & set(second.texts)


async def test_the_few_that_are_late_do_not_keep_the_others_from_being_compared(
    tmp_path: Path,
) -> None:
    index = opened(tmp_path, FakeEmbedder())
    known = notes(40 * BATCH)
    await index.load(known)
    more = documents(*(f"a new note on rope{number}" for number in range(2 * BATCH)))
    corpus = await index.load([*known, *more], patience=HASTE)
    assert corpus.late == BATCH
    assert corpus.lexical == ""
    found = await scores(corpus, f"rope{2 * BATCH - 1}")
    assert found.cosine is not None
    assert found.lexical[0].argmax() == len(known) + 2 * BATCH - 1


async def test_who_waits_is_told_that_it_is_over(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    index = opened(tmp_path, FakeEmbedder())
    await index.load(notes(), lambda done, total: told.append((done, total)), patience=HASTE)
    assert told[-1] == (MANY, MANY)
    told.clear()
    await index.load(notes(), lambda done, total: told.append((done, total)), patience=HASTE)
    assert told[-1][0] == told[-1][1]


async def test_patience_is_for_embedding_alone(tmp_path: Path) -> None:
    corpus = await SqliteIndex(tmp_path / "index.sqlite", None).load(notes(), patience=HASTE)
    assert corpus.late == 0
    assert corpus.counts == LoadCounts(new=MANY)


async def test_what_is_asked_for_comes_first_and_is_all_that_is_waited_for(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = opened(tmp_path, embedder)
    asked = notes()[-20:]
    among = frozenset(digest_text(document.chunks[0]) for document in asked)
    corpus = await index.load(notes(), patience=60, among=among)
    assert {document.chunks[0] for document in asked} <= set(embedder.texts)
    assert len(embedder.texts) == BATCH
    assert (corpus.late, corpus.lexical) == (0, "")
    found = await scores(corpus, f"boat{MANY - 1}")
    assert found.cosine is not None
    assert found.cosine[0, -20:].argmax() == 19


async def test_of_what_is_asked_for_the_share_is_counted(tmp_path: Path) -> None:
    index = opened(tmp_path, FakeEmbedder())
    among = frozenset(digest_text(document.chunks[0]) for document in notes()[: 2 * BATCH])
    corpus = await index.load(notes(), patience=HASTE, among=among)
    assert corpus.lexical == f"{BATCH} of {2 * BATCH} passages are not embedded yet"
