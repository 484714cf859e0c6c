"""BM25 over packed chunks."""

import math
from collections import Counter

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lamina.core.selection.lexicon import (
    LENGTH_SHARE,
    NO_POSTINGS,
    SATURATION,
    TERMS_VERSION,
    Lexicon,
    pack_texts,
)
from lamina.core.selection.terms import find_terms

WORDS = st.lists(st.sampled_from(["read", "file", "stock", "price", "mail"]), max_size=12)
TEXTS = WORDS.map(" ".join)


def lexicon(*texts: str) -> Lexicon:
    return Lexicon(NO_POSTINGS.extended(pack_texts(texts)))


def expected(texts: list[str], query: str) -> list[float]:
    """BM25 as it is written down, one number at a time."""
    counts = [Counter(find_terms(text)) for text in texts]
    mean = sum(count.total() for count in counts) / len(texts) or 1.0
    scores = []
    for count in counts:
        held_back = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * count.total() / mean)
        score = 0.0
        for term, times in Counter(find_terms(query)).items():
            often = sum(term in other for other in counts)
            rarity = math.log1p((len(texts) - often + 0.5) / (often + 0.5))
            score += times * rarity * count[term] * (SATURATION + 1) / (count[term] + held_back)
        scores.append(score)
    return scores


@given(st.lists(TEXTS, min_size=1, max_size=8), TEXTS)
def test_scores_are_those_of_the_formula(texts: list[str], query: str) -> None:
    assert lexicon(*texts).score(query) == pytest.approx(expected(texts, query), abs=1e-4)


def test_what_is_packed_does_not_change_while_its_version_stays() -> None:
    assert (TERMS_VERSION, pack_texts(["Read a file, read_file"])[0].hex()) == snapshot(
        (1, "33f4d5120110369f8c026741579802")
    )


def test_a_chunk_that_shares_no_word_scores_nothing() -> None:
    assert lexicon("read a file", "stock price").score("mail").tolist() == [0.0, 0.0]


@pytest.mark.parametrize("texts", [(), ("",), ("", "the")])
def test_a_lexicon_may_hold_nothing(texts: tuple[str, ...]) -> None:
    assert lexicon(*texts).score("read").tolist() == [0.0] * len(texts)


def test_a_word_that_stands_there_a_thousand_times_is_counted_as_often_as_a_byte_can() -> None:
    assert lexicon("file " * 1000, "file").score("file").max() < 10


@given(st.text(), st.lists(st.text(), max_size=5))
def test_any_text_can_be_packed_and_asked_for(text: str, others: list[str]) -> None:
    scores = lexicon(text, *others).score(text)
    assert scores.dtype == numpy.float32
    assert len(scores) == 1 + len(others)
    assert (scores[0] > 0) == bool(find_terms(text))


def test_another_order_of_chunks_is_the_same_order_of_scores() -> None:
    texts = ["read a file", "file", "stock price of a file"]
    there, back = lexicon(*texts).score("file price"), lexicon(*reversed(texts)).score("file price")
    assert there.tolist() == back[::-1].tolist()
