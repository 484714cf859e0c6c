"""Functions about numbers, and about the least and greatest of any values."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce as fold
from typing import Any

from lamina.core.notes.query.functions.constructors import MOST_ARGUMENTS
from lamina.core.notes.query.functions.query_function import (
    NoSuchCall,
    QueryFunction,
    QueryScope,
    need,
)
from lamina.core.notes.query.operators import calculate
from lamina.core.notes.query.value_order import is_truthy, key_of
from lamina.core.notes.query.values import tidy

_OPERATORS = "+-*/&|"


def _each(change: Callable[[float], float]) -> QueryFunction:
    def call(scope: QueryScope, value: Any) -> float | None:
        if value is None:
            return None
        number = need(value, int, float)
        return tidy(change(number)) if math.isfinite(number) else number

    return QueryFunction(call, 1, 1, (0,))


def _round(scope: QueryScope, value: Any, digits: Any = None) -> float | None:
    if value is None:
        return None
    number = need(value, int, float)
    places = 0 if digits is None else int(min(need(digits, int, float), 15))
    if not math.isfinite(number) or abs(number) > 1e15:
        return float(number)
    if places <= 0:
        return tidy(math.floor(number + 0.5))
    exact = Decimal(number).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return tidy(float(exact))


def _extreme(is_greatest: bool) -> QueryFunction:
    def call(scope: QueryScope, *values: Any) -> Any:
        members = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        some = [member for member in members if member is not None]
        scope.limit.spend(len(some))
        return (max if is_greatest else min)(some, key=key_of, default=None)

    return QueryFunction(call, 0, MOST_ARGUMENTS)


def _extreme_by(is_greatest: bool) -> QueryFunction:
    def call(scope: QueryScope, members: Any, ask: Any) -> Any:
        if members is None or not callable(ask):
            return None
        pairs = [(ask(member), member) for member in need(members, list, tuple)]
        some = [(key_of(value), member) for value, member in pairs if value is not None]
        if not some:
            return pairs[0][1] if pairs else None
        return (max if is_greatest else min)(some, key=lambda pair: pair[0])[1]

    return QueryFunction(call, 2, 2)


def _combine(operator: str, first: Any, second: Any) -> Any:
    if operator == "&":
        return is_truthy(first) and is_truthy(second)
    if operator == "|":
        return is_truthy(first) or is_truthy(second)
    return calculate(operator, first, second)


def _reduce(scope: QueryScope, members: Any, operand: Any) -> Any:
    if members is None or operand is None:
        return None
    values = need(members, list, tuple)
    scope.limit.spend(len(values))
    if not values:
        return None
    if callable(operand):
        rest = [value for value in values[1:] if value is not None]
        return fold(operand, rest, values[0])
    if need(operand, str) not in tuple(_OPERATORS):
        raise NoSuchCall
    return fold(lambda first, second: _combine(operand, first, second), values)


def _fold_list(operator: str) -> QueryFunction:
    def call(scope: QueryScope, value: Any) -> Any:
        return _reduce(scope, value, operator) if isinstance(value, list | tuple) else value

    return QueryFunction(call, 1, 1)


def _average(scope: QueryScope, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return calculate("/", _reduce(scope, value, "+"), len(value)) if value else None


NUMBERS = {
    "round": QueryFunction(_round, 1, 2, (0,)),
    "trunc": _each(math.trunc),
    "floor": _each(math.floor),
    "ceil": _each(math.ceil),
    "min": _extreme(False),
    "max": _extreme(True),
    "minby": _extreme_by(False),
    "maxby": _extreme_by(True),
    "reduce": QueryFunction(_reduce, 2, 2, (1,)),
    "sum": _fold_list("+"),
    "product": _fold_list("*"),
    "average": QueryFunction(_average, 1, 1),
}
