"""Implements the query functions by family; `FUNCTIONS` contains all of them.

Law: a function that gets a list in place of a single value is called for each member and returns a
list; of several lists, the shortest determines the length.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce as fold
from functools import wraps
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.notes.query.dates import (
    format_date,
    format_span,
    read_by_format,
    read_date,
    read_span,
)
from lamina.core.notes.query.operators import (
    MAX_MEMBERS,
    MAX_TEXT,
    calculate,
    fold_case,
    is_truthy,
    key_of,
    normalize_text,
    number_text,
    text_of,
)
from lamina.core.notes.query.regular_expressions import PatternRefused, SafePattern, compile_pattern
from lamina.core.notes.query.values import PageLink, TimeSpan, WebLink, tidy, type_of
from lamina.core.notes.query.work_limit import RowError, WorkLimit


class QueryScope(Protocol):
    """Lookups for functions in the notes that a query runs over."""

    limit: WorkLimit

    @property
    def zone(self) -> tzinfo | None:
        """The zone in which times are shown."""
        ...

    def make_link(self, spelling: str) -> PageLink:
        """Return the link for `[[spelling]]` in the note that contains the query."""
        ...

    def page_of(self, link: PageLink) -> Mapping[str, Any] | None:
        """Return the note that a link resolves to, with its fields."""
        ...

    def day_of(self, link: PageLink) -> datetime | None:
        """Return the date of a link's note."""
        ...


class QueryFunction(Struct, frozen=True):
    """A function that accepts from `least` to `most` values; `by_member` lists the arguments for
    which it is called once per list member."""

    call: Callable[..., Any]
    least: int
    most: int
    by_member: tuple[int, ...] = ()


def call_function(name: str, function: QueryFunction, scope: QueryScope, values: list[Any]) -> Any:
    """Return the value of a function call.

    Raises:
        RowError: it has none for these values.
    """
    lists = [at for at in function.by_member if at < len(values) and _is_list(values[at])]
    if not lists:
        try:
            return function.call(scope, *values)
        except NoSuchCall:
            kinds = ", ".join(map(type_of, values))
            raise RowError(f"{name}() does not take {kinds or 'nothing'}") from None
    size = min(len(values[at]) for at in lists)
    scope.limit.spend(size)
    return tuple(
        call_function(
            name, function, scope,
            [value[place] if at in lists else value for at, value in enumerate(values)],
        )
        for place in range(size)
    )  # fmt: skip


class NoSuchCall(Exception):
    """Raised if a function does not accept such values."""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def need(value: Any, *kinds: type) -> Any:
    """Return the value if it is of one of these kinds.

    Raises:
        NoSuchCall: it is not.
    """
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return value
    raise NoSuchCall


_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
MAX_ARGUMENTS = 200


def _object(scope: QueryScope, *values: Any) -> dict[str, Any]:
    if len(values) % 2:
        raise NoSuchCall
    return {need(name, str): value for name, value in zip(values[::2], values[1::2], strict=True)}


def _date(scope: QueryScope, value: Any, pattern: Any = None) -> datetime | None:
    match value:
        case None | datetime():
            return value
        case str() if isinstance(pattern, str):
            return read_by_format(value, pattern)
        case str():
            return read_date(value.strip(), scope.zone)
        case PageLink():
            for spelling in (value.display, value.path.rsplit("/", 1)[-1].removesuffix(".md")):
                if (date := read_date(spelling, scope.zone)) is not None:
                    return date
            return scope.day_of(value)
    raise NoSuchCall


def _dur(scope: QueryScope, value: Any) -> TimeSpan | None:
    match value:
        case None | TimeSpan():
            return value
        case str():
            return read_span(value)
    raise NoSuchCall


def _number(scope: QueryScope, value: Any) -> float | None:
    match value:
        case bool():
            raise NoSuchCall
        case None | int() | float():
            return value
        case str():
            match = _NUMBER.search(value)
            if match is None:
                return None
            return tidy(float(match[0]) if "." in match[0] else int(match[0]))
    raise NoSuchCall


def _link(scope: QueryScope, value: Any, display: Any = None) -> PageLink | None:
    match value:
        case None:
            return None
        case str():
            link = scope.make_link(value)
        case PageLink():
            link = value
        case _:
            raise NoSuchCall
    return link if display is None else link.called(text_of(display))


def _embed(scope: QueryScope, value: Any, is_embed: Any = True) -> PageLink | None:
    return None if value is None else replace(need(value, PageLink), is_embed=bool(is_embed))


def _elink(scope: QueryScope, url: Any, display: Any = None) -> WebLink | None:
    if url is None:
        return None
    return WebLink(need(url, str), url if display is None else text_of(display))


