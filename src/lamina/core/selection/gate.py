"""Whether a question found anything at all.

Laws: some candidate is the best for every question, small talk included; it counts only if there is
evidence for it, and without that nothing is chosen. Evidence is how alike a candidate and the
question are, and the words they share. More of either never closes the gate, nor do further
candidates that fit worse; their order makes no difference.
"""

from collections.abc import Iterator, Sequence
from math import log, log1p

import numpy

from lamina.core.selection.scores import (
    DIGITS,
    DocumentFits,
    Matrix,
    Scores,
    counting_rows,
    question_fluency,
    unknown_share,
)
from lamina.core.selection.terms import find_terms
from lamina.core.values.selection import Document, Evidence, Query, QueryPart

# A small model, which `bench/gate.py` fits: what shared words are worth in likeness, each less than
# the one before, and how much evidence is needed.
WORD = 0.15
NEEDED = 0.3
# Where an encoder cannot read, a word has to be enough.
WORD_UNREAD = NEEDED / log(2)

# Words that people use whatever they talk about: sharing one is evidence of nothing.
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
    """What speaks for the documents at these places, the ones that fit a query best."""
    return weigh_best(documents, places, fits, scores, query)[0]


def weigh_best(
    documents: Sequence[Document],
    places: Sequence[int],
    fits: DocumentFits,
    scores: Scores,
    query: Query,
) -> tuple[Evidence, int]:
    """The same, and the place of the document that most speaks for."""
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
                # Without a vector, words of other chunks are all there is to go by.
                count = len(shared - EVERYDAY) if shared else int(fits.shares[place])
                evidence = WORD_UNREAD * log1p(count)
            if evidence > found:
                found, best = evidence, place
    return Evidence(found=found, needed=NEEDED), best


def worth_of_word(fluency: float) -> float:
    """What the first shared word is worth, by how well the encoder knows the language."""
    return WORD + unknown_share(fluency) * (WORD_UNREAD - WORD)


def _voices(parts: Sequence[QueryPart]) -> Iterator[tuple[list[int], str]]:
    """Who asks: the question with all of its parts, and each of the recent turns that count; with
    the rows of each. A question that leans on a turn has the evidence of that turn."""
    own = [row for row, part in enumerate(parts) if not part.recent]
    if own:
        yield own, "\n".join(parts[row].text for row in own)
    for row, part in enumerate(parts):
        if part.recent:
            yield [row], part.text


def _likeness(
    cosine: Matrix | None, rows: list[int], place: int, fits: DocumentFits, document: Document
) -> float | None:
    """How alike the best of a document's chunks is to any of the rows; None without a vector."""
    if cosine is None:
        return None
    begin = int(fits.layout.starts[place])
    values = cosine[rows, begin : begin + document.size]
    known = values[~numpy.isnan(values)]
    return round(float(known.max()), DIGITS) if known.size else None


def _shared_words(terms: set[str], place: int, fits: DocumentFits, document: Document) -> set[str]:
    """The terms that the document's first chunk, which names it, or its best one shares."""
    best = int(fits.best[place] - fits.layout.starts[place])
    return terms & {*find_terms(document.chunk(0)), *find_terms(document.chunk(best))}
