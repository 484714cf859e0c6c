"""Words of a text as terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.terms import LONGEST_WORD, find_terms


@pytest.mark.parametrize(
    "spelling", ["readFile", "read_file", "read-file", "READ files", "reading"]
)
def test_the_spelling_of_a_word_makes_no_difference(spelling: str) -> None:
    assert "read" in find_terms(spelling)


def test_an_identifier_gives_its_words_and_itself() -> None:
    assert find_terms("getHTTPStatus") == ["get", "http", "status", "gethttpstatus"]
    assert find_terms("sha256") == ["sha", "256", "sha256"]
    assert find_terms("PDFs and URLs") == ["pdf", "url"]


def test_words_that_say_nothing_are_left_out() -> None:
    assert find_terms("Please don't tell me what the user's is") == ["tell", "user"]


def test_accents_and_case_are_folded() -> None:
    assert find_terms("Été") == find_terms("ete") == find_terms("E\u0301te\u0301")


def test_scripts_without_spaces_are_read_by_pairs() -> None:
    assert find_terms("必应搜索") == ["必应", "应搜", "搜索"]
    assert find_terms("本") == ["本"]


def test_cyrillic_words_lose_their_endings() -> None:
    assert find_terms("программу") == find_terms("программы")


@given(st.text(), st.text())
def test_terms_depend_on_the_text_alone_and_add_up(one: str, other: str) -> None:
    assert find_terms(f"{one} {other}") == find_terms(one) + find_terms(other)


@given(st.text(max_size=40), st.integers(1, 200))
def test_there_are_never_many_more_terms_than_characters(text: str, times: int) -> None:
    terms = find_terms(text * times)
    assert len(terms) <= 2 * len(text) * times
    # Case folding and compatibility forms make some characters longer, by a fixed factor.
    assert sum(map(len, terms)) <= 40 * len(text) * times
    assert all(len(term) <= 20 * LONGEST_WORD for term in terms)
