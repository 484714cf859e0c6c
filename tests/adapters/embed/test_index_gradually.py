"""A question that is answered by meaning before everything is embedded, and what is embedded while
nobody waits."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from tests.adapters.embed.test_index_loading import documents, equal, scores
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.chunk_maker import MAX_COMPARED
from lamina.adapters.embed.index.chunk_table import digest_text
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.ports import GradualIndex
from lamina.core.values.note import SearchTier
from lamina.core.values.selection import Document

pytestmark = pytest.mark.anyio
MANY = 2 * MAX_COMPARED
TEXTS = [f"boat{number} lies at berth{number % 40} of quay{number % 7}" for number in range(MANY)]
AGES = 600.0


def notes(texts: Sequence[str] = TEXTS) -> list[Document]:
    return documents(*texts)


def opened(tmp_path: Path, embedder: FakeEmbedder) -> SqliteIndex:
    return SqliteIndex(tmp_path / "index.sqlite", embedder)


async def test_what_looks_most_like_a_question_is_embedded_and_ranked(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = opened(tmp_path, embedder)
    assert isinstance(index, GradualIndex)
    corpus = await index.load_for(["where is boat1001"], notes(), patience=AGES)
    compared = len(embedder.texts) - 1
    assert 0 < compared <= MAX_COMPARED
    assert corpus.lexical == ""
    assert corpus.late == MANY - compared
    assert corpus.tier == SearchTier(
        by="candidates", passages=MANY, indexed=compared, compared=compared
    )
    found = await scores(corpus, "where is boat1001")
    assert found.cosine is not None
    assert found.lexical[0].argmax() == 1001
    whole = await scores(
        await opened(tmp_path / "other", FakeEmbedder()).load(notes()), "where is boat1001"
    )
    assert whole.cosine is not None
    assert found.cosine[0, 1001] == whole.cosine[0, 1001]


async def test_what_was_not_compared_is_not_found_before_what_was(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    corpus = await opened(tmp_path, embedder).load_for(["quay3 berth5"], notes(), patience=0)
    found = await scores(corpus, "quay3 berth5")
    embedded = [text in embedder.texts for text in TEXTS]
    assert 0 < sum(embedded) < MANY
    assert not found.lexical[0][[not known for known in embedded]].any()


async def test_what_was_embedded_for_a_question_is_kept_for_all_processes(tmp_path: Path) -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    await opened(tmp_path, first).load_for(["boat5"], notes(), patience=AGES)
    await opened(tmp_path, second).load_for(["boat5"], notes(), patience=AGES)
    assert not set(first.texts[1:]) & set(second.texts[1:])
    await opened(tmp_path, second).load(notes())
    assert len({*first.texts, *second.texts} & set(TEXTS)) == MANY
    assert len(first.texts[1:]) + len([text for text in second.texts if text in TEXTS]) == MANY


async def test_once_all_is_embedded_a_question_finds_what_it_always_does(tmp_path: Path) -> None:
    index = opened(tmp_path, FakeEmbedder())
    await index.load_for(["boat5"], notes(), patience=AGES)
    await index.load(notes())
    corpus = await index.load_for(["boat5"], notes(), patience=0)
    assert corpus.tier == SearchTier(by="meaning", passages=MANY, indexed=MANY)
    whole = await opened(tmp_path / "other", FakeEmbedder()).load(notes())
    assert equal(await scores(corpus, "boat5"), await scores(whole, "boat5"))


async def test_what_is_few_enough_is_embedded_whole_in_time(tmp_path: Path) -> None:
    few = TEXTS[:400]
    corpus = await opened(tmp_path, FakeEmbedder()).load_for(["boat5"], notes(few), patience=AGES)
    assert (corpus.late, corpus.tier.by, corpus.tier.indexed) == (0, "meaning", 400)


async def test_only_what_may_be_found_is_compared(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    among = frozenset(map(digest_text, TEXTS[: MAX_COMPARED + 200]))
    corpus = await opened(tmp_path, embedder).load_for(
        [f"boat{MANY - 1}"], notes(), patience=AGES, among=among
    )
    assert corpus.tier.passages == len(among)
    assert set(map(digest_text, embedder.texts[1:])) <= among


async def test_without_a_model_words_have_to_do(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.missing = "no model here"
    corpus = await opened(tmp_path, embedder).load_for(["boat77"], notes(), patience=AGES)
    assert corpus.lexical == "no model here"
    assert corpus.tier.by == "words"
    found = await scores(corpus, "boat77")
    assert (found.cosine, found.lexical[0].argmax()) == (None, 77)


async def test_a_text_that_cannot_be_embedded_is_found_by_its_words(tmp_path: Path) -> None:
    embedder = FakeEmbedder(failing=["boat77"])
    corpus = await opened(tmp_path, embedder).load_for(["berth37 quay0"], notes(), patience=AGES)
    found = await scores(corpus, "berth37 quay0")
    assert found.lexical[0, 77] > 0
    assert any("boat77" in failure for failure in corpus.failed)


# -- in the background ---------------------------------------------------------------------------


async def reader(digests: Sequence[bytes]) -> Mapping[bytes, str]:
    await anyio.lowlevel.checkpoint()
    texts = {digest_text(text): text for text in TEXTS}
    return {digest: texts[digest] for digest in digests}


def digests(texts: Sequence[str]) -> list[bytes]:
    return [digest_text(text) for text in texts]


async def test_filling_goes_in_order_one_text_at_a_time(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = opened(tmp_path, embedder)
    told: list[tuple[int, int]] = []
    wanted = TEXTS[40:60] + TEXTS[:10]
    made = await index.fill(digests(wanted), reader, lambda *far: told.append(far), most=24)
    assert made == 24
    assert embedder.texts == wanted[:24]
    assert set(embedder.calls) == {1}
    assert told[-1] == (24, 30)
    assert await index.fill(digests(wanted), reader) == 6
    assert await index.fill(digests(wanted), reader) == 0
    corpus = await index.load(notes(wanted))
    assert len(embedder.texts) == 30
    assert corpus.counts.new == 0


async def test_filling_that_is_stopped_keeps_what_it_made(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.waits_at = "boat5 "
    async with anyio.create_task_group() as group:
        group.start_soon(opened(tmp_path, embedder).fill, digests(TEXTS[:20]), reader)
        await embedder.waiting.wait()
        group.cancel_scope.cancel()
    assert embedder.texts == TEXTS[:5]
    other = FakeEmbedder()
    assert await opened(tmp_path, other).fill(digests(TEXTS[:20]), reader) == 15
    assert other.texts == TEXTS[5:20]


async def test_of_two_that_fill_one_waits_and_nothing_is_embedded_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.adapters.embed.index.filler.POLL_S", 0.001)
    first, second = FakeEmbedder(), FakeEmbedder()
    async with anyio.create_task_group() as group:
        for embedder in (first, second):
            group.start_soon(opened(tmp_path, embedder).fill, digests(TEXTS[:40]), reader)
    assert sorted(first.texts + second.texts) == sorted(TEXTS[:40])
    assert not (first.texts and second.texts)


async def test_filling_ends_where_there_is_no_model(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.missing = "no model here"
    assert await opened(tmp_path, embedder).fill(digests(TEXTS[:20]), reader) == 0
    assert await SqliteIndex(tmp_path / "words.sqlite", None).fill(digests(TEXTS), reader) == 0


async def test_what_is_not_the_text_that_was_asked_for_is_not_taken(tmp_path: Path) -> None:
    async def liar(wanted: Sequence[bytes]) -> Mapping[bytes, str]:
        await anyio.lowlevel.checkpoint()
        return dict.fromkeys(wanted, "something else")

    embedder = FakeEmbedder()
    assert await opened(tmp_path, embedder).fill(digests(TEXTS[:20]), liar) == 0
    assert embedder.texts == []


async def test_of_a_question_it_is_told_what_is_compared_and_nothing_else(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    indexed: list[tuple[int, int]] = []

    def compare(done: int, total: int) -> None:
        told.append((done, total))

    def index(done: int, total: int) -> None:
        indexed.append((done, total))

    corpus = await opened(tmp_path, FakeEmbedder()).load_for(
        ["where is boat1001"], notes(), index, patience=AGES, comparing=compare
    )
    assert 0 < corpus.tier.compared < MAX_COMPARED
    # It may end sooner than it might have, and says so.
    assert (told[0], told[-1]) == ((0, MAX_COMPARED), (MAX_COMPARED, MAX_COMPARED))
    assert told == sorted(told)
    assert indexed == []
    # All that is missing is indexed where that is little.
    await opened(tmp_path / "other", FakeEmbedder()).load_for(
        ["boat5"], notes(TEXTS[:100]), index, patience=AGES, comparing=compare
    )
    assert indexed[-1] == (100, 100)


async def test_words_that_are_taken_for_a_question_are_not_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    index = SqliteIndex(tmp_path / "index.sqlite", None)
    await index.load_for(["boat5"], notes(), lambda *step: told.append(step), patience=AGES)
    assert told == []
