"""Values as the bytes of an answer."""

from pathlib import Path
from typing import Any

import msgspec

JSON_TYPE = "application/json"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no value that can be told")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode_answer(value: Any) -> bytes:
    return _encoder.encode(value)
