"""Chooses the items to include with a question, and decides whether anything was found at all.

Laws: every item at or above `include_score` is chosen, however many there are and however many
chunks others have; items of the `top_k` best chunks fill up to `top_n`, best first; at or below the
floor none is chosen. Every part of a question that claims an item gets its best match, if that is
above the floor: in place of an unclaimed item, or in addition to the others if there is no such
place.

Some candidate is the best for every question, small talk included. So unless a match is certain,
nothing is chosen without evidence: the similarity of a candidate and the question, and the words
they share. More of either never closes this gate, nor do further candidates that match worse; their
order makes no difference.
"""

from collections.abc import Iterator, Sequence
from math import log, log1p

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.selection.scores import (
    DIGITS,
    DocumentFits,
    Indices,
    Matrix,
    Scores,
    counting_rows,
    fit_part,
    measure_fits,
    question_fluency,
    selected_item,
    unknown_share,
)
from lamina.core.selection.terms import find_terms
from lamina.core.values.item import ItemId
from lamina.core.values.selection import (
    Document,
    Evidence,
    Query,
    QueryPart,
    SearchSettings,
    SelectedItem,
)

# A small model, fitted by `bench/gate.py`: the worth of shared words in similarity, each less than
# the one before, and the amount of evidence needed.
WORD = 0.15
NEEDED = 0.3
# If an encoder cannot read a language, one word has to be enough.
WORD_UNREAD = NEEDED / log(2)

# Words used in any conversation: sharing one is not evidence.
EVERYDAY = frozenset(
    find_terms(
        """
        hello hi hey bye goodbye welcome morning afternoon evening night tonight today tomorrow
        yesterday thanks thank sorry okay ok yes yeah sure right wrong fine well good better best
        great nice cool wow bad worse lovely amazing funny happy sad tired bored
        tell say talk speak ask answer mean explain understand know think believe feel like love
        hate hope wish want need get got give take make go come keep put try use done
        look see show find help start stop continue work happen wait change mind still just
        maybe really actually much many lot little bit moment time day week thing
        something anything nothing everything way kind sort one two first last next new old
        people person guy friend somebody anybody everybody name life point idea question
        """
    )
)


def weigh_evidence(
    documents: Sequence[Document],
    places: Sequence[int],
    fits: DocumentFits,
    scores: Scores,
    query: Query,
) -> Evidence:
    """Return the evidence for the documents at these places, a query's best matches."""
    return weigh_best(documents, places, fits, scores, query)[0]


def weigh_best(
    documents: Sequence[Document],
    places: Sequence[int],
    fits: DocumentFits,
    scores: Scores,
    query: Query,
) -> tuple[Evidence, int]:
    """Return the same, with the place of the document with the most evidence."""
    _, cosine, parts = counting_rows(scores, query.parts)
    word = worth_of_word(question_fluency(scores, query.parts))
    found, best = 0.0, next(iter(places), 0)
    for rows, text in _voices(parts):
        terms = set(find_terms(text))
        for place in places:
            likeness = _likeness(cosine, rows, place, fits, documents[place])
            shared = _shared_words(terms, place, fits, documents[place])
            if likeness is not None:
                evidence = likeness + word * log1p(len(shared - EVERYDAY))
            else:
                # Without a vector, only words of other chunks can decide.
                count = len(shared - EVERYDAY) if shared else int(fits.shares[place])
                evidence = WORD_UNREAD * log1p(count)
            if evidence > found:
                found, best = evidence, place
    return Evidence(found=found, needed=NEEDED), best


def worth_of_word(fluency: float) -> float:
    """Return the worth of the first shared word, by how well the encoder knows the language."""
    return WORD + unknown_share(fluency) * (WORD_UNREAD - WORD)


def _voices(parts: Sequence[QueryPart]) -> Iterator[tuple[list[int], str]]:
    """Yield the question with all of its parts, and each recent turn that counts, with their rows.
    A question that depends on a turn has the evidence of that turn."""
    own = [row for row, part in enumerate(parts) if not part.recent]
    if own:
        yield own, "\n".join(parts[row].text for row in own)
    for row, part in enumerate(parts):
        if part.recent:
            yield [row], part.text


def _likeness(
    cosine: Matrix | None, rows: list[int], place: int, fits: DocumentFits, document: Document
) -> float | None:
    """Return the similarity of a document's best chunk to any of the rows; None without a
    vector."""
    if cosine is None:
        return None
    begin = int(fits.layout.starts[place])
    values = cosine[rows, begin : begin + document.size]
    known = values[~numpy.isnan(values)]
    return round(float(known.max()), DIGITS) if known.size else None


def _shared_words(terms: set[str], place: int, fits: DocumentFits, document: Document) -> set[str]:
    """Return the terms shared with the document's first chunk, which names it, or with its best
    one."""
    best = int(fits.best[place] - fits.layout.starts[place])
    return terms & {*find_terms(document.chunk(0)), *find_terms(document.chunk(best))}


class ItemChoice(Struct, frozen=True, kw_only=True):
    """The chosen items; if there are none for lack of evidence, the highest amount of evidence and
    the item it was for."""

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
    """Return the chosen items, the best score first, followed by those without a score in order of
    match. Pass `fits` if the measurements already exist."""
    return judge_items(documents, scores, query, settings, fits=fits).items


def judge_items(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    settings: SearchSettings,
    *,
    fits: DocumentFits | None = None,
) -> ItemChoice:
    """Return the chosen items or, if there are none, the reason."""
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
    """Return the allowed documents among those of the `top_k` best chunks."""
    fit = fits.chunk_fit
    near = numpy.arange(len(fit))
    if 0 < top_k < len(near):
        # Sorting all would take most of a search's time; ties with the last one stay in.
        near = numpy.flatnonzero(fit >= numpy.partition(fit, -top_k)[-top_k])
    columns = near[numpy.argsort(-fit[near], kind="stable")][:top_k]
    places: Indices = numpy.unique(fits.layout.owner[columns])
    return places[allowed[places]]


def _claim(fits: DocumentFits, scores: Scores, query: Query, floor: float) -> list[int]:
    """Return the best document for each part that claims one."""
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
    """Return `places` with all claims included; the worst matches are replaced."""
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
