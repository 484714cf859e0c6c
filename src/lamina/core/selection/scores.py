"""Scores how well chunks and documents match a question, and orders them.

Laws: the order depends on the scores alone, and ties keep the order they came in. The displayed
score is a cosine, the best of any chunk to any part; the order may use more. An item without a
vector is ranked by its words, and has no score.
"""

from collections.abc import Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.values.item import key_of, kind_of
from lamina.core.values.selection import Document, Query, QueryPart, SearchSettings, SelectedItem

Matrix = NDArray[numpy.float32]
Vector = NDArray[numpy.float64]
Indices = NDArray[numpy.int64]

# Weights in a chunk's match: similarity to the whole question, similarity to the closest part of
# it, words shared with the whole question. `bench/selection.py` shows a wide plateau.
WHOLE, PART, WORDS = 0.7, 0.7, 0.3
# How many letters one token of the encoder covers if the encoder knows the language (FLUENT and
# more), if it half knows it, down to HALTING, and if it cannot read it at all (below UNREAD). The
# less it knows, the more words count: see `bench/languages.py`.
FLUENT, HALTING, UNREAD = 2.9, 2.0, 1.7
WORDS_HALTING = 1.0
# Tools of one server are made to work together: a server's best match lifts the others.
COMPANY = 0.3
# From this similarity to anything on, a question stands alone.
SPEAKS = 0.35
# Scores are compared as displayed: 0.7 in 32 bits would be slightly less than 0.7.
DIGITS = 6


class ChunkLayout(Struct, frozen=True, kw_only=True):
    """The places of documents among the columns of scores. By document: `starts`, the column of its
    first chunk; `company`, a number shared by the tools of one server (-1 for anything else). By
    chunk: `owner`, the place of its document. `filled` are the documents that have chunks."""

    starts: Indices
    owner: Indices
    filled: Indices
    company: Indices


class Scores(Struct, frozen=True, kw_only=True):
    """A row per part of a query, a column per chunk: chunks of all documents of a corpus, in order.
    `cosine` is None without vectors; NaN for a chunk without one. Frequent callers pass the
    `layout` of the documents, which takes longer to compute than the comparison. `fluency` is how
    well the encoder knows the language of each part, None if unknown."""

    lexical: Matrix
    cosine: Matrix | None = None
    layout: ChunkLayout | None = None
    fluency: Vector | None = None


def lay_out_chunks(documents: Sequence[Document]) -> ChunkLayout:
    """Return the layout of the documents' chunks."""
    sizes = numpy.array(
        [len(document.chunks) or len(document.digests) for document in documents], numpy.int64
    )
    company = numpy.full(len(documents), -1)
    numbers: dict[str, int] = {}
    for place, document in enumerate(documents):
        if kind_of(document.id) == "tool":
            name = key_of(document.id).partition("/")[0]
            # A tool without a server's name has no company.
            company[place] = numbers.setdefault(name, len(numbers)) if name else -1
    return ChunkLayout(
        starts=numpy.cumsum(sizes) - sizes,
        owner=numpy.repeat(numpy.arange(len(documents)), sizes),
        filled=numpy.flatnonzero(sizes),
        company=company,
    )


def best_of(layout: ChunkLayout, values: Vector) -> Vector:
    """Return the best value of each document's chunks; NaN where none is known."""
    best = numpy.full(len(layout.starts), numpy.nan)
    if len(layout.filled):
        best[layout.filled] = numpy.fmax.reduceat(values, layout.starts[layout.filled])
    return best


class ChunkFits(Struct, frozen=True, kw_only=True):
    """How well chunks match, a number for each: `score` is the cosine, NaN without a vector;
    `words` is the share of words in common with the question, from 0 for none to 1 for the chunk
    with the most."""

    fit: Vector
    score: Vector
    words: Vector


class DocumentFits(Struct, frozen=True, kw_only=True):
    """How well documents match. By chunk: `chunk_fit`. By document: `best`, the column of its best
    chunk (-1 if it has none), and its `fit`; its `score`, NaN without a vector; `shares`, whether
    it contains any word of the question."""

    layout: ChunkLayout
    chunk_fit: Vector
    best: Indices
    fit: Vector
    score: Vector
    shares: NDArray[numpy.bool_]

    def above(self, floor: float) -> NDArray[numpy.bool_]:
        """Return which documents may be chosen: by their score or, without one, by a shared
        word."""
        is_above: NDArray[numpy.bool_] = self.score > floor
        return (self.best >= 0) & (is_above | (numpy.isnan(self.score) & self.shares))

    def in_order(self, places: Indices, most: int | None = None) -> list[int]:
        """Return documents, best first; at most `most` of them."""
        fit = self.fit[places]
        if most is not None and 0 < most < len(places):
            # Sorting all would take most of a search's time; ties with the last one stay in.
            near = fit >= numpy.partition(fit, -most)[-most]
            places, fit = places[near], fit[near]
        order: list[int] = places[numpy.argsort(-fit, kind="stable")].tolist()
        return order if most is None else order[:most]


