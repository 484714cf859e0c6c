"""What `+`, `-`, `*`, `/` and `%` mean for which values, one row each.

Law: what is not in the table has no value, and its row is left out; null with null is null.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from lamina.core.notes.query.dates import difference, make_span, normalize_span, shift
from lamina.core.notes.query.value_order import key_of
from lamina.core.notes.query.value_text import MOST_TEXT, text_of
from lamina.core.notes.query.values import TimeSpan, ValueType, tidy, type_of
from lamina.core.notes.query.work_limit import RowError

Operation = Callable[[Any, Any], Any]
MOST_MEMBERS = 100_000


def _scale(span: TimeSpan, factor: float) -> TimeSpan:
    return normalize_span(make_span(unit * factor for unit in span.units))


def _add_spans(first: TimeSpan, second: TimeSpan, sign: int = 1) -> TimeSpan:
    pairs = zip(first.units, second.units, strict=True)
    return normalize_span(make_span(one + sign * other for one, other in pairs))


def _join_texts(first: Any, second: Any) -> str:
    return (text_of(first) + text_of(second))[:MOST_TEXT]


def _repeat(text: str, count: float) -> str:
    return text[:MOST_TEXT] * max(0, min(int(count), MOST_TEXT // max(len(text), 1)))


def _join_lists(first: Any, second: Any) -> tuple[Any, ...]:
    if len(first) + len(second) > MOST_MEMBERS:
        raise RowError(f"a list has at most {MOST_MEMBERS:,} members")
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
    """The value of an operation.

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
