"""Compares query values, converts them to strings, and calculates with `+ - * / %`.

Laws: all values have one order, so that everything can be sorted: null first, then by type name
(array, boolean, date, duration, link, number, object, string), as in Dataview. Two values are equal
if and only if their keys are; comparing never fails. As text (`"Due: " + due`) values have the same
format as in Dataview, so that searches within such text work; `query_markdown` produces the tables
and lists that a model reads. Each operator is a table of the values it accepts, one row each.
"""

import math
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from lamina.core.notes.query.dates import (
    UNITS,
    difference,
    format_date,
    make_span,
    milliseconds_of,
    normalize_span,
    shift,
)
from lamina.core.notes.query.values import PageLink, TimeSpan, ValueType, WebLink, tidy, type_of
from lamina.core.notes.query.work_limit import RowError

# Deeper parts of a value count as null.
MAX_DEEP = 20
_EPOCH = datetime(1970, 1, 1)

# Comparable with any other key, first by kind.
ValueKey = tuple[Any, ...]
NULL_KEY: ValueKey = ("",)


def key_of(value: Any, deep: int = 0) -> ValueKey:
    """Return the key by which a value is compared and sorted. Equal values have equal keys."""
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
        case list() | tuple() if deep < MAX_DEEP:
            return (kind, tuple(key_of(member, deep + 1) for member in value))
        case Mapping() if (identity := getattr(value, "identity", None)) is not None:
            return (kind, (), tuple(map(str, identity)))
        case Mapping() if deep < MAX_DEEP:
            names = sorted(map(str, value))
            keys = tuple(_collate(name) for name in names)
            return (kind, keys, tuple(key_of(value[name], deep + 1) for name in names))
    return NULL_KEY


@lru_cache(maxsize=20_000)
def _collate(text: str) -> tuple[str, str, str]:
    """Return a key that sorts strings as a dictionary does: punctuation, digits, letters; accents
    and then case only where nothing else differs, lower case first."""
    if text.isascii():
        return "".join(map(_rank, text)).lower(), "", text.swapcase()
    plain = unicodedata.normalize("NFD", text)
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    accents = "".join(c if unicodedata.combining(c) else " " for c in plain)
    return "".join(map(_rank, letters)).casefold(), accents, plain.swapcase()


def _rank(character: str) -> str:
    """Return a character prefixed by its class, unless it is a letter."""
    if character.isalpha():
        return "\uffff" + character if character > "\uffff" else "a" + character
    if character.isdigit():
        return "9" + character
    return ("1" if character.isspace() else "2") + character


def is_truthy(value: Any) -> bool:
    """Return whether a value counts as true: not if it is null, false, 0 or empty."""
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
    # For a mapping, check the length; all other values have their own truth value.
    return bool(value)


def moment_of(seconds: float) -> datetime | None:
    """Return a file's time as a date in UTC; None if it is out of range."""
    try:
        return _EPOCH + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        return None


