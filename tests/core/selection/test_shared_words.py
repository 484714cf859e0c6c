"""Which words of a question a text has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.terms import find_shared_words, find_terms


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("How are keys rotated?", "Rotate the signing key.", ("keys", "rotated")),
        ("Keys, keys and KEYS", "a key", ("Keys",)),
        ("the and of", "the and of", ()),
        ("readFile", "reading files", ("readFile",)),
        ("Café", "cafe", ("Café",)),
        ("東京都の天気", "京都", ("京都",)),
        ("ferry", "train", ()),
    ],
)
def test_words_are_shared_as_search_compares_them(
    question: str, text: str, words: tuple[str, ...]
) -> None:
    assert find_shared_words(question, text) == words


@given(st.text(), st.text())
def test_words_are_shared_if_and_only_if_terms_are(question: str, text: str) -> None:
    words = find_shared_words(question, text)
    assert bool(words) == bool(set(find_terms(question)) & set(find_terms(text)))
    assert all(word in question for word in words)
