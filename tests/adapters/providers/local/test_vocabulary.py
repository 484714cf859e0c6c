"""Counts of a local model against llama.cpp's own, token for token."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.providers.local.test_gguf import ARRAY, STRING, Pair, gguf_bytes

from lamina.adapters.providers.local.gguf import VocabularyCounter, counter_for_model

REPOSITORY = Path(__file__).parents[4]
Tokenize = Callable[[str], list[int]]


@pytest.fixture(scope="module")
def counter(embedded_model: Path) -> VocabularyCounter:
    found = counter_for_model(embedded_model)
    assert found is not None
    return found


ODD = (
    "", " ", "   ", "\n\n\n", "\t\tx", "trailing   ", "a \n b  \n\n  c", "\r\n", "a\u00a0b\u3000c",
    "1234567890", "a1b2  3 4   ", " 12 34\t5\n6", "$1,234.56", "１２３ ٣٤٥ ½ Ⅷ ²", "𝟘𝟙",
    "<|im_end|>", "<|im_start|>system\nx<|im_end|>\n", "<repo_name>x <file_sep>",
    "don't I'LL we've 's 'S", "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🎉", "日本語のテキスト。", "한국어",
    "العربية", "हिन्दी", "ไทย",
    "e\u0301 ß İ Ǆ", "\x00\x01", "\ufeff\ufffd", "\u2028\u2029\x85", "\U000e0001\U0010ffff",
    # Bytes that the vocabulary does not have are left out by both.
    "a\x04b\x06\x13", "\U00050000",
    "x" * 50_000, " " * 5_000, "ab " * 10_000, "1" * 5_000, "中" * 10_000,
)  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text)[:30])
def test_odd_texts_have_the_tokens_that_llama_gives_them(
    counter: VocabularyCounter, llama: Tokenize, text: str
) -> None:
    assert counter.tokens(text) == llama(text)
    assert counter.count(text) == len(llama(text))


def test_documents_and_code_have_the_tokens_that_llama_gives_them(
    counter: VocabularyCounter, llama: Tokenize
) -> None:
    documents = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("src/lamina/*.py")]
    assert len(documents) > 5
    for path in documents:
        text = path.read_text("utf-8")
        ids = llama(text)
        assert counter.tokens(text) == ids
        assert counter.count(text) == len(ids)


@given(text=st.text(max_size=80))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_has_the_tokens_that_llama_gives_it(
    counter: VocabularyCounter, llama: Tokenize, text: str
) -> None:
    assert counter.tokens(text) == llama(text)


def test_every_character_is_split_as_llama_splits_it(
    counter: VocabularyCounter, llama: Tokenize
) -> None:
    """Letters, digits, spaces and the rest, as this Unicode has them."""
    codes = [code for code in range(0x3400) if not 0xD800 <= code <= 0xDFFF]
    codes += [*range(0xA000, 0xD7FF, 7), *range(0xF900, 0x10000), *range(0x10000, 0x1FC00, 5)]
    for start in range(0, len(codes), 512):
        some = map(chr, codes[start : start + 512])
        text = "".join(f"a{char}. {char}b {char}{char} !{char}\n" for char in some)
        assert counter.tokens(text) == llama(text)


def test_a_counter_is_exact_and_loaded_once(
    counter: VocabularyCounter, embedded_model: Path
) -> None:
    assert counter.exact
    assert counter.name == "gguf:959746d9b2fc"
    assert counter_for_model(embedded_model) is counter


KNOWN: tuple[Pair, ...] = (
    ("tokenizer.ggml.model", STRING, "gpt2"),
    ("tokenizer.ggml.pre", STRING, "smollm"),
    ("tokenizer.ggml.tokens", ARRAY, (STRING, ["<|x|>", "a", "b", "Ġ", "ab", "<user>"])),
    ("tokenizer.ggml.token_type", ARRAY, (5, [3, 1, 1, 1, 1, 4])),
    ("tokenizer.ggml.merges", ARRAY, (STRING, ["a b"])),
)


def write(folder: Path, pairs: tuple[Pair, ...]) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(gguf_bytes(pairs))
    return path


def changed(key: str, value: object) -> tuple[Pair, ...]:
    return tuple((k, t, value if k == key else v) for k, t, v in KNOWN if value or k != key)


def test_tokens_of_the_users_are_found_in_text_and_control_tokens_are_not(tmp_path: Path) -> None:
    counter = counter_for_model(write(tmp_path, KNOWN))
    assert counter is not None
    assert counter.tokens("ab a") == [4, 3, 1]
    assert counter.tokens("ab<user>b") == [4, 5, 2]
    # Neither < nor | nor x is in this vocabulary.
    assert counter.tokens("a<|x|>b") == [1, 2]


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        changed("tokenizer.ggml.model", "llama"),
        changed("tokenizer.ggml.pre", "llama-bpe"),
        changed("tokenizer.ggml.pre", None),
        changed("tokenizer.ggml.tokens", None),
        changed("tokenizer.ggml.merges", None),
        changed("tokenizer.ggml.tokens", (STRING, ["a", "a", "b", "c", "d", "e"])),
        changed("tokenizer.ggml.tokens", (4, [1, 2, 3, 4, 5, 6])),
        changed("tokenizer.ggml.token_type", (5, [1])),
    ],
)
def test_a_vocabulary_of_another_kind_is_left_to_the_estimate(
    tmp_path: Path, pairs: tuple[Pair, ...]
) -> None:
    assert counter_for_model(write(tmp_path, pairs)) is None


def test_a_file_that_cannot_be_read_is_left_to_the_estimate(tmp_path: Path) -> None:
    assert counter_for_model(tmp_path / "gone.gguf") is None
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert counter_for_model(tmp_path / "model.gguf") is None
