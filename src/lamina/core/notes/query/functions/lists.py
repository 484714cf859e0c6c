"""Functions about lists and objects, and about what contains what."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.core.notes.query.functions.constructors import MOST_ARGUMENTS
from lamina.core.notes.query.functions.query_function import (
    NoSuchCall,
    QueryFunction,
    QueryScope,
    need,
)
from lamina.core.notes.query.operators import MOST_MEMBERS
from lamina.core.notes.query.value_order import fold_case, is_truthy, key_of, normalize_text
from lamina.core.notes.query.value_text import MOST_TEXT, text_of
from lamina.core.notes.query.work_limit import RowError

_LISTS = (list, tuple)


def _contains(
    scope: QueryScope, whole: Any, part: Any, change: Callable[[str], str], is_exact: bool
) -> bool:
    scope.limit.spend(1)
    match whole, part:
        case (list() | tuple(), _) if is_exact:
            key = key_of(part)
            return any(key_of(member) == key for member in whole)
        case (list() | tuple(), _):
            return any(_contains(scope, member, part, change, False) for member in whole)
        case (str(), str()):
            return change(part) in change(whole)
        case (Mapping(), str()):
            return part in whole
    return key_of(whole) == key_of(part)


def _container(change: Callable[[str], str], is_exact: bool = False) -> QueryFunction:
    def call(scope: QueryScope, whole: Any, part: Any) -> bool:
        return _contains(scope, whole, part, change, is_exact)

    return QueryFunction(call, 2, 2, (1,))


def _contains_word(scope: QueryScope, whole: Any, word: Any) -> bool | None:
    if whole is None or word is None:
        return None
    pattern = rf"\b{re.escape(need(word, str))}\b"
    return re.search(pattern, need(whole, str), re.IGNORECASE) is not None


def _extract(scope: QueryScope, value: Any, *names: Any) -> dict[str, Any]:
    whole: Mapping[str, Any] = need(value, Mapping)
    return {need(name, str): whole.get(name) for name in names}


def _sort(scope: QueryScope, members: Any, ask: Any = None) -> Any:
    if not isinstance(members, _LISTS):
        return members
    scope.limit.spend(len(members))
    asked = ask if callable(ask) else (lambda member: member)
    return tuple(sorted(members, key=lambda member: key_of(asked(member))))


def _reverse(scope: QueryScope, value: Any) -> Any:
    return value[::-1] if isinstance(value, (str, *_LISTS)) else value


def _length(scope: QueryScope, value: Any) -> int:
    return 0 if value is None else len(need(value, str, Mapping, *_LISTS))


def _nonnull(scope: QueryScope, *values: Any) -> tuple[Any, ...]:
    members = values[0] if len(values) == 1 and isinstance(values[0], _LISTS) else values
    return tuple(member for member in members if member is not None)


def _judge(judge: Callable[[list[bool]], bool]) -> QueryFunction:
    def call(scope: QueryScope, *values: Any) -> bool:
        members: Sequence[Any]
        if len(values) == 2 and isinstance(values[0], _LISTS) and callable(values[1]):
            members = [values[1](member) for member in values[0]]
        elif len(values) == 1 and isinstance(values[0], _LISTS):
            members = values[0]
        else:
            members = values
        scope.limit.spend(len(members))
        return judge([is_truthy(member) for member in members])

    return QueryFunction(call, 0, MOST_ARGUMENTS)


def _join(scope: QueryScope, value: Any, separator: Any = None) -> str:
    between = ", " if separator is None else need(separator, str)
    if not isinstance(value, _LISTS):
        return text_of(value)
    scope.limit.spend(len(value))
    return between.join(map(text_of, value))[:MOST_TEXT]


def _filter(scope: QueryScope, members: Any, ask: Any) -> Any:
    if members is None:
        return None
    if not callable(ask):
        raise NoSuchCall
    return tuple(member for member in need(members, *_LISTS) if is_truthy(ask(member)))


def _map(scope: QueryScope, members: Any, ask: Any) -> Any:
    if members is None:
        return None
    if not callable(ask):
        raise NoSuchCall
    return tuple(ask(member) for member in need(members, *_LISTS))


def _flat(scope: QueryScope, members: Any, depth: Any = 1) -> Any:
    if members is None:
        return None
    flat = tuple(need(members, *_LISTS))
    for _ in range(max(0, min(int(need(depth, int, float)), 20))):
        if not any(isinstance(member, _LISTS) for member in flat):
            break
        inner = (member if isinstance(member, _LISTS) else (member,) for member in flat)
        flat = tuple(value for part in inner for value in part)
        scope.limit.spend(len(flat))
        if len(flat) > MOST_MEMBERS:
            raise RowError(f"a list has at most {MOST_MEMBERS:,} members")
    return flat


def _slice(scope: QueryScope, members: Any, start: Any = None, end: Any = None) -> Any:
    if members is None:
        return None
    first, last = (
        None if place is None else int(need(place, int, float)) for place in (start, end)
    )
    return tuple(need(members, *_LISTS)[first:last])


def _unique(scope: QueryScope, members: Any) -> Any:
    if members is None:
        return None
    first: dict[Any, Any] = {}
    for member in need(members, *_LISTS):
        first.setdefault(key_of(member), member)
    return tuple(first.values())


LISTS = {
    "contains": _container(normalize_text),
    "icontains": _container(fold_case),
    "econtains": _container(normalize_text, is_exact=True),
    "containsword": QueryFunction(_contains_word, 2, 2, (0, 1)),
    "extract": QueryFunction(_extract, 1, MOST_ARGUMENTS, (0,)),
    "sort": QueryFunction(_sort, 1, 2),
    "reverse": QueryFunction(_reverse, 1, 1),
    "length": QueryFunction(_length, 1, 1),
    "nonnull": QueryFunction(_nonnull, 0, MOST_ARGUMENTS),
    "firstvalue": QueryFunction(
        lambda scope, *values: next(iter(_nonnull(scope, *values)), None), 0, MOST_ARGUMENTS
    ),
    "all": _judge(all),
    "any": _judge(any),
    "none": _judge(lambda members: not any(members)),
    "join": QueryFunction(_join, 1, 2),
    "filter": QueryFunction(_filter, 2, 2),
    "map": QueryFunction(_map, 2, 2),
    "flat": QueryFunction(_flat, 1, 2),
    "slice": QueryFunction(_slice, 1, 3),
    "unique": QueryFunction(_unique, 1, 1),
}
