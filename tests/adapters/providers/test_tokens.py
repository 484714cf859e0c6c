"""Token counts against constants that OpenAI published for its encodings."""

import pytest

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.errors import InvalidSetting


# The first five are from tiktoken's README and OpenAI's cookbook on counting tokens.
@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"),
    [
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
        ("", 0, 0),
        # Markers that models are trained on are ordinary text when someone types them.
        ("<|think|>", 5, 5),
        ("<|endoftext|>", 7, 7),
        ("<|im_start|>", 6, 6),
    ],
)
def test_counts_are_exact_for_openai(text: str, o200k: int, cl100k: int) -> None:
    book = load_book()
    for target, expected in [("openai:gpt-4o", o200k), ("openai:gpt-4", cl100k)]:
        counter = book.counter(book.find(target))
        assert counter.exact
        assert counter.count(text) == expected


@pytest.mark.parametrize("target", ["anthropic:claude-sonnet-5", "gemini:gemini-2.5-flash"])
def test_counts_are_estimates_for_others(target: str) -> None:
    book = load_book()
    counter = book.counter(book.find(target))
    exact = book.counter(book.find("openai:gpt-4o"))
    text = "The quick brown fox jumps over the lazy dog. " * 20
    assert not counter.exact
    assert exact.count(text) < counter.count(text) < 1.5 * exact.count(text)
    assert counter.count("a") == 1
    assert counter.count("") == 0


def test_counts_of_different_kinds_have_different_names() -> None:
    book = load_book()
    targets = ["openai:gpt-4o", "openai:gpt-4", "anthropic:claude-sonnet-5", "gemini:gemini-4"]
    assert len({book.counter(book.find(target)).name for target in targets}) == 4


def test_targets_that_count_alike_share_a_counter() -> None:
    book = load_book()
    assert book.counter(book.find("openai:gpt-4o")) is book.counter(book.find("openai:gpt-5"))


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(InvalidSetting, match=r"'p100k'.*o200k_base"):
        EncodingCounter("p100k").count("hello")
