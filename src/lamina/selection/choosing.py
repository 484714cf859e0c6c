"""Which items a question brings along.

Laws: of the chunks that are looked at, every item at or above `include_score` is taken, however
many there are; others fill up to `top_n` in the order they fit; at or below the floor none is.
Every part of a question that claims an item gets the one that fits it best, if that is above the
floor: in the place of one that nobody claims, or beside the others if there is no such place.
"""

from collections.abc import Sequence

import numpy

from lamina.selection.asking import read_query as read_query
from lamina.selection.ranking import (
    Fits,
    Places,
    describe,
    fit_part,
    is_above,
    measure_fits,
)
from lamina.selection.scoring import Scores
from lamina.values.selection import Document, Query, SearchSettings, Selected


def select(
    documents: Sequence[Document], scores: Scores, query: Query, settings: SearchSettings
) -> tuple[Selected, ...]:
    """The items to take, the best score first; those without a score follow as they fit."""
    if not settings.search or not query.parts or not any(each.chunks for each in documents):
        return ()
    fits = measure_fits(documents, scores, query)
    looked_at = _look_at(fits, settings)
    sure = [place for place in looked_at if fits.score[place] >= settings.include_score]
    others = [place for place in looked_at if not fits.score[place] >= settings.include_score]
    taken = sure + others[: max(0, settings.top_n - len(sure))]
    if settings.top_n and settings.top_k:
        claimed = _claim(fits, scores, query, settings.floor)
        taken = _make_room(taken, sure, claimed, settings.top_n)
    rank = {place: number for number, place in enumerate(fits.order)}
    unscored = {place for place in taken if numpy.isnan(fits.score[place])}
    taken.sort(key=lambda p: (p in unscored, rank[p] if p in unscored else -fits.score[p], p))
    chunks = [chunk for document in documents for chunk in document.chunks]
    return tuple(describe(documents[place].id, fits, place, chunks) for place in taken)


def _look_at(fits: Fits, settings: SearchSettings) -> list[int]:
    """The documents of the `top_k` chunks that fit best, in order. What is sure to be taken comes
    first: words must not push it out of sight."""
    with_sure_first = numpy.lexsort(
        (-fits.fit, ~(fits.score >= settings.include_score)[fits.owner])
    )
    seen = with_sure_first[: settings.top_k]
    places = {int(fits.owner[chunk]) for chunk in seen}
    return [
        place for place in fits.order if place in places and is_above(fits, place, settings.floor)
    ]


def _claim(fits: Fits, scores: Scores, query: Query, floor: float) -> list[int]:
    """For each part that claims one, the document that fits it best."""
    claimed: dict[int, None] = {}
    for row, part in enumerate(query.parts):
        if part.claims and not part.recent:
            place = _best_for(row, fits.owner, scores, floor)
            if place is not None and is_above(fits, place, floor):
                claimed[place] = None
    return list(claimed)


def _best_for(row: int, owner: Places, scores: Scores, floor: float) -> int | None:
    fit = fit_part(scores, row)
    known = scores.lexical[row] > 0
    if scores.cosine is not None:
        cosine = numpy.round(scores.cosine[row].astype(numpy.float64), 6)
        known = numpy.where(numpy.isnan(cosine), known, cosine > floor)
    if not known.any():
        return None
    return int(owner[int(numpy.argmax(numpy.where(known, fit, -numpy.inf)))])


def _make_room(
    taken: Sequence[int], sure: Sequence[int], claimed: Sequence[int], top_n: int
) -> list[int]:
    """`taken` with all that is claimed in it; what gives way is what fits least."""
    result = list(taken)
    stays = {*sure, *claimed}
    for place in claimed:
        if place in result:
            continue
        if len(result) >= top_n:
            loose = next((each for each in reversed(result) if each not in stays), None)
            if loose is not None:
                result.remove(loose)
        result.append(place)
    return result
