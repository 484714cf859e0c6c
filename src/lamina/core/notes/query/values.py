"""Defines the value types specific to queries: links, web links and time spans.

Law: values are compared and shown by their meaning, never by their spelling. Everything else is
plain: None, booleans, numbers, strings, dates without a zone, lists and mappings.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

LinkTarget = Literal["file", "header", "block"]
ValueType = Literal[
    "null", "boolean", "number", "string", "date", "duration", "link", "array", "object",
    "function", "widget",
]  # fmt: skip


class PageLink(Struct, frozen=True, kw_only=True):
    """A link to a note or a part of it. `path` is the path of the note it resolves to; if none, the
    name as spelled."""

    path: str
    target: LinkTarget = "file"
    subpath: str = ""
    display: str = ""
    is_embed: bool = False

    def called(self, display: str) -> "PageLink":
        return replace(self, display=display)


class WebLink(Struct, frozen=True):
    """A link to a web page."""

    url: str
    display: str


class TimeSpan(Struct, frozen=True):
    """A time span in years, months, weeks, days, hours, minutes, seconds and milliseconds."""

    units: tuple[float, ...]


def type_of(value: Any) -> ValueType:
    """Return the type of a value, under Dataview's names."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case datetime():
            return "date"
        case TimeSpan():
            return "duration"
        case PageLink():
            return "link"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case WebLink():
            return "widget"
    return "function" if isinstance(value, Callable) else "null"  # type: ignore[arg-type]


def tidy(number: float) -> float:
    """Return a number as displayed: whole numbers without a decimal point, no digits beyond its
    precision."""
    if isinstance(number, int):
        return number if abs(number) < 1 << 53 else float(min(max(number, -(10**300)), 10**300))
    return int(number) if number == number and abs(number) < 1e15 and number % 1 == 0 else number
