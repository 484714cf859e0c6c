"""Guesses the meaning of chunks before any of them is embedded, and chooses which to embed next.

Laws: a guess costs next to nothing and decides only the order in which chunks are embedded: every
result is ranked by its vector. It depends only on the chunks, the words and the vectors known so
far.

A chunk's guess is the sum of its words' vectors, with more weight for rare words. The chunks
embedded for a question correct it: chunks with similar meaning, or in one document, tend to match
alike.
"""

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.selection.lexicon import Postings, hash_term
from lamina.core.selection.scores import PART, WHOLE, WORDS, Indices, Matrix
from lamina.core.selection.terms import find_terms

# The weight of words against the guess, before anything is known. This and the following values
# were chosen with the trial questions of `bench/first_search.py`; the reported ones are different
# questions.
WORDS_FIRST = 0.6
# How similarly chunks of one document are assumed to match, and the unexplained share of a match.
SAME_DOCUMENT, NOISE = 0.5, 0.5
# Directions that nearly all chunks share say nothing about any of them.
SHARED_DIRECTIONS = 2
# How many chunks are summed at a time.
_BLOCK = 2048
_TINY = numpy.float32(1e-9)


class WordVectors(Struct, frozen=True, kw_only=True):
    """The meaning of single words: sorted `hashes` of terms, and a row for each."""

    hashes: NDArray[numpy.uint32]
    rows: Matrix


class ChunkSketches(Struct, frozen=True, kw_only=True):
    """A guess at the meaning of each chunk, a row of length 1 (or 0 if nothing is known about its
    words), and the data for the guess at a question."""

    rows: Matrix
    vectors: WordVectors
    rarity: NDArray[numpy.float32]
    mean: Matrix
    shared: Matrix

    def of_text(self, text: str) -> Matrix:
        """Return the guess at the meaning of a question."""
        total = numpy.zeros((1, self.rows.shape[1]), numpy.float32)
        hashes = numpy.array([hash_term(term) for term in find_terms(text)], numpy.uint32)
        places = _find(self.vectors.hashes, hashes)
        for place in places[places >= 0].tolist():
            total += self.rarity[place] * self.vectors.rows[place]
        sketch: Matrix = _clean(_unit(total), self.mean, self.shared)[0]
        return sketch


def sketch_chunks(postings: Postings, vectors: WordVectors) -> ChunkSketches:
    """Return sketches of all chunks: one second per million different words of chunks."""
    count, width = len(postings), vectors.rows.shape[1]
    found = [_find(vectors.hashes, part.terms) for part in postings.parts]
    uses = numpy.zeros(len(vectors.hashes), numpy.int64)
    for part, places in zip(postings.parts, found, strict=True):
        known = places >= 0
        numpy.add.at(uses, places[known], numpy.diff(part.bounds)[known])
    rarity = numpy.log1p(count / (uses + 1)).astype(numpy.float32)
    sums = numpy.zeros((count, width), numpy.float32)
    for part, places in zip(postings.parts, found, strict=True):
        terms = numpy.repeat(places, numpy.diff(part.bounds))
        known_terms = numpy.flatnonzero(terms >= 0)
        order = known_terms[numpy.argsort(part.chunks[known_terms], kind="stable")]
        _add_terms(sums, part.chunks[order], terms[order], part.counts[order], vectors, rarity)
    rows = _unit(sums)
    mean: Matrix = (
        rows.mean(axis=0, keepdims=True) if count else numpy.zeros((1, width), numpy.float32)
    )
    centred = rows - mean
    _, directions = numpy.linalg.eigh(centred.T @ centred)
    shared: Matrix = directions[:, -SHARED_DIRECTIONS:].astype(numpy.float32)
    return ChunkSketches(
        rows=_clean(rows, mean, shared), vectors=vectors, rarity=rarity, mean=mean, shared=shared
    )


