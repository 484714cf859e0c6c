"""Token counts without a network.

Exact for OpenAI's encodings, by the vocabularies inside `splintr`. For everyone else the count of
o200k_base times a factor per vendor is the estimate (English prose is within 10%, code and other
scripts within 25%), which sessions then calibrate per model with the usage that providers report.
"""

from functools import cache
from typing import Any

from lamina.errors import InvalidSetting
from lamina.values.settings import Target


@cache
def _encoding(name: str) -> Any:
    from splintr import Tokenizer  # 35 ms and 33 MB: only once something is counted

    try:
        return Tokenizer.from_pretrained(name)
    except ValueError as error:
        raise InvalidSetting("encoding", name, str(error)) from error


class EncodingCounter:
    """Counts with one encoding, times a factor where that encoding is only an estimate."""

    def __init__(self, encoding: str, factor: float = 1.0, *, exact: bool = True) -> None:
        self._encoding = encoding
        self._factor = factor
        self._exact = exact

    @property
    def name(self) -> str:
        return self._encoding if self._exact else f"{self._encoding}*{self._factor:g}"

    @property
    def exact(self) -> bool:
        return self._exact

    def count(self, text: str) -> int:
        if not text:
            return 0
        # Not `encode`: it also matches invented agent markers inside the text.
        tokens = len(_encoding(self._encoding).encode_ordinary(text))
        return tokens if self._factor == 1.0 else max(1, round(tokens * self._factor))


def token_ids(encoding: str, text: str) -> list[int]:
    """The ids of a text's tokens."""
    ids: list[int] = _encoding(encoding).encode_ordinary(text) if text else []
    return ids


@cache
def _counter(encoding: str, factor: float, exact: bool) -> EncodingCounter:
    return EncodingCounter(encoding, factor, exact=exact)


def counter_for(target: Target) -> EncodingCounter:
    return _counter(target.encoding, target.token_factor, target.exact_tokens)
