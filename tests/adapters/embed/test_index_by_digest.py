"""Documents whose texts are elsewhere: the index knows them by digest, and asks for what is new."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import anyio
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.chunk_maker import BATCH
from lamina.adapters.embed.index.corpus import IndexedCorpus, LoadCounts
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio
PIER = Document(ItemId("note:pier"), ("pier: where boats land", "the pier opens in may"))
BEES = Document(ItemId("note:bees"), ("bees: about the hives", "bees swarm in june"))
QUESTIONS = ("boats at the pier", "bees in june", "the pier opens in may")


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def by_digest(document: Document) -> Document:
    return Document(document.id, digests=tuple(map(digest, document.chunks)))


class Elsewhere:
    """Gives the texts of documents for the asking, and remembers what it was asked for."""

    def __init__(self, *documents: Document) -> None:
        self.held = {digest(chunk): chunk for document in documents for chunk in document.chunks}
        self.asked: list[list[bytes]] = []

    async def __call__(self, digests: Sequence[bytes]) -> Mapping[bytes, str]:
        await anyio.lowlevel.checkpoint()
        self.asked.append(list(digests))
        return {each: self.held[each] for each in digests if each in self.held}


async def found(corpus: IndexedCorpus, *parts: str) -> tuple[list[list[float]], object]:
    scores = await corpus.score(parts or QUESTIONS)
    cosine = scores.cosine
    return scores.lexical.tolist(), None if cosine is None else numpy.nan_to_num(cosine).tolist()


def note(number: int, said: str) -> Document:
    return Document(ItemId(f"note:{number}"), (f"{said} {number}", f"of {said}"))


@pytest.mark.parametrize("embeds", [True, False])
async def test_scores_by_digest_are_those_of_the_same_texts(tmp_path: Path, embeds: bool) -> None:
    notes = (PIER, BEES)
    for number in range(2):
        # Once made now, and once read again.
        embedder = FakeEmbedder() if embeds else None
        texts = Elsewhere(*notes)
        index = SqliteIndex(tmp_path / "digests", embedder)
        corpus = await index.load([by_digest(each) for each in notes], texts=texts)
        assert corpus.counts == (LoadCounts(reused=4) if number else LoadCounts(new=4))
        assert len(texts.asked) == (0 if number else 1)
        by_text = await SqliteIndex(tmp_path / "texts", FakeEmbedder() if embeds else None).load(
            notes
        )
        assert await found(corpus) == await found(by_text)


async def test_texts_and_digests_of_the_same_are_known_as_one(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = SqliteIndex(tmp_path / "i", embedder)
    await index.load([PIER])
    texts = Elsewhere()
    assert (await index.load([by_digest(PIER)], texts=texts)).counts == LoadCounts(reused=2)
    mixed = await index.load([PIER, by_digest(BEES)], texts=Elsewhere(BEES))
    assert mixed.counts == LoadCounts(new=2, reused=2)
    assert texts.asked == []
    assert sorted(embedder.texts) == sorted(PIER.chunks + BEES.chunks)


async def test_texts_are_asked_for_batch_by_batch(tmp_path: Path) -> None:
    notes = [note(number, "boats") for number in range(100)]
    texts = Elsewhere(*notes)
    embedder = FakeEmbedder()
    seen: list[tuple[int, int]] = []
    corpus = await SqliteIndex(tmp_path / "i", embedder).load(
        [by_digest(each) for each in notes], lambda *told: seen.append(told), texts
    )
    assert corpus.counts == LoadCounts(new=101)
    assert [len(asked) for asked in texts.asked] == [BATCH, 101 - BATCH]
    assert (seen[0], seen[-1]) == ((0, 101), (101, 101))
    assert len(embedder.texts) == 101


async def test_what_is_not_given_is_found_by_nothing_and_asked_for_again(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = SqliteIndex(tmp_path / "i", embedder)
    notes = [by_digest(PIER), by_digest(BEES)]
    corpus = await index.load(notes, texts=Elsewhere(PIER))
    assert (corpus.counts, corpus.failed, corpus.warnings) == (LoadCounts(new=2, missing=2), (), ())
    lexical, cosine = await found(corpus, "bees in june")
    assert lexical == [[0.0] * 4]
    scores = await corpus.score(["pier"])
    assert scores.cosine is not None
    assert numpy.isnan(scores.cosine).tolist() == [[False, False, True, True]]
    # What is not there makes no difference to what is.
    alone = await (await SqliteIndex(tmp_path / "alone", FakeEmbedder()).load([PIER])).score(
        ["pier opens"]
    )
    assert (await corpus.score(["pier opens"])).lexical[:, :2].tolist() == alone.lexical.tolist()
    texts = Elsewhere(PIER, BEES)
    later = await index.load(notes, texts=texts)
    assert later.counts == LoadCounts(new=2, reused=2)
    assert texts.asked == [[digest(chunk) for chunk in BEES.chunks]]
    fresh = SqliteIndex(tmp_path / "fresh", FakeEmbedder())
    assert await found(later) == await found(await fresh.load([PIER, BEES]))
    assert len(embedder.texts) == len(set(embedder.texts))
    # Whoever holds the corpus as it was holds it as it was.
    assert await found(corpus, "bees in june") == (lexical, cosine)


async def test_without_anybody_to_ask_there_is_no_error_and_nothing_to_tell(tmp_path: Path) -> None:
    seen: list[object] = []
    for embedder in (FakeEmbedder(), None):
        corpus = await SqliteIndex(tmp_path / "i", embedder).load(
            [by_digest(PIER)], lambda *told: seen.append(told)
        )
        assert corpus.counts == LoadCounts(missing=2)
        assert (await found(corpus))[0] == [[0.0, 0.0]] * 3
        assert await corpus.graph(0.3, 5) == {}
    assert seen == []


async def test_a_text_that_is_another_is_refused_and_said(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    index = SqliteIndex(tmp_path / "i", embedder)
    wrong = Elsewhere(PIER)
    wrong.held[digest(PIER.chunks[1])] = "the pier opens in june"
    corpus = await index.load([by_digest(PIER)], texts=wrong)
    assert corpus.counts == LoadCounts(new=1, missing=1)
    (warning,) = corpus.warnings
    assert warning.startswith(
        "1 of the texts that the index was given are others than it asked for"
    )
    assert embedder.texts == [PIER.chunks[0]]
    assert (await index.load([by_digest(PIER)], texts=Elsewhere(PIER))).counts.missing == 0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document(ItemId("note:a"), ("text",), (bytes(32),)), "has both chunks and digests"),
        (Document(ItemId("note:a"), digests=(b"short",)), "b'short', which is not a digest"),
    ],
)
async def test_what_is_no_digest_is_told_with_its_document(
    tmp_path: Path, document: Document, said: str
) -> None:
    with pytest.raises(UsageError, match=f"'note:a' .*{said}"):
        await SqliteIndex(tmp_path / "i", None).load([document])


async def test_a_blank_text_is_asked_for_once(tmp_path: Path) -> None:
    blank = Document(ItemId("note:blank"), (" ", "boats"))
    texts = Elsewhere(blank)
    for _ in range(2):
        index = SqliteIndex(tmp_path / "i", FakeEmbedder())
        corpus = await index.load([by_digest(blank)], texts=texts)
        await index.load([by_digest(blank)], texts=texts)
        assert (corpus.counts.missing, corpus.failed) == (0, ())
    assert len(texts.asked) == 1


async def test_vectors_come_to_texts_whose_words_were_known(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    embedder.missing = "not yet here"
    index = SqliteIndex(tmp_path / "i", embedder)
    notes = [note(number, "boats") for number in range(2 * BATCH)]
    wanted = [by_digest(each) for each in notes]
    first = await index.load(wanted, texts=Elsewhere(*notes))
    assert (first.lexical, first.counts.missing) == ("not yet here", 0)
    words = await found(first)
    embedder.missing = ""
    texts = Elsewhere(*notes)
    second = await index.load(wanted, texts=texts)
    assert second.lexical == ""
    assert sum(map(len, texts.asked)) == len(embedder.texts) == 2 * BATCH + 1
    fresh = SqliteIndex(tmp_path / "fresh", FakeEmbedder())
    assert await found(second) == await found(await fresh.load(notes))
    assert await found(first) == words


async def test_the_same_documents_are_asked_for_nothing(tmp_path: Path) -> None:
    texts = Elsewhere(PIER, BEES)
    index = SqliteIndex(tmp_path / "i", None)
    wanted = (by_digest(PIER), by_digest(BEES))
    first = await index.load(wanted, texts=texts)
    assert (await index.load(wanted, texts=texts)).documents is first.documents
    equal = tuple(by_digest(each) for each in (PIER, BEES))
    assert (await index.load(equal, texts=texts)).documents is equal
    assert len(texts.asked) == 1


async def test_graphs_by_digest_are_those_of_the_same_texts(tmp_path: Path) -> None:
    quay = Document(ItemId("note:quay"), ("where boats land",))
    notes = [PIER, quay, BEES]
    index = SqliteIndex(tmp_path / "i", FakeEmbedder())
    by_text = await (await index.load(notes)).graph(0.3, 5)
    wanted = [by_digest(each) for each in notes]
    corpus = await SqliteIndex(tmp_path / "other", FakeEmbedder()).load(
        wanted, texts=Elsewhere(*notes)
    )
    assert await corpus.graph(0.3, 5) == by_text
    assert by_text[PIER.id]


class _Edits:
    """Notes as a person has them: written, edited, moved and deleted."""

    def __init__(self, said: Sequence[str]) -> None:
        self.notes = {n: note(n, each) for n, each in enumerate(said)}

    def edit(self, number: int, said: str) -> None:
        self.notes.pop(number, None)
        if said:
            self.notes[number] = note(number, said)


WORDS = ("boats", "pier", "bees", "hives")


@settings(max_examples=25, deadline=None)
@given(
    said=st.lists(st.sampled_from(WORDS), max_size=8),
    edits=st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from((*WORDS, ""))), max_size=4),
        max_size=4,
    ),
    embeds=st.booleans(),
)
def test_a_load_after_edits_is_a_fresh_load_and_nothing_is_embedded_twice(
    tmp_path_factory: pytest.TempPathFactory,
    said: list[str],
    edits: list[list[tuple[int, str]]],
    embeds: bool,
) -> None:
    folder = tmp_path_factory.mktemp("edits")

    async def play() -> None:
        kept = _Edits(said)
        embedder = FakeEmbedder()
        index = SqliteIndex(folder / "kept", embedder if embeds else None)
        for number, step in enumerate([[], *edits]):
            for each in step:
                kept.edit(*each)
            notes = list(kept.notes.values())
            texts = Elsewhere(*notes)
            corpus = await index.load([by_digest(each) for each in notes], texts=texts)
            fresh = SqliteIndex(folder / str(number), FakeEmbedder() if embeds else None)
            assert await found(corpus, "boats", "hives 3") == await found(
                await fresh.load(notes), "boats", "hives 3"
            )
        made = [text for text in embedder.texts if text not in ("boats", "hives 3")]
        assert len(made) == len(set(made))

    anyio.run(play)
