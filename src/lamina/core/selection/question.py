"""Splits a question into the parts that are searched for.

Laws: the whole question is always a part; a question about several things has a part for each. The
search stays small however long the question is: its beginning and its end count.
"""

import re
from collections.abc import Iterator, Sequence

from lamina.core.selection.chunks import LONGEST_CHUNK, split_sentences
from lamina.core.selection.terms import find_terms
from lamina.core.values.selection import Query, QueryPart

# Each part is embedded, which takes milliseconds.
MAX_SENTENCES = 12
MAX_CLAUSES = 12
WHOLE_CHARACTERS = 2_000
# A part of fewer terms ("in Berlin", "please") is too short to be searched for alone.
FEWEST_TERMS = 2
# If a question has more parts than this, only its sentences claim an item, not their clauses.
MAX_CLAIMS = 8
# The weights of previous turns, the latest first.
RECENT_WEIGHTS = (0.5, 0.3)

# A question of fewer terms, or a short one that refers to something, may depend on previous turns.
# Any other stands alone: earlier turns would only bring back their items.
SHORT_TERMS = 4
POINTING_TERMS = 10
_POINTING = re.compile(
    r"\b(?:it|its|that|this|those|these|them|they|their|he|she|him|her|his|same|again|also|too|"
    r"instead|there|then|another|others?|previous|above|before)\b",
    re.IGNORECASE,
)

_CLAUSE_END = re.compile(
    r"[,;]?\s(?:and|or|but|then|also|while|plus|as well as|along with)\s|[,;:]\s|[，；、]|\n",
    re.IGNORECASE,
)


def split_question(text: str, recent: Sequence[str] = ()) -> Query:
    """Return the query for `text`, and for the `recent` turns before it, the latest first, if it
    depends on them. A blank text yields an empty query."""
    sentences = _ends(split_sentences(text), MAX_SENTENCES)
    if not sentences:
        return Query()
    clauses = {sentence: tuple(_clauses(sentence)) for sentence in sentences}
    single = {sentence for sentence, pieces in clauses.items() if len(pieces) < 2}
    things = sum(max(1, len(pieces)) for pieces in clauses.values())
    by_clause = things <= MAX_CLAIMS
    parts = {
        sentence: QueryPart(text=sentence, claims=sentence in single or not by_clause)
        for sentence in sentences
    }
    split_clauses = [
        clause for sentence in sentences if sentence not in single for clause in clauses[sentence]
    ]
    for clause in _ends(split_clauses, MAX_CLAUSES):
        parts.setdefault(clause, QueryPart(text=clause, claims=by_clause))
    whole = "\n".join(_ends_of(text.strip()))
    claims = parts.pop(whole).claims if whole in parts else not parts
    first = QueryPart(text=whole, whole=True, claims=claims)
    before = tuple(_recent(recent)) if leans_on_before(text) else ()
    return Query(parts=(first, *parts.values(), *before))


def leans_on_before(text: str) -> bool:
    """Return whether a question may need previous turns to be understood."""
    terms = len(set(find_terms(text[:WHOLE_CHARACTERS])))
    return terms < SHORT_TERMS or (terms < POINTING_TERMS and bool(_POINTING.search(text)))


def _clauses(sentence: str) -> Iterator[str]:
    for clause in _CLAUSE_END.split(sentence):
        if len(set(find_terms(clause))) >= FEWEST_TERMS:
            yield clause.strip()


def _recent(turns: Sequence[str]) -> Iterator[QueryPart]:
    for turn, weight in zip(turns, RECENT_WEIGHTS, strict=False):
        if text := turn.strip()[:LONGEST_CHUNK].rstrip():
            yield QueryPart(text=text, weight=weight, recent=True, claims=False)


def _ends(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first and the last of the texts, at most `most` in all."""
    if len(texts) <= most:
        return tuple(texts)
    return (*texts[: most // 2], *texts[-(most // 2) :])


def _ends_of(text: str) -> tuple[str, ...]:
    if len(text) <= WHOLE_CHARACTERS:
        return (text,)
    return (text[: WHOLE_CHARACTERS // 2], text[-(WHOLE_CHARACTERS // 2) :])
