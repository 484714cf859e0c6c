"""Renders the result of a query as Markdown: a list, a table, tasks, or a list by day.

Laws: the same result renders to the same text. A value stays in its cell, whatever it contains: on
one line, with bars escaped, truncated if very long. The text states what is truncated or not shown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from lamina.core.notes.query.operators import MAX_DEEP, link_text, number_text, span_text
from lamina.core.notes.query.rows import Item, OverlaidRow, QueryResult, QueryRow, item_of
from lamina.core.notes.query.values import PageLink, TimeSpan, WebLink

# The maximum length of a cell in characters; longer ones are truncated.
MAX_IN_CELL = 300
_NO_KEY = "(none)"
# Includes line ends other than Python's, and terminal control characters.
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_BAR = re.compile(r"(?<!\\)(\\*+)\|")
_PLURALS = {"note": "notes fit", "task": "tasks fit", "group": "groups fit", "row": "rows fit"}


def render_result(result: QueryResult) -> str:
    """Render the result as Markdown, with a line about what is not shown."""
    remarks = [f"({_one_line(warning)})" for warning in result.warnings]
    if not result.rows and not result.fits:
        return "\n\n".join([f"No {_PLURALS[result.unit]} this query.", *remarks])
    if rest := result.fits - len(result.rows) - result.failed:
        rows = f"{result.unit} fits" if rest == 1 else _PLURALS[result.unit]
        remarks.insert(0, f"({rest:,} more {rows} this query; LIMIT says how many are shown.)")
    lines = _SHAPES[result.shape](result)
    return "\n\n".join(["\n".join(lines), *remarks])


def _table(result: QueryResult) -> Iterator[str]:
    heads = [result.id_head] * result.with_id + list(result.heads)
    yield _row(map(show_value, heads))
    yield "|" + "---|" * len(heads)
    for row in result.rows:
        id_cell = [show_value(row.id)] * result.with_id
        yield _row([*id_cell, *map(show_value, row.cells)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape_bars, cells))} |"


def _list(result: QueryResult) -> Iterator[str]:
    for row in result.rows:
        if row.rows is None:
            parts = [show_value(row.id)] * result.with_id
            parts += filter(None, map(show_value, row.cells))
            yield f"- {': '.join(parts) or _NO_KEY}"
        else:
            yield from _list_group(row, result.with_id)


def _list_group(row: QueryRow, with_id: bool) -> Iterator[str]:
    """Yield a group with its size and its contents: its notes, if the query specifies nothing
    else."""
    members = row.rows or ()
    value = row.cells[0] if row.cells else tuple(member.id for member in members)
    if not with_id:
        yield f"- {show_value(value) or _NO_KEY}"
        return
    head = f"- {show_value(row.id) or _NO_KEY} ({row.size:,})"
    if isinstance(value, list | tuple):
        yield head
        yield from (f"  - {show_value(member) or _NO_KEY}" for member in value[:MAX_MEMBERS])
        if len(value) > MAX_MEMBERS:
            yield f"  - and {len(value) - MAX_MEMBERS:,} more"
    else:
        text = show_value(value)
        yield f"{head}: {text}" if text else head


# -- tasks -----------------------------------------------------------------------------------------


def _tasks(result: QueryResult) -> Iterator[str]:
    grouped = [row for row in result.rows if row.rows is not None]
    yield from _task_groups(grouped, "") if grouped else _tasks_by_note(result.rows)


def _task_groups(rows: Iterable[QueryRow], indent: str) -> Iterator[str]:
    for row in rows:
        yield f"{indent}- {show_value(row.id) or _NO_KEY} ({row.size:,})"
        members = row.rows or ()
        inner = [member for member in members if member.rows is not None]
        if inner and len(indent) < 2 * MAX_DEEP:
            yield from _task_groups(inner, indent + "  ")
        else:
            yield from _task_lines([member.item for member in members], indent + "  ")


def _tasks_by_note(rows: Iterable[QueryRow]) -> Iterator[str]:
    """Yield tasks below their notes, which are in order of first appearance."""
    notes: dict[str, list[Item | None]] = {}
    for row in rows:
        notes.setdefault(str(row.id), []).append(row.item)
    for path, items in notes.items():
        yield f"- {show_value(path)}"
        yield from _task_lines(items, "  ")


def _task_lines(items: list[Item | None], indent: str) -> Iterator[str]:
    """Yield tasks with their children. A child of another task is shown there."""
    tasks = [item for item in items if item is not None]
    below = {id(inner) for task in tasks for inner in _below(task)}
    for task in tasks:
        if id(task) not in below:
            yield from _item_lines(task, indent)


def _below(item: Item) -> Iterator[Item]:
    for child in item.children:
        yield child
        yield from _below(child)


def _item_lines(item: Item, indent: str) -> Iterator[str]:
    yield f"{indent}- {_one_line(_show_item(item))}"
    for child in item.children:
        yield from _item_lines(child, indent + "  ")


def _show_item(item: Item) -> str:
    return f"[{item.item.status}] {item.item.text}" if item.is_task else item.item.text


# -- days ------------------------------------------------------------------------------------------


def _calendar(result: QueryResult) -> Iterator[str]:
    """Yield the entries of each day, in order."""
    days: dict[str, list[str]] = {}
    for row in result.rows:
        date = row.cells[0]
        if isinstance(date, datetime):
            days.setdefault(date.date().isoformat(), []).append(show_value(row.id) or _NO_KEY)
    for day in sorted(days):
        yield f"- {day}"
        yield from (f"  - {name}" for name in days[day])
    undated = sum(row.cells[0] is None for row in result.rows)
    others = sum(not isinstance(row.cells[0], datetime | None) for row in result.rows)
    if undated:
        yield f"- no day ({undated:,})"
    if others:
        yield f"- no date in {result.heads[0]} ({others:,})"


MAX_MEMBERS = 200
_SHAPES = {"table": _table, "list": _list, "task": _tasks, "calendar": _calendar}


def _escape_bars(cell: str) -> str:
    # Backslashes before a bar are doubled: otherwise some readers would not treat the bar as
    # escaped.
    return _BAR.sub(lambda match: match[1] * 2 + r"\|", cell)


# -- values --------------------------------------------------------------------------------------


def show_value(value: Any) -> str:
    """Return a value on one line; null is empty."""
    return _one_line(_show(value, 0))


def _one_line(text: str) -> str:
    # Only as much is processed as can be shown.
    line = _UNSEEN.sub(" ", text[: 2 * MAX_IN_CELL]).strip()
    is_cut = len(line) > MAX_IN_CELL or len(text) > 2 * MAX_IN_CELL
    return line[:MAX_IN_CELL].rstrip() + "…" if is_cut else line


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
            return "" if value != value else number_text(value)
        case TimeSpan():
            return span_text(value)
        case PageLink():
            return link_text(value, value.display)
        case WebLink():
            return f"[{value.display}]({value.url})"
        case list() | tuple() if deep < MAX_DEEP:
            return _show_several((_show(part, deep + 1) for part in value), len(value), "[]", deep)
        case Mapping() if deep < MAX_DEEP:
            return _show_mapping(value, deep)
    return "a function" if callable(value) else "…"


def _show_mapping(value: Mapping[str, Any], deep: int) -> str:
    """Return a list item as displayed, a note as a link to it, and any other object by its
    parts."""
    row = value.front if isinstance(value, OverlaidRow) else value
    if (item := item_of(row)) is not None:
        return _show_item(item)
    file = value.get("file")
    if isinstance(file, Mapping) and isinstance(link := file.get("link"), PageLink):
        return link_text(link)
    pairs = (f"{name}: {_show(member, deep + 1)}" for name, member in value.items())
    return _show_several(pairs, len(value), "{}", deep)


def _show_integer(value: int) -> str:
    # Python refuses to print very long integers.
    return str(value) if value.bit_length() < 1_000 else f"a number of {value.bit_length():,} bits"


def _show_several(parts: Iterable[str], size: int, brackets: str, deep: int) -> str:
    """Return as many comma-separated parts as fit in a cell; in brackets if nested."""
    texts: list[str] = []
    # Reserves room for the count of the others, so that it is not truncated.
    room = MAX_IN_CELL - 40
    for part in parts:
        texts.append(part if len(part) <= room else part[: max(room, 0)] + "…")
        room -= len(part) + 2
        if room <= 0:
            break
    listing = ", ".join(texts)
    if size > len(texts):
        listing += f" and {size - len(texts):,} more"
    return f"{brackets[0]}{listing}{brackets[1]}" if deep else listing
