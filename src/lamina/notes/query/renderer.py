"""The result of a query as Markdown: a list or a table.

Laws: the same result gives the same text. A value stays in its cell, whatever it holds: on one
line, with bars escaped, cut if it is very long. The text says what is cut or not shown.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from lamina.notes.query.result import QueryResult
from lamina.notes.query.value_order import MOST_DEEP

# The most characters of a cell; longer ones are cut.
MOST_IN_CELL = 300
NONE_FIT = "No notes fit this query."
_ID_HEAD = "file"
_NO_KEY = "(none)"
# Including line ends outside Python, and terminal control characters.
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_BAR = re.compile(r"(?<!\\)(\\*+)\|")


def render_result(result: QueryResult) -> str:
    """The result as a Markdown list or table, with a line for what is not shown."""
    remarks = [f"({_one_line(warning)})" for warning in result.warnings]
    count = sum(len(group.rows) for group in result.groups)
    if result.fits == 0:
        return "\n\n".join([NONE_FIT, *remarks])
    if rest := result.fits - count:
        notes = "note fits" if rest == 1 else "notes fit"
        remarks.insert(0, f"({rest:,} more {notes} this query; LIMIT says how many are shown.)")
    lines = _table(result) if result.shape == "table" else _list(result)
    return "\n\n".join(["\n".join(lines), *remarks])


def _table(result: QueryResult) -> Iterator[str]:
    heads = [_ID_HEAD] * result.with_id + list(result.heads)
    if result.group_head is not None:
        heads.insert(0, result.group_head)
    yield _row(map(show_value, heads))
    yield "|" + "---|" * len(heads)
    for group in result.groups:
        key = [show_value(group.key)] * (result.group_head is not None)
        for row in group.rows:
            id_cell = [show_value(row.path)] * result.with_id
            yield _row([*key, *id_cell, *map(show_value, row.cells)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape_bars, cells))} |"


def _list(result: QueryResult) -> Iterator[str]:
    indent = "" if result.group_head is None else "  "
    for group in result.groups:
        if result.group_head is not None:
            yield f"- {show_value(group.key) or _NO_KEY} ({group.size:,})"
        for row in group.rows:
            parts = [show_value(row.path)] * result.with_id
            parts += filter(None, map(show_value, row.cells))
            yield f"{indent}- {': '.join(parts) or _NO_KEY}"


def _escape_bars(cell: str) -> str:
    # Backslashes before a bar are doubled: otherwise some readers would not see the bar as escaped.
    return _BAR.sub(lambda match: match[1] * 2 + r"\|", cell)


# -- values --------------------------------------------------------------------------------------


def show_value(value: Any) -> str:
    """A value on one line; null is empty."""
    return _one_line(_show(value, 0))


def _one_line(text: str) -> str:
    # No more is processed than can be shown.
    line = _UNSEEN.sub(" ", text[: 2 * MOST_IN_CELL]).strip()
    is_cut = len(line) > MOST_IN_CELL or len(text) > 2 * MOST_IN_CELL
    return line[:MOST_IN_CELL].rstrip() + "…" if is_cut else line


def _show(value: Any, deep: int) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case datetime():
            midnight = value.time() == datetime.min.time()
            return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
        case int():
            return _show_integer(value)
        case float():
            return "" if value != value else repr(value)
        case list() | tuple() if deep < MOST_DEEP:
            return _show_several((_show(part, deep + 1) for part in value), len(value), "[]", deep)
        case dict() if deep < MOST_DEEP:
            pairs = (f"{name}: {_show(member, deep + 1)}" for name, member in value.items())
            return _show_several(pairs, len(value), "{}", deep)
    return "…"


def _show_integer(value: int) -> str:
    # Python refuses to print very long integers.
    return str(value) if value.bit_length() < 1_000 else f"a number of {value.bit_length():,} bits"


def _show_several(parts: Iterable[str], size: int, brackets: str, deep: int) -> str:
    """As many comma-separated parts as fit in a cell; in brackets if nested."""
    texts: list[str] = []
    # Leaves room for the count of the others, so that it is not cut off.
    room = MOST_IN_CELL - 40
    for part in parts:
        texts.append(part if len(part) <= room else part[: max(room, 0)] + "…")
        room -= len(part) + 2
        if room <= 0:
            break
    listing = ", ".join(texts)
    if size > len(texts):
        listing += f" and {size - len(texts):,} more"
    return f"{brackets[0]}{listing}{brackets[1]}" if deep else listing
