"""Functions that make values: lists, objects, dates, spans, numbers, texts and links."""

import re
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lamina.core.notes.query.date_format import read_by_format
from lamina.core.notes.query.dates import read_date, read_span
from lamina.core.notes.query.functions.query_function import (
    NoSuchCall,
    QueryFunction,
    QueryScope,
    need,
)
from lamina.core.notes.query.value_text import text_of
from lamina.core.notes.query.values import PageLink, TimeSpan, WebLink, tidy, type_of

_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
MOST_ARGUMENTS = 200


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
    "object": QueryFunction(_object, 0, MOST_ARGUMENTS),
    **dict.fromkeys(("list", "array"), QueryFunction(lambda _, *values: values, 0, MOST_ARGUMENTS)),
    "date": QueryFunction(_date, 1, 2, (0,)),
    "dur": QueryFunction(_dur, 1, 1, (0,)),
    "number": QueryFunction(_number, 1, 1, (0,)),
    "string": QueryFunction(lambda _, value: text_of(value), 1, 1),
    "link": QueryFunction(_link, 1, 2, (0, 1)),
    "embed": QueryFunction(_embed, 1, 2, (0,)),
    "elink": QueryFunction(_elink, 1, 2, (0,)),
    "typeof": QueryFunction(lambda _, value: type_of(value), 1, 1),
}