class CandidateOrder:
    """The order in which to embed chunks for a question, the most promising first. `lexical` has a
    row for each part of the question, `sketches` are those of the chunks, `documents` the numbers
    of their documents."""

    def __init__(
        self, parts: "tuple[str, ...]", lexical: Matrix, sketches: ChunkSketches, documents: Indices
    ) -> None:
        self._sketches = sketches.rows
        self._documents = documents
        self._words = _best_of_parts(lexical)
        guesses = [sketches.rows @ sketches.of_text(part) for part in parts]
        self._rough = _best_of_parts(numpy.array(guesses, numpy.float32))
        self.fits = WORDS_FIRST * self._words + (1 - WORDS_FIRST) * self._rough

    def learn(self, rows: Indices, cosine: Matrix) -> NDArray[numpy.float32]:
        """Update the guess with the cosines of some chunks to each part, the whole question first.
        Return how well these chunks match."""
        fits: NDArray[numpy.float32] = (
            WHOLE * cosine[0] + PART * cosine.max(axis=0) + WORDS * self._words[rows]
        ).astype(numpy.float32)
        if not len(rows):
            return fits
        features = numpy.stack((self._words, self._rough, numpy.ones_like(self._words)), axis=1)
        own = features[rows]
        shares = numpy.linalg.solve(own.T @ own + 0.1 * numpy.eye(3), own.T @ fits)
        plain = (features @ shares).astype(numpy.float32)
        known, documents = self._sketches[rows], self._documents[rows]
        likeness = known @ known.T + SAME_DOCUMENT * (documents[:, None] == documents)
        likeness[numpy.diag_indices(len(rows))] += NOISE
        weights = numpy.linalg.solve(likeness, fits - plain[rows])
        by_document = numpy.bincount(documents, weights, int(self._documents.max()) + 1)
        lift = self._sketches @ (known.T @ weights).astype(numpy.float32)
        self.fits = plain + lift + SAME_DOCUMENT * by_document[self._documents]
        return fits

    def best(self, rows: Indices, most: int) -> Indices:
        """Return the most promising of these chunks."""
        fits = self.fits[rows]
        if most < len(rows):
            near = numpy.argpartition(-fits, most)[:most]
            rows, fits = rows[near], fits[near]
        order: Indices = rows[numpy.argsort(-fits, kind="stable")]
        return order


def _add_terms(
    sums: Matrix,
    chunks: NDArray[numpy.int32],
    terms: Indices,
    counts: NDArray[numpy.uint8],
    vectors: WordVectors,
    rarity: NDArray[numpy.float32],
) -> None:
    """Add the vectors of terms to their chunks, which are in order."""
    weights = rarity[terms] * numpy.sqrt(counts.astype(numpy.float32))
    for first in range(0, len(sums), _BLOCK):
        some = slice(*numpy.searchsorted(chunks, (first, first + _BLOCK)).tolist())
        begins = numpy.flatnonzero(numpy.diff(chunks[some], prepend=-1))
        if len(begins):
            rows = vectors.rows[terms[some]] * weights[some, None]
            sums[chunks[some][begins]] += numpy.add.reduceat(rows, begins, axis=0)


def _find(hashes: NDArray[numpy.uint32], wanted: NDArray[numpy.uint32]) -> Indices:
    """Return the places of hashes; -1 for those that are missing."""
    if not len(hashes):
        return numpy.full(len(wanted), -1)
    places = numpy.minimum(numpy.searchsorted(hashes, wanted), len(hashes) - 1)
    found: Indices = numpy.where(hashes[places] == wanted, places, -1)
    return found


def _best_of_parts(rows: Matrix) -> NDArray[numpy.float32]:
    """Return each chunk's best value among the parts, each of which has 1 for its best chunk."""
    most = numpy.maximum(rows.max(axis=1, keepdims=True, initial=0.0), _TINY)
    best: NDArray[numpy.float32] = (rows / most).max(axis=0)
    return best


def _unit(rows: Matrix) -> Matrix:
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = rows / numpy.maximum(lengths, _TINY)
    return unit


def _clean(rows: Matrix, mean: Matrix, shared: Matrix) -> Matrix:
    """Return rows without their common component."""
    own: Matrix = (rows - mean).astype(numpy.float32)
    common: Matrix = ((own @ shared) @ shared.T).astype(numpy.float32)
    return _unit(own - common)
