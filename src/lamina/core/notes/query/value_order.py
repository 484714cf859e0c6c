"""How values compare.

Laws: there is one order over all values, so that sorting works whatever is sorted: null first, then
by the names of their types (array, boolean, date, duration, link, number, object, string), as in
Dataview. Two values are equal if and only if their keys are. Nothing here fails.
"""

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from lamina.core.notes.query.dates import milliseconds_of
from lamina.core.notes.query.values import PageLink, TimeSpan, WebLink, type_of

# Deeper parts of a value count as null.
MOST_DEEP = 20
_EPOCH = datetime(1970, 1, 1)

# Comparable with any other, first by kind.
ValueKey = tuple[Any, ...]
NULL_KEY: ValueKey = ("",)


def key_of(value: Any, deep: int = 0) -> ValueKey:
    """The key a value is compared and sorted by. Equal values have equal keys."""
    kind = type_of(value)
    match value:
        case str():
            return (kind, _collate(value))
        case bool():
            return (kind, value)
        case int() | float():
            return (kind, value) if value == value else NULL_KEY
        case datetime():
            return (kind, value)
        case TimeSpan():
            return (kind, milliseconds_of(value))
        case PageLink():
            return (kind, _collate(value.path), value.target, _collate(value.subpath))
        case WebLink():
            return (kind, value.url)
        case list() | tuple() if deep < MOST_DEEP:
            return (kind, tuple(key_of(member, deep + 1) for member in value))
        case Mapping() if (identity := getattr(value, "identity", None)) is not None:
            return (kind, (), tuple(map(str, identity)))
        case Mapping() if deep < MOST_DEEP:
            names = sorted(map(str, value))
            keys = tuple(_collate(name) for name in names)
            return (kind, keys, tuple(key_of(value[name], deep + 1) for name in names))
    return NULL_KEY


@lru_cache(maxsize=20_000)
def _collate(text: str) -> tuple[str, str, str]:
    """Texts in the order of a dictionary: signs, digits, letters; accents and then case only where
    nothing else differs, small letters first."""
    if text.isascii():
        return "".join(map(_rank, text)).lower(), "", text.swapcase()
    plain = unicodedata.normalize("NFD", text)
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    accents = "".join(c if unicodedata.combining(c) else " " for c in plain)
    return "".join(map(_rank, letters)).casefold(), accents, plain.swapcase()


def _rank(character: str) -> str:
    """A character with its class in front, unless it is a letter."""
    if character.isalpha():
        return "\uffff" + character if character > "\uffff" else "a" + character
    if character.isdigit():
        return "9" + character
    return ("1" if character.isspace() else "2") + character


def is_truthy(value: Any) -> bool:
    """Whether a value counts as true: not if it is null, false, 0 or empty."""
    match value:
        case float():
            return value != 0 and value == value
        case TimeSpan():
            return milliseconds_of(value) != 0
        case PageLink():
            return bool(value.path)
        case datetime():
            return value != _EPOCH
        case WebLink():
            return True
    # A mapping is asked for its length; what else there is knows by itself.
    return bool(value)


def moment_of(seconds: float) -> datetime | None:
    """The moment of a file's time in UTC; None if it is out of range."""
    try:
        return _EPOCH + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        return None


def normalize_text(text: str) -> str:
    """One spelling for what looks the same: é becomes one character, however it was typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold_case(text: str) -> str:
    """A text for comparing without regard to case."""
    return normalize_text(normalize_text(text).casefold())