def normalize_text(text: str) -> str:
    """Return one spelling for strings that look the same: é becomes one character, however it was
    typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold_case(text: str) -> str:
    """Return a string for case-insensitive comparison."""
    return normalize_text(normalize_text(text).casefold())


_DAY_FORMAT = "MMMM dd, yyyy"
_TIME_FORMAT = "h:mm a - MMMM dd, yyyy"
NULL_TEXT = "-"
# The maximum length of a string created by a query, in characters.
MAX_TEXT = 100_000


def text_of(value: Any, deep: int = 0) -> str:
    """Return a value as a string."""
    match value:
        case None:
            return NULL_TEXT
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case datetime():
            is_day = not (value.hour or value.minute or value.second)
            return format_date(value, _DAY_FORMAT if is_day else _TIME_FORMAT)
        case TimeSpan():
            return span_text(value)
        case PageLink():
            return link_text(value, value.display or _title(value))
        case WebLink():
            return f"[{value.display}]({value.url})"
        case list() | tuple() if deep < MAX_DEEP:
            listing = ", ".join(text_of(member, deep + 1) for member in value)[:MAX_TEXT]
            return f"[{listing}]" if deep else listing
        case Mapping() if deep < MAX_DEEP:
            pairs = (f"{name}: {text_of(value[name], deep + 1)}" for name in value)
            return f"{{ {', '.join(pairs)[:MAX_TEXT]} }}"
    return "<function>" if callable(value) else "…"


def number_text(number: float) -> str:
    number = tidy(number)
    if isinstance(number, int):
        return str(number)
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return names.get(repr(number), repr(number))


def span_text(span: TimeSpan) -> str:
    """Return a span with its units: `1 year, 2 days`."""
    units = zip(UNITS, normalize_span(span).units, strict=True)
    parts = [
        f"{number_text(amount)} {unit.removesuffix('s') if amount == 1 else unit}"
        for unit, amount in units
        if amount
    ]
    return ", ".join(parts) or "0 seconds"


def link_text(link: PageLink, display: str = "") -> str:
    """Return a link as Markdown; `display` is shown in its place."""
    mark = {"file": "", "header": "#", "block": "#^"}[link.target]
    tail = f"|{display}" if display else ""
    return f"{'!' if link.is_embed else ''}[[{link.path}{mark}{link.subpath}{tail}]]"


def _title(link: PageLink) -> str:
    title = link.path.rsplit("/", 1)[-1].removesuffix(".md")
    return f"{title} > {link.subpath}" if link.subpath else title


Operation = Callable[[Any, Any], Any]
MAX_MEMBERS = 100_000


def _scale(span: TimeSpan, factor: float) -> TimeSpan:
    return normalize_span(make_span(unit * factor for unit in span.units))


def _add_spans(first: TimeSpan, second: TimeSpan, sign: int = 1) -> TimeSpan:
    pairs = zip(first.units, second.units, strict=True)
    return normalize_span(make_span(one + sign * other for one, other in pairs))


def _join_texts(first: Any, second: Any) -> str:
    return (text_of(first) + text_of(second))[:MAX_TEXT]


def _repeat(text: str, count: float) -> str:
    return text[:MAX_TEXT] * max(0, min(int(count), MAX_TEXT // max(len(text), 1)))


def _join_lists(first: Any, second: Any) -> tuple[Any, ...]:
    if len(first) + len(second) > MAX_MEMBERS:
        raise RowError(f"a list has at most {MAX_MEMBERS:,} members")
    return (*first, *second)


def _divide(first: float, second: float) -> float:
    if second == 0:
        return math.nan if first == 0 else math.copysign(math.inf, first)
    return first / second


def _remainder(first: float, second: float) -> float:
    return math.fmod(first, second) if second and math.isfinite(first) else math.nan


def _shift(date: datetime, span: TimeSpan, sign: int = 1) -> datetime:
    try:
        return shift(date, span, sign)
    except (OverflowError, ValueError) as error:
        raise RowError(str(error)) from None


def _nothing(_first: Any, _second: Any) -> None:
    return None


def _merge(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {**first, **second}


_NUMBERS: dict[str, Operation] = {
    "+": lambda first, second: first + second,
    "-": lambda first, second: first - second,
    "*": lambda first, second: first * second,
    "/": _divide,
    "%": _remainder,
}
_TABLE: dict[tuple[ValueType, str, ValueType], Operation] = {
    ("string", "*", "number"): _repeat,
    ("number", "*", "string"): lambda count, text: _repeat(text, count),
    ("date", "-", "date"): difference,
    ("date", "-", "duration"): lambda date, span: _shift(date, span, -1),
    ("date", "+", "duration"): _shift,
    ("duration", "+", "date"): lambda span, date: _shift(date, span),
    ("duration", "+", "duration"): _add_spans,
    ("duration", "-", "duration"): lambda first, second: _add_spans(first, second, -1),
    ("duration", "/", "number"): lambda span, by: _scale(span, 1 / by if by else 0),
    ("duration", "*", "number"): _scale,
    ("number", "*", "duration"): lambda factor, span: _scale(span, factor),
    ("array", "+", "array"): _join_lists,
    ("object", "+", "object"): _merge,
    **{("null", operator, "null"): _nothing for operator in "+-*/%"},
    **{("date", operator, "null"): _nothing for operator in "+-"},
    **{("null", operator, "date"): _nothing for operator in "+-"},
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda first, second: key_of(first) == key_of(second),
    "!=": lambda first, second: key_of(first) != key_of(second),
    "<": lambda first, second: key_of(first) < key_of(second),
    "<=": lambda first, second: key_of(first) <= key_of(second),
    ">": lambda first, second: key_of(first) > key_of(second),
    ">=": lambda first, second: key_of(first) >= key_of(second),
}


def calculate(operator: str, first: Any, second: Any) -> Any:
    """Return the value of an operation.

    Raises:
        RowError: there is none for such values.
    """
    kinds = (type_of(first), operator, type_of(second))
    if kinds[0] == kinds[2] == "number":
        try:
            return tidy(_NUMBERS[operator](first, second))
        except OverflowError:
            return math.inf
    operation = _TABLE.get(kinds)
    if operation is not None:
        try:
            return operation(first, second)
        except (OverflowError, ValueError) as error:
            raise RowError(str(error)) from None
    if operator == "+" and "string" in kinds:
        return _join_texts(first, second)
    raise RowError(f"{kinds[0]} {operator} {kinds[2]} has no value")
