"""In which order items fit a question.

Laws: the order depends on the scores alone, and equals keep the order they came in. The score that
is shown is a cosine, the best of any chunk to any part; the order may know more. An item without a
vector is ranked by its words, and has no score.
"""

from collections.abc import Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.selection.scoring import Matrix, Scores
from lamina.values.item import ItemId, key_of, kind_of
from lamina.values.selection import Document, Query, QueryPart, SearchSettings, Selected

# Shares of what makes a chunk fit: likeness to the whole question, likeness to that part of it
# that it is most like, words shared with the whole question. What `bench/selection.py`
# shows is a wide plateau.
WHOLE, PART, WORDS = 0.7, 0.7, 0.3
# Tools of one server are made to work together: what fits best of a server lifts the others.
COMPANY = 0.3
# Scores are compared as they are shown: 0.7 in 32 bits would be a little less than 0.7.
DIGITS = 6

Vector = NDArray[numpy.float64]
Places = NDArray[numpy.int64]


class Fits(Struct, frozen=True, kw_only=True):
    """How well documents fit. By chunk: `owner`, the place of its document, and `fit`. By document:
    `best`, the place of its best chunk (-1 if it has none); its `score`, NaN if it has no vector;
    `shares`, whether it has any word of the question."""

    owner: Places
    fit: Vector
    best: Places
    score: Vector
    shares: NDArray[numpy.bool_]

    @property
    def order(self) -> list[int]:
        """Documents, the one that fits best first, without those of which nothing is known."""
        fits = numpy.where(self.best < 0, -numpy.inf, self.fit[self.best])
        known = (self.best >= 0) & (self.shares | ~numpy.isnan(self.score))
        return [int(place) for place in numpy.argsort(-fits, kind="stable") if known[place]]


def rank(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    settings: SearchSettings | None = None,
) -> tuple[Selected, ...]:
    """Every document that has anything to do with the question, the one that fits best first; with
    `settings`, only those above their floor."""
    if not query.parts or not documents:
        return ()
    fits = measure_fits(documents, scores, query)
    chunks = [chunk for document in documents for chunk in document.chunks]
    floor = -2.0 if settings is None else settings.floor
    return tuple(
        describe(documents[place].id, fits, place, chunks)
        for place in fits.order
        if is_above(fits, place, floor)
    )


def describe(item: ItemId, fits: Fits, place: int, chunks: Sequence[str]) -> Selected:
    chunk = chunks[int(fits.best[place])]
    if numpy.isnan(fits.score[place]):
        return Selected(item=item, origin="lexical", chunk=chunk)
    return Selected(item=item, score=float(fits.score[place]), chunk=chunk)


def is_above(fits: Fits, place: int, floor: float) -> bool:
    """Whether a document may be chosen: by its score, or without one by a word it shares."""
    score = fits.score[place]
    return bool(fits.shares[place]) if numpy.isnan(score) else bool(score > floor)


def measure_fits(documents: Sequence[Document], scores: Scores, query: Query) -> Fits:
    """How well the documents fit the query, whose parts are the rows of the scores."""
    sizes = numpy.array([len(document.chunks) for document in documents], numpy.int64)
    owner = numpy.repeat(numpy.arange(len(documents)), sizes)
    words = _words(scores.lexical, query.parts)
    whole, part = _likenesses(scores.cosine, query.parts, words)
    fit = WHOLE * whole + PART * part + WORDS * words
    fit = fit + COMPANY * _of_company(documents, owner, fit)
    return Fits(
        owner=owner,
        fit=fit,
        best=_best_places(owner, fit, len(documents)),
        score=_best_of(owner, _shown(scores.cosine, query.parts, len(owner)), len(documents)),
        shares=_best_of(owner, words, len(documents)) > 0,
    )


def fit_part(scores: Scores, row: int) -> Vector:
    """How well each chunk fits one part of a query."""
    words: Vector = _normal(scores.lexical[row : row + 1].astype(numpy.float64))[0]
    if scores.cosine is None or bool(numpy.isnan(scores.cosine[row]).all()):
        return words
    cosine = _filled(scores.cosine[row].astype(numpy.float64), words)
    fit: Vector = WHOLE * cosine + WORDS * words
    return fit