CONSTRUCTORS = {
    "object": QueryFunction(_object, 0, MAX_ARGUMENTS),
    **dict.fromkeys(("list", "array"), QueryFunction(lambda _, *values: values, 0, MAX_ARGUMENTS)),
    "date": QueryFunction(_date, 1, 2, (0,)),
    "dur": QueryFunction(_dur, 1, 1, (0,)),
    "number": QueryFunction(_number, 1, 1, (0,)),
    "string": QueryFunction(lambda _, value: text_of(value), 1, 1),
    "link": QueryFunction(_link, 1, 2, (0, 1)),
    "embed": QueryFunction(_embed, 1, 2, (0,)),
    "elink": QueryFunction(_elink, 1, 2, (0,)),
    "typeof": QueryFunction(lambda _, value: type_of(value), 1, 1),
}


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

    return QueryFunction(call, 0, MAX_ARGUMENTS)


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

    return QueryFunction(call, 0, MAX_ARGUMENTS)


def _join(scope: QueryScope, value: Any, separator: Any = None) -> str:
    between = ", " if separator is None else need(separator, str)
    if not isinstance(value, _LISTS):
        return text_of(value)
    scope.limit.spend(len(value))
    return between.join(map(text_of, value))[:MAX_TEXT]


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
        if len(flat) > MAX_MEMBERS:
            raise RowError(f"a list has at most {MAX_MEMBERS:,} members")
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
    "extract": QueryFunction(_extract, 1, MAX_ARGUMENTS, (0,)),
    "sort": QueryFunction(_sort, 1, 2),
    "reverse": QueryFunction(_reverse, 1, 1),
    "length": QueryFunction(_length, 1, 1),
    "nonnull": QueryFunction(_nonnull, 0, MAX_ARGUMENTS),
    "firstvalue": QueryFunction(
        lambda scope, *values: next(iter(_nonnull(scope, *values)), None), 0, MAX_ARGUMENTS
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


# A pattern costs more than a comparison.
_PATTERN_STEPS = 20


def _of_texts(
    call: Callable[..., Any], least: int, most: int, otherwise: Any = None, by_member: int = 0
) -> QueryFunction:
    """Wrap a function so that it returns `otherwise` if any argument is null."""

    @wraps(call)
    def checked(scope: QueryScope, *values: Any) -> Any:
        if any(value is None for value in values):
            return otherwise
        return call(scope, *values)

    return QueryFunction(checked, least, most, tuple(range(by_member or most)))


def _matching(scope: QueryScope, source: str, act: Callable[[SafePattern], Any]) -> Any:
    scope.limit.spend(_PATTERN_STEPS)
    try:
        return act(compile_pattern(source))
    except PatternRefused as refusal:
        raise RowError(str(refusal)) from None


def _test(scope: QueryScope, source: Any, text: Any) -> bool:
    whole = need(text, str)
    return bool(_matching(scope, need(source, str), lambda pattern: pattern.search(whole)))


def _match(scope: QueryScope, source: Any, text: Any) -> bool:
    pattern = need(source, str)
    if not pattern.startswith("^") and not pattern.endswith("$"):
        pattern = f"^(?:{pattern})$"
    return _test(scope, pattern, text)


def _replace_matches(scope: QueryScope, text: Any, source: Any, replacement: Any) -> str:
    whole, filling = need(text, str), need(replacement, str)
    result: str = _matching(
        scope, need(source, str), lambda pattern: pattern.replace(whole, filling)
    )
    return result[:MAX_TEXT]


def _split(scope: QueryScope, text: Any, source: Any, limit: Any = None) -> tuple[str, ...]:
    whole = need(text, str)
    parts = _matching(scope, need(source, str), lambda pattern: pattern.split(whole))
    scope.limit.spend(len(parts))
    return tuple(parts[: None if limit is None else max(0, int(need(limit, int, float)))])


def _replace(scope: QueryScope, text: Any, part: Any, replacement: Any) -> str:
    whole, old, new = need(text, str), need(part, str), need(replacement, str)
    if len(new) > len(old) and len(whole) * len(new) > 10_000_000:
        raise RowError("the text would become too long")
    joined: str = whole.replace(old, new) if old else new.join(whole)
    return joined[:MAX_TEXT]


def _starts(scope: QueryScope, text: Any, part: Any) -> bool:
    return normalize_text(need(text, str)).startswith(normalize_text(need(part, str)))


def _ends(scope: QueryScope, text: Any, part: Any) -> bool:
    return normalize_text(need(text, str)).endswith(normalize_text(need(part, str)))


def _pad(is_left: bool) -> Callable[..., str]:
    def call(scope: QueryScope, text: Any, length: Any, padding: Any = " ") -> str:
        whole, filling = need(text, str), need(padding, str)
        missing = min(int(need(length, int, float)), MAX_TEXT) - len(whole)
        if missing <= 0 or not filling:
            return str(whole)
        tail: str = (filling * (missing // len(filling) + 1))[:missing]
        return f"{tail}{whole}" if is_left else f"{whole}{tail}"

    return call


def _substring(scope: QueryScope, text: Any, start: Any, end: Any = None) -> str:
    whole = need(text, str)
    places = [int(need(place, int, float)) for place in (start, len(whole) if end is None else end)]
    first, last = sorted(min(max(place, 0), len(whole)) for place in places)
    return str(whole[first:last])


def _truncate(scope: QueryScope, text: Any, length: Any, suffix: Any = "...") -> str:
    whole, tail, most = need(text, str), need(suffix, str), int(need(length, int, float))
    if len(whole) <= most:
        return str(whole)
    return f"{whole[: max(0, most - len(tail))]}{tail}"


def _lower(scope: QueryScope, text: Any) -> str:
    return str(need(text, str).lower())


def _upper(scope: QueryScope, text: Any) -> str:
    return str(need(text, str).upper())


TEXTS = {
    "regextest": _of_texts(_test, 2, 2, otherwise=False),
    "regexmatch": _of_texts(_match, 2, 2, otherwise=False),
    "regexreplace": _of_texts(_replace_matches, 3, 3),
    "replace": _of_texts(_replace, 3, 3),
    "lower": _of_texts(_lower, 1, 1),
    "upper": _of_texts(_upper, 1, 1),
    "split": _of_texts(_split, 2, 3, by_member=1),
    "startswith": _of_texts(_starts, 2, 2),
    "endswith": _of_texts(_ends, 2, 2),
    "padleft": _of_texts(_pad(is_left=True), 2, 3),
    "padright": _of_texts(_pad(is_left=False), 2, 3),
    "substring": _of_texts(_substring, 2, 3),
    "truncate": _of_texts(_truncate, 2, 3),
}


_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "INR": "₹", "CNY": "CN¥", "KRW": "₩"}


def _default(scope: QueryScope, value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _choice(scope: QueryScope, condition: Any, left: Any, right: Any) -> Any:
    return left if is_truthy(condition) else right


def _hash(scope: QueryScope, seed: Any, text: Any = "", variant: Any = 0) -> int:
    words = "\0".join(map(text_of, (seed, text, variant)))
    return int.from_bytes(hashlib.sha256(words.encode("utf-8", "replace")).digest()[:6], "big")


def _strip_time(scope: QueryScope, value: Any) -> datetime | None:
    if value is None:
        return None
    date: datetime = need(value, datetime)
    return date.replace(hour=0, minute=0, second=0, microsecond=0)


def _date_format(scope: QueryScope, value: Any, pattern: Any) -> str | None:
    return None if value is None else format_date(need(value, datetime), need(pattern, str))


def _duration_format(scope: QueryScope, value: Any, pattern: Any) -> str | None:
    return None if value is None else format_span(need(value, TimeSpan), need(pattern, str))


def _currency_format(scope: QueryScope, value: Any, currency: Any = "USD") -> str | None:
    if value is None:
        return None
    amount, code = need(value, int, float), need(currency, str).upper()
    if abs(amount) > 1e15 or amount != amount:
        return number_text(amount)
    digits = 0 if code in ("JPY", "KRW") else 2
    sign = _SIGNS.get(code, f"{code}\u00a0")
    return f"{'-' if amount < 0 else ''}{sign}{abs(amount):,.{digits}f}"


def _localtime(scope: QueryScope, value: Any) -> datetime | None:
    return None if value is None else need(value, datetime)


def _meta(scope: QueryScope, value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, PageLink):
        raise NoSuchCall
    return {
        "display": value.display or None,
        "embed": value.is_embed,
        "path": value.path,
        "subpath": value.subpath or None,
        "type": value.target,
    }


UTILITIES = {
    "default": QueryFunction(_default, 2, 2, (0, 1)),
    "ldefault": QueryFunction(_default, 2, 2),
    "choice": QueryFunction(_choice, 3, 3, (0,)),
    "hash": QueryFunction(_hash, 1, 3),
    "striptime": QueryFunction(_strip_time, 1, 1, (0,)),
    "dateformat": QueryFunction(_date_format, 2, 2, (0,)),
    "durationformat": QueryFunction(_duration_format, 2, 2, (0,)),
    "currencyformat": QueryFunction(_currency_format, 1, 2, (0,)),
    "localtime": QueryFunction(_localtime, 1, 1, (0,)),
    "meta": QueryFunction(_meta, 1, 1, (0,)),
    "display": QueryFunction(
        lambda _, value: value.display or text_of(value) if isinstance(value, PageLink) else value,
        1, 1, (0,),
    ),
}  # fmt: skip


FUNCTIONS: dict[str, QueryFunction] = {**CONSTRUCTORS, **NUMBERS, **LISTS, **TEXTS, **UTILITIES}
