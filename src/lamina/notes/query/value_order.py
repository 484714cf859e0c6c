"""The values of a query, and how they compare.

Laws: there is one order over all values, so sorting works whatever is sorted: null, then false and
true, numbers, dates, texts, lists, objects. A text that looks like a date is a date, because that
is how frontmatter holds them. Nothing here fails, whatever a note's properties are.
"""

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

# Deeper parts of a property count as null.
MOST_DEEP = 20
_NULL, _BOOLEAN, _NUMBER, _DATE, _TEXT, _LIST, _OBJECT = range(7)
_EPOCH = datetime(1970, 1, 1)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)

# Comparable with any other, first by kind.
ValueKey = tuple[Any, ...]
NULL_KEY: ValueKey = (_NULL,)


def key_of(value: Any, deep: int = 0) -> ValueKey:
    """The key a value is compared and sorted by. Equal values have equal keys."""
    match value:
        case str():
            moment = read_moment(value) if value[4:5] == "-" else None
            if moment is not None:
                return (_DATE, moment)
            plain = normalize_text(value)
            return (_TEXT, plain.casefold(), plain)
        case bool():
            return (_BOOLEAN, value)
        case int() | float():
            return (_NUMBER, value) if value == value else NULL_KEY
        case datetime():
            return (_DATE, value)
        case list() | tuple() if deep < MOST_DEEP:
            return (_LIST, tuple(key_of(member, deep + 1) for member in value))
        case dict() if deep < MOST_DEEP:
            pairs = ((str(name), key_of(member, deep + 1)) for name, member in value.items())
            return (_OBJECT, tuple(sorted(pairs)))
    return NULL_KEY


def same_kind(first: ValueKey, second: ValueKey) -> bool:
    """Whether two values have an order. Null has none."""
    return bool(first[0] == second[0] != _NULL)


def is_truthy(value: Any) -> bool:
    """Whether a value counts as true: not if it is null, false, 0 or empty."""
    # NaN counts as null.
    return bool(value) and not (isinstance(value, float) and value != value)


def read_moment(text: str) -> datetime | None:
    """The date or time that a text spells, in UTC; None if it is neither."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None


def moment_of(seconds: float) -> datetime | None:
    """The date of a file's time; None if it is out of range."""
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


def find_property(properties: dict[str, Any], name: str, folded: str) -> Any:
    """A property by its name, or else ignoring case; null if there is none."""
    if name in properties:
        return properties[name]
    return next((value for key, value in properties.items() if fold_case(str(key)) == folded), None)
