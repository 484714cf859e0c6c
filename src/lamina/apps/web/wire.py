"""Values as the bytes of an answer."""

from pathlib import Path
from typing import Any

import msgspec

from lamina.core.codec import mend_text

JSON_TYPE = "application/json"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no value that can be told")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode_answer(value: Any) -> bytes:
    """The value as JSON. Names of files may be no text; what of them is none is replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mend(msgspec.to_builtins(value, enc_hook=_plain)))


def _mend(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {_mend(name): _mend(part) for name, part in value.items()}
        case list() | tuple():
            return [_mend(part) for part in value]
        case _:
            return value