def rank_documents(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    settings: SearchSettings | None = None,
    *,
    most: int | None = None,
    fits: DocumentFits | None = None,
) -> tuple[SelectedItem, ...]:
    """Return every document related to the question, best first; with `settings`, only those above
    their floor; at most `most`. Pass `fits` if the measurements already exist."""
    if not query.parts or not documents:
        return ()
    fits = fits or measure_fits(documents, scores, query)
    above = fits.above(-2.0 if settings is None else settings.floor)
    places = fits.in_order(numpy.flatnonzero(above), most)
    return tuple(selected_item(documents[place], fits, place) for place in places)


def selected_item(document: Document, fits: DocumentFits, place: int) -> SelectedItem:
    which = int(fits.best[place] - fits.layout.starts[place])
    chunk = document.chunk(which)
    if numpy.isnan(fits.score[place]):
        return SelectedItem(item=document.id, origin="lexical", chunk=chunk, place=which)
    return SelectedItem(item=document.id, score=float(fits.score[place]), chunk=chunk, place=which)


def measure_fits(documents: Sequence[Document], scores: Scores, query: Query) -> DocumentFits:
    """Return how well the documents match the query, whose parts are the rows of the scores."""
    layout = scores.layout or lay_out_chunks(documents)
    chunks = measure_chunks(scores, query, layout.company[layout.owner])
    best_fit = best_of(layout, chunks.fit)
    return DocumentFits(
        layout=layout,
        chunk_fit=chunks.fit,
        best=_best_places(layout, chunks.fit, best_fit),
        fit=best_fit,
        score=best_of(layout, chunks.score),
        shares=best_of(layout, chunks.words) > 0,
    )


def measure_chunks(scores: Scores, query: Query, company: Indices) -> ChunkFits:
    """Return how well chunks match the query, each independently except for its `company`: a number
    shared by chunks of one server's tools, -1 for anything else."""
    share = weigh_words(question_fluency(scores, query.parts))
    lexical, cosine, parts = counting_rows(scores, query.parts)
    words = _words(lexical, parts)
    whole, part = _likenesses(cosine, parts, words)
    alone = WHOLE * whole + PART * part + share * words
    return ChunkFits(
        fit=alone + COMPANY * _company_fit(company, alone),
        score=_shown_scores(cosine, parts, len(company)),
        words=words,
    )


def weigh_words(fluency: float) -> float:
    """Return the weight of words: the less an encoder knows a language, the more they count."""
    return WORDS + unknown_share(fluency) * (WORDS_HALTING - WORDS)


def unknown_share(fluency: float) -> float:
    """Return the share of a language that an encoder does not know, from 0 to 1."""
    return (FLUENT - max(HALTING, min(FLUENT, fluency))) / (FLUENT - HALTING)


def is_foreign(text: str, fluency: float) -> bool:
    """Return whether a text is in a script that an encoder cannot read, so that its vector is
    meaningless. A text in Latin letters is not, however little of it the encoder knows: `zfs` is an
    abbreviation."""
    letters = [letter for letter in text if letter.isalpha()]
    latin_count = sum(_is_latin(letter) for letter in letters)
    return fluency < UNREAD and 2 * latin_count < len(letters)


def _is_latin(letter: str) -> bool:
    return letter < "\u0250" or "\u1e00" <= letter < "\u1f00"


def question_fluency(scores: Scores, parts: Sequence[QueryPart]) -> float:
    """Return how well the encoder knows the language of the question."""
    if scores.fluency is None:
        return FLUENT
    rows = [row for row, part in enumerate(parts) if part.whole] or list(range(len(parts)))
    return float(scores.fluency[rows].min())


