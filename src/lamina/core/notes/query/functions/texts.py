"""Functions about texts."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from lamina.core.notes.query.functions.query_function import QueryFunction, QueryScope, need
from lamina.core.notes.query.patterns import PatternRefused, SafePattern, compile_pattern
from lamina.core.notes.query.value_order import normalize_text
from lamina.core.notes.query.value_text import MOST_TEXT
from lamina.core.notes.query.work_limit import RowError

# A pattern costs more than a comparison.
_PATTERN_STEPS = 20


def _of_texts(
    call: Callable[..., Any], least: int, most: int, otherwise: Any = None, by_member: int = 0
) -> QueryFunction:
    """A function whose value is `otherwise` if anything that it is given is null."""

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
    return result[:MOST_TEXT]


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
    return joined[:MOST_TEXT]


def _starts(scope: QueryScope, text: Any, part: Any) -> bool:
    return normalize_text(need(text, str)).startswith(normalize_text(need(part, str)))


def _ends(scope: QueryScope, text: Any, part: Any) -> bool:
    return normalize_text(need(text, str)).endswith(normalize_text(need(part, str)))


def _pad(is_left: bool) -> Callable[..., str]:
    def call(scope: QueryScope, text: Any, length: Any, padding: Any = " ") -> str:
        whole, filling = need(text, str), need(padding, str)
        missing = min(int(need(length, int, float)), MOST_TEXT) - len(whole)
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