def _words(lexical: Matrix, parts: Sequence[QueryPart]) -> Vector:
    """Words shared with the question, or less so with recent turns; the most of each row is 1."""
    rows = _main_rows(parts)
    normal = _normal(lexical[rows].astype(numpy.float64))
    weighed = normal * numpy.array([[parts[row].weight] for row in rows])
    best: Vector = weighed.max(axis=0, initial=0.0)
    return best


def _likenesses(
    cosine: Matrix | None, parts: Sequence[QueryPart], words: Vector
) -> tuple[Vector, Vector]:
    """Likeness to the whole and to the best part. Where there is no vector, words stand in."""
    if cosine is None:
        return words, words
    weighed = cosine.astype(numpy.float64) * numpy.array([[part.weight] for part in parts])
    whole = _filled(_known_max(weighed[_main_rows(parts)]), words)
    return whole, _filled(_known_max(weighed), words)


def _main_rows(parts: Sequence[QueryPart]) -> list[int]:
    """The whole question and recent turns; of a query without a whole, all parts."""
    rows = [row for row, part in enumerate(parts) if part.whole or part.recent]
    has_whole = any(part.whole for part in parts)
    return rows if has_whole else list(range(len(parts)))


def _normal(rows: Vector) -> Vector:
    most = rows.max(axis=1, keepdims=True, initial=0.0)
    normal: Vector = rows / numpy.where(most > 0, most, 1.0)
    return normal


def _known_max(rows: Vector) -> Vector:
    """The most of each column; NaN if nothing in it is known."""
    most = numpy.where(numpy.isnan(rows), -numpy.inf, rows).max(axis=0, initial=-numpy.inf)
    return numpy.where(numpy.isinf(most), numpy.nan, most)


def _filled(cosine: Vector, words: Vector) -> Vector:
    """Where a cosine is not known, the chunk with the best words stands with the best cosine."""
    unknown = numpy.isnan(cosine)
    if not unknown.any():
        return cosine
    most = 1.0 if unknown.all() else max(0.0, float(cosine[~unknown].max()))
    return numpy.where(unknown, words * most, cosine)


def _shown(cosine: Matrix | None, parts: Sequence[QueryPart], chunks: int) -> Vector:
    if cosine is None:
        return numpy.full(chunks, numpy.nan)
    weights = numpy.array([[part.weight] for part in parts])
    return numpy.round(_known_max(cosine.astype(numpy.float64) * weights), DIGITS)


def _best_of(owner: Places, values: Vector, documents: int) -> Vector:
    """The best value of each document; NaN where none is known."""
    best = numpy.full(documents, -numpy.inf)
    numpy.maximum.at(best, owner, numpy.where(numpy.isnan(values), -numpy.inf, values))
    return numpy.where(numpy.isinf(best), numpy.nan, best)


def _best_places(owner: Places, fit: Vector, documents: int) -> Places:
    order = numpy.argsort(-fit, kind="stable")
    owners, first = numpy.unique(owner[order], return_index=True)
    places = numpy.full(documents, -1, numpy.int64)
    places[owners] = order[first]
    return places


def _of_company(documents: Sequence[Document], owner: Places, fit: Vector) -> Vector:
    """The best fit among the tools of the same server; anything else is its own company."""
    best = _best_of(owner, fit, len(documents))
    companies: dict[str, float] = {}
    names = [_company(document.id) for document in documents]
    for name, value in zip(names, best, strict=True):
        if name and not numpy.isnan(value):
            companies[name] = max(companies.get(name, value), value)
    has_company = numpy.array([bool(name) for name in names], numpy.bool_)
    company = numpy.array([companies.get(name, 0.0) for name in names], numpy.float64)
    return numpy.where(has_company[owner], company[owner], fit)


def _company(item: ItemId) -> str:
    return key_of(item).partition("/")[0] if kind_of(item) == "tool" else ""