def counting_rows(
    scores: Scores, parts: Sequence[QueryPart]
) -> tuple[Matrix, Matrix | None, Sequence[QueryPart]]:
    """Return the rows that count: recent turns only do if the question itself finds nothing."""
    own = [row for row, part in enumerate(parts) if not part.recent]
    lexical, cosine = scores.lexical, scores.cosine
    if len(own) == len(parts):
        return lexical, cosine, parts
    if cosine is None:
        speaks = bool((lexical[own] > 0).any())
    else:
        speaks = bool((numpy.nan_to_num(cosine[own], nan=-1.0) >= SPEAKS).any())
    if not speaks:
        return lexical, cosine, parts
    own_cosine = cosine if cosine is None else cosine[own]
    return lexical[own], own_cosine, [parts[row] for row in own]


def fit_part(scores: Scores, row: int) -> Vector:
    """Return how well each chunk matches one part of a query."""
    words: Vector = _normal(scores.lexical[row : row + 1].astype(numpy.float64))[0]
    if scores.cosine is None or bool(numpy.isnan(scores.cosine[row]).all()):
        return words
    cosine = _fill_missing(scores.cosine[row].astype(numpy.float64), words)
    fluency = FLUENT if scores.fluency is None else float(scores.fluency[row])
    fit: Vector = WHOLE * cosine + weigh_words(fluency) * words
    return fit


def _words(lexical: Matrix, parts: Sequence[QueryPart]) -> Vector:
    """Return words shared with the question or, weighted less, with recent turns; the maximum of
    each row is 1."""
    rows = _main_rows(parts)
    normal = _normal(lexical[rows].astype(numpy.float64))
    weighted_rows = normal * numpy.array([[parts[row].weight] for row in rows])
    best: Vector = weighted_rows.max(axis=0, initial=0.0)
    return best


def _likenesses(
    cosine: Matrix | None, parts: Sequence[QueryPart], words: Vector
) -> tuple[Vector, Vector]:
    """Return the similarity to the whole and to the best part. Without a vector, words are used
    instead."""
    if cosine is None:
        return words, words
    weighted_rows = cosine.astype(numpy.float64) * numpy.array([[part.weight] for part in parts])
    whole = _fill_missing(_column_max(weighted_rows[_main_rows(parts)]), words)
    return whole, _fill_missing(_column_max(weighted_rows), words)


def _main_rows(parts: Sequence[QueryPart]) -> list[int]:
    """Return the rows of the whole question and recent turns; all rows for a query without a
    whole."""
    rows = [row for row, part in enumerate(parts) if part.whole or part.recent]
    has_whole = any(part.whole for part in parts)
    return rows if has_whole else list(range(len(parts)))


def _normal(rows: Vector) -> Vector:
    most = rows.max(axis=1, keepdims=True, initial=0.0)
    normal: Vector = rows / numpy.where(most > 0, most, 1.0)
    return normal


def _column_max(rows: Vector) -> Vector:
    """Return the maximum of each column; NaN if nothing in it is known."""
    most = numpy.where(numpy.isnan(rows), -numpy.inf, rows).max(axis=0, initial=-numpy.inf)
    return numpy.where(numpy.isinf(most), numpy.nan, most)


def _fill_missing(cosine: Vector, words: Vector) -> Vector:
    """Fill unknown cosines: the chunk with the best words gets the best cosine."""
    is_missing = numpy.isnan(cosine)
    if not is_missing.any():
        return cosine
    most = 1.0 if is_missing.all() else max(0.0, float(cosine[~is_missing].max()))
    return numpy.where(is_missing, words * most, cosine)


def _shown_scores(cosine: Matrix | None, parts: Sequence[QueryPart], chunks: int) -> Vector:
    if cosine is None:
        return numpy.full(chunks, numpy.nan)
    weights = numpy.array([[part.weight] for part in parts])
    return numpy.round(_column_max(cosine.astype(numpy.float64) * weights), DIGITS)


def _best_places(layout: ChunkLayout, fit: Vector, best_fit: Vector) -> Indices:
    """Return the column of the first of each document's best chunks."""
    places = numpy.full(len(best_fit), -1, numpy.int64)
    best = numpy.flatnonzero(fit == best_fit[layout.owner])
    # With several, the last one written stays: the first.
    places[layout.owner[best[::-1]]] = best[::-1]
    return places


def _company_fit(company: Indices, fit: Vector) -> Vector:
    """Return the best match among the tools of the same server; anything else only has its own
    match."""
    belongs = company >= 0
    if not belongs.any():
        return fit
    best = numpy.full(int(company.max()) + 1, -numpy.inf)
    numpy.maximum.at(best, company[belongs], fit[belongs])
    return numpy.where(belongs, best[company], fit)
