"""Chooses the passages that answer a question.

Laws: passages are ordered best first, ties in the order of their documents; no document supplies
more than its share. At or below the floor none is chosen, and without a vector only those that
share a word. Passages that may not be chosen do not affect those that may.
"""

from collections.abc import Iterator, Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.selection.scores import Indices, Scores, Vector, lay_out_chunks, measure_chunks
from lamina.core.values.selection import Document, Query

# The documents that may be chosen, by their place.
AllowedDocuments = NDArray[numpy.bool_]

# The multiple of the wanted number considered first: some documents supply more than their share.
_AHEAD = 4


class ChosenPassage(Struct, frozen=True, kw_only=True):
    """A chosen passage: the place of its `document` among the documents, its own `place` in that
    document, its match, and its cosine; None if it was found by its words."""

    document: int
    place: int
    fit: float
    score: float | None = None


def choose_passages(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    *,
    top: int,
    per_document: int,
    floor: float,
    allowed: AllowedDocuments | None = None,
) -> tuple[ChosenPassage, ...]:
    """Return up to `top` passages, best first, and at most `per_document` of one document. With
    `allowed`, only documents for which it is true are considered."""
    if not query.parts or top <= 0 or per_document <= 0:
        return ()
    layout = scores.layout or lay_out_chunks(documents)
    owner, columns = layout.owner, None
    if allowed is not None:
        if len(allowed) != len(documents):
            raise ValueError(f"{len(allowed)} marks for {len(documents)} documents")
        columns = numpy.flatnonzero(allowed[owner])
        owner, scores = owner[columns], _narrow(scores, columns)
    fits = measure_chunks(scores, query, layout.company[owner])
    without_score = numpy.isnan(fits.score)
    above = numpy.flatnonzero(numpy.where(without_score, fits.words > 0, fits.score > floor))
    return tuple(
        ChosenPassage(
            document=int(owner[at]),
            place=int((at if columns is None else columns[at]) - layout.starts[owner[at]]),
            fit=float(fits.fit[at]),
            score=None if without_score[at] else float(fits.score[at]),
        )
        for at in _take(above, fits.fit, owner, top, per_document)
    )


def _narrow(scores: Scores, columns: Indices) -> Scores:
    """Return the scores of some chunks."""
    cosine = scores.cosine if scores.cosine is None else scores.cosine[:, columns]
    return Scores(lexical=scores.lexical[:, columns], cosine=cosine, fluency=scores.fluency)


def _take(columns: Indices, fit: Vector, owner: Indices, top: int, per_document: int) -> list[int]:
    places: list[int] = []
    counts: dict[int, int] = {}
    for place in _in_order(columns, fit, top):
        document = int(owner[place])
        if counts.get(document, 0) < per_document:
            counts[document] = counts.get(document, 0) + 1
            places.append(place)
            if len(places) == top:
                break
    return places


def _in_order(columns: Indices, fit: Vector, top: int) -> Iterator[int]:
    """Yield columns, best first. Sorting all would take most of a search's time, and few are ever
    needed: ever larger shares are sorted, on demand."""
    count, most = 0, top * _AHEAD
    while count < len(columns):
        near = columns
        if most < len(columns):
            # Ties with the last one stay in: they have an order of their own.
            last = numpy.partition(fit[columns], -most)[-most]
            near = columns[fit[columns] >= last]
        order: list[int] = near[numpy.argsort(-fit[near], kind="stable")].tolist()
        yield from order[count:]
        count, most = len(order), most * _AHEAD
