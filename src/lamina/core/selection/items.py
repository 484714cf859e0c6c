"""Which items a question brings along.

Laws: every item at or above `include_score` is taken, however many there are and however many
chunks others have; those of the `top_k` chunks that fit best fill up to `top_n`, in the order they
fit; at or below the floor none is taken.
Every part of a question that claims an item gets the one that fits it best, if that is above the
floor: in the place of one that nobody claims, or beside the others if there is no such place.
Unless something is sure, there has to be evidence that the question found anything: without it,
nothing is taken.
"""

from collections.abc import Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.selection.gate import weigh_best
from lamina.core.selection.scores import (
    DIGITS,
    DocumentFits,
    Indices,
    Scores,
    fit_part,
    measure_fits,
    selected_item,
)
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, Evidence, Query, SearchSettings, SelectedItem


class ItemChoice(Struct, frozen=True, kw_only=True):
    """The items to take; if none is taken for want of evidence, how much there was, and for what
    most."""

    items: tuple[SelectedItem, ...] = ()
    lacking: Evidence | None = None
    best: ItemId | None = None


def choose_items(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    settings: SearchSettings,
    *,
    fits: DocumentFits | None = None,
) -> tuple[SelectedItem, ...]:
    """The items to take, the best score first; those without a score follow as they fit. `fits` are
    the measured ones, for those who have them already."""
    return judge_items(documents, scores, query, settings, fits=fits).items


def judge_items(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    settings: SearchSettings,
    *,
    fits: DocumentFits | None = None,
) -> ItemChoice:
    """The same for those who want to know why there is none."""
    if not settings.search or not query.parts or not any(document.size for document in documents):
        return ItemChoice()
    fits = fits or measure_fits(documents, scores, query)
    above = fits.above(settings.floor)
    is_sure = above & (fits.score >= settings.include_score)
    sure = fits.in_order(numpy.flatnonzero(is_sure))
    others = fits.in_order(_owners_of_best(fits, settings.top_k, above & ~is_sure))
    places = sure + others[: max(0, settings.top_n - len(sure))]
    if settings.top_n and settings.top_k:
        claims = _claim(fits, scores, query, settings.floor)
        places = _make_room(places, sure, claims, settings.top_n)
    if places and not sure and settings.is_gated:
        evidence, best = weigh_best(documents, places, fits, scores, query)
        if not evidence.suffices:
            return ItemChoice(lacking=evidence, best=documents[best].id)
    no_score = {place for place in places if numpy.isnan(fits.score[place])}
    places.sort(key=lambda p: (p in no_score, -(fits.fit if p in no_score else fits.score)[p], p))
    return ItemChoice(items=tuple(selected_item(documents[p], fits, p) for p in places))


def _owners_of_best(fits: DocumentFits, top_k: int, allowed: NDArray[numpy.bool_]) -> Indices:
    """The allowed ones among the documents of the `top_k` chunks that fit best."""
    fit = fits.chunk_fit
    near = numpy.arange(len(fit))
    if 0 < top_k < len(near):
        # Sorting all would take most of the time of a search; equals of the last one stay in.
        near = numpy.flatnonzero(fit >= numpy.partition(fit, -top_k)[-top_k])
    columns = near[numpy.argsort(-fit[near], kind="stable")][:top_k]
    places: Indices = numpy.unique(fits.layout.owner[columns])
    return places[allowed[places]]


def _claim(fits: DocumentFits, scores: Scores, query: Query, floor: float) -> list[int]:
    """For each part that claims one, the document that fits it best."""
    rows = [row for row, part in enumerate(query.parts) if part.claims and not part.recent]
    best = (_best_for(row, fits.layout.owner, scores, floor) for row in rows)
    return list(dict.fromkeys(place for place in best if place is not None))


def _best_for(row: int, owner: Indices, scores: Scores, floor: float) -> int | None:
    mask = scores.lexical[row] > 0
    if scores.cosine is not None:
        cosine = numpy.round(scores.cosine[row].astype(numpy.float64), DIGITS)
        mask = numpy.where(numpy.isnan(cosine), mask, cosine > floor)
    if not mask.any():
        return None
    return int(owner[int(numpy.argmax(numpy.where(mask, fit_part(scores, row), -numpy.inf)))])


def _make_room(
    places: Sequence[int], sure: Sequence[int], claims: Sequence[int], top_n: int
) -> list[int]:
    """`places` with all claims in it; what fits least gives way."""
    result = list(places)
    stays = {*sure, *claims}
    for place in claims:
        if place in result:
            continue
        if len(result) >= top_n:
            loose = next((other for other in reversed(result) if other not in stays), None)
            if loose is not None:
                result.remove(loose)
        result.append(place)
    return result
