"""A guess at what chunks mean, before any of them is embedded."""

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.selection.lexicon import NO_POSTINGS, Lexicon, hash_term, pack_texts
from lamina.core.selection.rough_meaning import (
    CandidateOrder,
    ChunkSketches,
    WordVectors,
    sketch_chunks,
)

WORDS = ("cat", "dog", "ship", "boat", "tree", "moss")
# Animals are alike, and so are vessels and plants.
ROWS = ((1, 0, 0), (0.9, 0.1, 0), (0, 1, 0), (0.1, 0.9, 0), (0, 0, 1), (0, 0.1, 0.9))


def vectors() -> WordVectors:
    pairs = sorted((hash_term(word), row) for word, row in zip(WORDS, ROWS, strict=True))
    return WordVectors(
        hashes=numpy.array([term for term, _ in pairs], numpy.uint32),
        rows=numpy.array([row for _, row in pairs], numpy.float32),
    )


def order_of(texts: list[str], question: str) -> tuple[CandidateOrder, ChunkSketches]:
    postings = NO_POSTINGS.extended(pack_texts(texts))
    sketches = sketch_chunks(postings, vectors())
    lexical = Lexicon(postings).score(question)[None, :]
    return CandidateOrder((question,), lexical, sketches, numpy.arange(len(texts))), sketches


texts = st.lists(st.lists(st.sampled_from((*WORDS, "zyx")), max_size=8).map(" ".join), min_size=1)


@given(texts, st.sampled_from(WORDS), st.integers(1, 30))
@settings(deadline=None)
def test_the_best_are_the_most_promising_and_each_stands_once(
    some: list[str], question: str, most: int
) -> None:
    order, sketches = order_of(some, question)
    lengths = numpy.linalg.norm(sketches.rows, axis=1)
    assert (numpy.isclose(lengths, 1, atol=1e-3) | (lengths < 1e-3)).all()
    rows = order.best(numpy.arange(len(some)), most)
    assert len(rows) == len(set(rows.tolist())) == min(most, len(some))
    rest = numpy.setdiff1d(numpy.arange(len(some)), rows)
    if len(rest):
        assert order.fits[rows].min() >= order.fits[rest].max()
    assert numpy.isfinite(order.fits).all()


@given(texts, st.sampled_from(WORDS))
@settings(deadline=None)
def test_whatever_is_learnt_gives_numbers(some: list[str], question: str) -> None:
    order, _ = order_of(some, question)
    known = numpy.arange(0, len(some), 2)
    fits = order.learn(known, numpy.linspace(-1, 1, len(known), dtype=numpy.float32)[None, :])
    assert len(fits) == len(known)
    assert numpy.isfinite(order.fits).all()


def test_words_of_one_kind_are_taken_to_mean_alike() -> None:
    some = ["cat cat", "dog", *["ship boat"] * 6, *["tree moss"] * 6, "zyx"]
    order, _ = order_of(some, "cat")
    assert order.best(numpy.arange(len(some)), 2).tolist() == [0, 1]


def test_what_stands_beside_a_good_find_is_looked_at_next() -> None:
    some = ["alpha one", "beta two", "gamma three", "delta four"]
    postings = NO_POSTINGS.extended(pack_texts(some))
    lexical = numpy.zeros((1, 4), numpy.float32)
    documents = numpy.array([0, 1, 0, 1])
    order = CandidateOrder(("q",), lexical, sketch_chunks(postings, vectors()), documents)
    order.learn(numpy.array([0, 1]), numpy.array([[0.1, 0.9]], numpy.float32))
    assert order.best(numpy.array([2, 3]), 1).tolist() == [3]
