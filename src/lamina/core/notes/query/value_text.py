"""Values as texts, the way queries join them: `"Due: " + due`.

Law: the form is Dataview's, so that what is cut out of such a text again is found. What a model
reads in tables and lists is made by the renderer.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lamina.core.notes.query.date_format import format_date
from lamina.core.notes.query.dates import UNITS, normalize_span
from lamina.core.notes.query.value_order import MOST_DEEP
from lamina.core.notes.query.values import PageLink, TimeSpan, WebLink, tidy

_DAY_FORMAT = "MMMM dd, yyyy"
_TIME_FORMAT = "h:mm a - MMMM dd, yyyy"
NULL_TEXT = "-"
# The most characters of a text that a query makes.
MOST_TEXT = 100_000


def text_of(value: Any, deep: int = 0) -> str:
    """A value as a text."""
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
        case list() | tuple() if deep < MOST_DEEP:
            listing = ", ".join(text_of(member, deep + 1) for member in value)[:MOST_TEXT]
            return f"[{listing}]" if deep else listing
        case Mapping() if deep < MOST_DEEP:
            pairs = (f"{name}: {text_of(value[name], deep + 1)}" for name in value)
            return f"{{ {', '.join(pairs)[:MOST_TEXT]} }}"
    return "<function>" if callable(value) else "…"


def number_text(number: float) -> str:
    number = tidy(number)
    if isinstance(number, int):
        return str(number)
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return names.get(repr(number), repr(number))


def span_text(span: TimeSpan) -> str:
    """A span in its units: `1 year, 2 days`."""
    units = zip(UNITS, normalize_span(span).units, strict=True)
    parts = [
        f"{number_text(amount)} {unit.removesuffix('s') if amount == 1 else unit}"
        for unit, amount in units
        if amount
    ]
    return ", ".join(parts) or "0 seconds"


def link_text(link: PageLink, display: str = "") -> str:
    """A link as Markdown; `display` is what is shown in its place."""
    mark = {"file": "", "header": "#", "block": "#^"}[link.target]
    tail = f"|{display}" if display else ""
    return f"{'!' if link.is_embed else ''}[[{link.path}{mark}{link.subpath}{tail}]]"


def _title(link: PageLink) -> str:
    title = link.path.rsplit("/", 1)[-1].removesuffix(".md")
    return f"{title} > {link.subpath}" if link.subpath else title
