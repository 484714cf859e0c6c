"""A question to parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.chunks import LONGEST_CHUNK
from lamina.core.selection.question import (
    MAX_CLAUSES,
    MAX_SENTENCES,
    RECENT_WEIGHTS,
    WHOLE_CHARACTERS,
    split_question,
)


def claims(text: str) -> list[str]:
    return [part.text for part in split_question(text).parts if part.claims]


@pytest.mark.parametrize("blank", ["", "  ", "\n\t\n"])
def test_a_blank_question_asks_for_nothing(blank: str) -> None:
    assert split_question(blank).parts == ()


def test_a_simple_question_is_one_part() -> None:
    (part,) = split_question("How do I name a test?").parts
    assert (part.text, part.whole, part.claims) == ("How do I name a test?", True, True)


def test_each_thing_that_is_asked_claims_an_item() -> None:
    assert claims("What is the weather tomorrow? Book a flight to Rome.") == [
        "What is the weather tomorrow?",
        "Book a flight to Rome.",
    ]
    assert claims("Read the stock price and send an email to my boss, then book a flight") == [
        "Read the stock price",
        "send an email to my boss",
        "book a flight",
    ]


def test_a_clause_that_says_too_little_is_no_part() -> None:
    assert claims("Read the stock price, please") == ["Read the stock price, please"]


def test_where_there_are_many_things_only_sentences_claim() -> None:
    sentences = [f"Read file number {n} and send letter number {n}." for n in range(6)]
    assert claims(" ".join(sentences)) == sentences


def test_recent_turns_weigh_less_and_claim_nothing() -> None:
    query = split_question("And in Rome?", recent=("Weather in Paris?", "Hello there", "Long ago"))
    recent = [part for part in query.parts if part.recent]
    assert [(part.text, part.weight) for part in recent] == list(
        zip(("Weather in Paris?", "Hello there"), RECENT_WEIGHTS, strict=True)
    )
    assert not any(part.claims for part in recent)


@given(st.text(max_size=300), st.integers(1, 300), st.lists(st.text(), max_size=4))
def test_what_is_searched_for_stays_small(text: str, times: int, recent: list[str]) -> None:
    parts = split_question(text * times, recent).parts
    assert len(parts) <= 1 + MAX_SENTENCES + MAX_CLAUSES + len(RECENT_WEIGHTS)
    assert all(part.text.strip() for part in parts)
    assert all(len(part.text) <= LONGEST_CHUNK for part in parts if not part.whole)
    assert all(len(part.text) <= WHOLE_CHARACTERS + 1 for part in parts)
    assert [part.whole for part in parts[:1]] == [True] * bool(text.strip())
    assert any(part.claims for part in parts) == bool(text.strip())
