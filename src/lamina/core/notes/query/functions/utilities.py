"""Functions about what is missing, about dates and spans, and about links themselves."""

import hashlib
from datetime import datetime
from typing import Any

from lamina.core.notes.query.date_format import format_date, format_span
from lamina.core.notes.query.functions.query_function import (
    NoSuchCall,
    QueryFunction,
    QueryScope,
    need,
)
from lamina.core.notes.query.value_order import is_truthy
from lamina.core.notes.query.value_text import number_text, text_of
from lamina.core.notes.query.values import PageLink, TimeSpan

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
