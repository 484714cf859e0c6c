"""Exact token counts of a local model without loading it, by the vocabulary in its file.

Only vocabularies whose way of splitting text is known token for token are used; for the others
the estimate has to do.
"""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.adapters.providers.local.gguf import file_stamp, read_metadata
from lamina.errors import ModelMissing

_BYTE_LEVEL = {
    "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
}  # fmt: skip
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# How text is split before pieces are merged, by `tokenizer.ggml.pre`, as Hugging Face writes it.
_SPLITTING: Final[dict[str, dict[str, Any]]] = {
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
    "qwen2": {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": _QWEN},
                "behavior": "Isolated",
                "invert": False,
            },
            _BYTE_LEVEL | {"use_regex": False},
        ],
    },
}
# The type of tokens that llama.cpp finds in any text; control tokens are found in templates only.
_USER_DEFINED = 4

_KIND = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
_CONTENT = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")


class VocabularyCounter:
    """Counts with the vocabulary of a file; files with the same vocabulary share a name."""

    exact = True

    def __init__(self, tokenizer: Any, digest: str) -> None:
        self._tokenizer = tokenizer
        self.name = f"gguf:{digest[:12]}"

    def count(self, text: str) -> int:
        # Four bytes per token. The tokenizer knows no control tokens, so it finds none.
        return len(self._tokenizer.encode_flat(text)) // 4

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text)
        return ids


def counter_for_model(path: Path) -> VocabularyCounter | None:
    """The exact counter of a GGUF file; None if the kind of its vocabulary is unknown, or the file
    cannot be read."""
    stamp = file_stamp(path)
    return _load(path, stamp) if stamp else None


@lru_cache(maxsize=4)
def _load(path: Path, _stamp: tuple[int, int]) -> VocabularyCounter | None:
    try:
        kind = read_metadata(path, _KIND)
        splitting = _SPLITTING.get(kind.get(_KIND[1], ""))
        if kind.get(_KIND[0]) != "gpt2" or splitting is None:
            return None
        content = read_metadata(path, _CONTENT)
    except ModelMissing:
        return None
    description = _describe(content, splitting)
    if description is None:
        return None
    from splintr import from_json_bytes

    try:
        tokenizer = from_json_bytes(description)
    except ValueError:
        return None
    return VocabularyCounter(tokenizer, sha256(description).hexdigest())


def _describe(content: dict[str, Any], splitting: dict[str, Any]) -> bytes | None:
    """The vocabulary as a tokenizer.json for Hugging Face; None if it makes no sense."""
    tokens, merges, types = (content.get(key) or [] for key in _CONTENT)
    if not all(isinstance(column, list) and column for column in (tokens, merges, types)):
        return None
    if not isinstance(tokens[0], str) or not isinstance(merges[0], str):
        return None
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens) or len(types) != len(tokens):
        return None
    added_tokens = [
        {
            "id": number, "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": False,
        }
        for number, (token, type_) in enumerate(zip(tokens, types, strict=True))
        if type_ == _USER_DEFINED
    ]  # fmt: skip
    return msgspec.json.encode(
        {
            "version": "1.0",
            "added_tokens": added_tokens,
            "normalizer": None,
            "pre_tokenizer": splitting,
            "post_processor": None,
            "decoder": None,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
        }
    )
