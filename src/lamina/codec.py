"""Values to canonical JSON bytes and back, and digests of them.

Law: the same value gives the same bytes in every process, on every platform, for every hash seed.
Keys are sorted, text is UTF-8, numbers are as msgspec writes them, and there is no white space.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from lamina.errors import InvalidSetting, InvalidText, JournalError
from lamina.values.entry import Entry

T = TypeVar("T")

_canonical = msgspec.json.Encoder(order="sorted")
_entries = msgspec.json.Decoder(Entry)


def canonical(value: Any) -> bytes:
    """Canonical JSON bytes.

    Raises:
        InvalidText: a string holds a lone surrogate.
    """
    try:
        return _canonical.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidText("a value", error.start) from error


def decode(data: bytes, kind: type[T]) -> T:
    """The value of type `kind` that `canonical` made `data` from.

    Raises:
        JournalError: the bytes are not such a value.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting) as error:
        raise JournalError(f"not a {kind.__name__}: {error}") from error


def decode_entry(data: bytes) -> Entry:
    """One journal entry.

    Raises:
        JournalError: the bytes are not an entry of a known type.
    """
    try:
        entry: Entry = _entries.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting) as error:
        raise JournalError(f"not a journal entry: {error}") from error
    return entry


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_value(value: Any) -> str:
    return digest_bytes(canonical(value))


def digest_texts(parts: Iterable[str]) -> str:
    """One digest over several texts; their lengths keep ("ab", "c") and ("a", "bc") apart."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def require_text(text: str, what: str) -> str:
    """The text itself, if it can be sent.

    Raises:
        InvalidText: it holds a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidText(what, error.start) from error
    return text


def mend_text(text: str) -> str:
    """The text with lone surrogates replaced: for what a provider said, which must not be lost."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
