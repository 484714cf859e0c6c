"""Questions in languages that an encoder knows well, half or not at all: words are not outvoted."""

import numpy
import pytest

from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.scores import (
    FLUENT,
    HALTING,
    WORDS,
    WORDS_HALTING,
    Scores,
    is_foreign,
    rank_documents,
    weigh_words,
)
from lamina.core.values.item import item_id
from lamina.core.values.selection import Document, Query, QueryPart, SearchSettings

ONE = Query(parts=(QueryPart(text="q", whole=True),))
A, B = (Document(item_id("rule", name), (name,)) for name in "ab")


def test_the_less_an_encoder_knows_a_language_the_more_words_count() -> None:
    assert weigh_words(4.2) == weigh_words(FLUENT) == WORDS
    assert weigh_words(HALTING) == weigh_words(0.4) == WORDS_HALTING
    assert WORDS < weigh_words((FLUENT + HALTING) / 2) < WORDS_HALTING


@pytest.mark.parametrize(("fluency", "first"), [(4.0, B), (2.1, A)])
def test_a_half_known_language_is_found_by_its_words_first(fluency: float, first: Document) -> None:
    scores = Scores(
        lexical=numpy.array([[2.0, 0.0]], numpy.float32),
        cosine=numpy.array([[0.3, 0.6]], numpy.float32),
        fluency=numpy.array([fluency]),
    )
    assert rank_documents([A, B], scores, ONE)[0].item == first.id


def test_a_question_that_cannot_be_read_has_no_scores_and_fills_no_places_with_noise() -> None:
    scores = Scores(
        lexical=numpy.array([[2.0, 0.0]], numpy.float32),
        cosine=numpy.full((1, 2), numpy.nan, numpy.float32),
        fluency=numpy.array([0.9]),
    )
    items = choose_items([A, B], scores, ONE, SearchSettings())
    assert [(item.item, item.score, item.origin) for item in items] == [(A.id, None, "lexical")]


@pytest.mark.parametrize(
    ("text", "fluency", "foreign"),
    [
        ("как настроить", 1.0, True),
        ("как настроить", 2.5, False),
        ("パスワード", 0.0, True),
        ("κλειδιά", 1.1, True),
        ("zfs", 1.5, False),
        ("đổi mật khẩu", 1.4, False),
        ("zfs на диске", 1.4, True),
        ("2026-11-17", FLUENT, False),
        ("", 0.0, False),
    ],
)
def test_what_is_in_latin_letters_is_not_a_foreign_script(
    text: str, fluency: float, foreign: bool
) -> None:
    assert is_foreign(text, fluency) == foreign
