"""A lexicon that grows is the one that was built at once."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.lexicon import NO_POSTINGS, Lexicon, pack_texts

TEXTS = st.lists(
    st.lists(st.sampled_from(["read", "file", "stock", "price"]), max_size=6).map(" ".join),
    max_size=6,
)


@given(TEXTS, TEXTS, TEXTS, st.data())
def test_a_lexicon_that_grew_scores_as_one_built_at_once(
    first: list[str], second: list[str], third: list[str], data: st.DataObject
) -> None:
    texts = first + second + third
    times = numpy.array([data.draw(st.integers(0, 3)) for _ in texts], numpy.int64)
    packs = pack_texts(texts)
    begin, middle = len(first), len(first) + len(second)
    base = NO_POSTINGS.extended(packs[:begin])
    before = Lexicon(base).score("read file")
    lexicon_parts = base.extended(packs[begin:middle]).extended(packs[middle:])
    assert len(lexicon_parts) == len(texts)
    at_once = Lexicon(NO_POSTINGS.extended(packs), times).score("read a file")
    assert Lexicon(lexicon_parts, times).score("read a file").tolist() == at_once.tolist()
    assert Lexicon(base).score("read file").tolist() == before.tolist()


def test_however_chunks_come_there_are_few_parts_and_no_large_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lamina.core.selection.lexicon.PART", 16)
    packs = pack_texts([f"read file {number % 7} {number}" for number in range(200)])
    singly, at_once = NO_POSTINGS, NO_POSTINGS.extended(packs)
    for pack in packs:
        singly = singly.extended([pack])
        assert len(singly.parts) <= 2 * len(singly) / 16 + 5
    for postings in (singly, at_once):
        assert max(part.size for part in postings.parts) <= 16
        assert sum(part.size for part in postings.parts) == len(postings) == 200
    question = "file 3 of 77"
    assert Lexicon(singly).score(question).tolist() == Lexicon(at_once).score(question).tolist()


@given(TEXTS, st.data())
def test_a_text_that_stands_there_often_counts_as_often(
    texts: list[str], data: st.DataObject
) -> None:
    times = [data.draw(st.integers(0, 3)) for _ in texts]
    rows = [row for row, often in enumerate(times) for _ in range(often)]
    once = Lexicon(NO_POSTINGS.extended(pack_texts(texts)), numpy.array(times, numpy.int64))
    all_of_them = Lexicon(NO_POSTINGS.extended(pack_texts([texts[row] for row in rows])))
    scores = once.score("stock price")
    assert [float(scores[row]) for row in rows] == all_of_them.score("stock price").tolist()
