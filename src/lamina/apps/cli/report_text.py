"""Pieces of plain-text reports: tables, rows of items, times, first lines, damage, and the cost of
history whose cache has expired.
"""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime

from rich.cells import cell_len

from lamina.apps.views.journal_log import describe_inclusion, describe_priority
from lamina.apps.views.plain_text import shorten, write_dollars
from lamina.core.text.money import dollars
from lamina.core.values.damage import Damage
from lamina.core.values.request import ContextItem, HistoryPrice

# The colours of the ways in which an item joined a session.
BADGES = {"always": "green", "manual": "cyan", "agent": "magenta"}
# The maximum length of a shortened line.
WIDTH = 100
ITEM_COLUMNS = ("item", "placed in", "tokens", "priority", "included", "why")


def moment(at: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(at).strftime(form)


def markdown_table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table that is readable as plain text."""
    cells = [tuple(cell.replace("|", r"\|") for cell in row) for row in (head, *rows)]
    if len(cells) == 1:
        return []
    numbers = {place for place, cell in enumerate(cells[1]) if cell.replace(",", "").isdigit()}
    first, *others = pad_cells(cells, numbers)
    rules = [
        f"{'-' * (cell_len(cell) + 1)}{':' if place in numbers else '-'}"
        for place, cell in enumerate(first)
    ]
    lines = [f"## {title}", ""] if title else []
    lines += [f"| {' | '.join(first)} |", f"|{'|'.join(rules)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in others), ""]


def pad_cells(rows: Sequence[tuple[str, ...]], right: Container[int]) -> list[list[str]]:
    """Pad the cells of each column to one width; columns in `right` are right-aligned."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return [
        [
            _pad(cell, width, is_right=place in right)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]


def _pad(cell: str, width: int, *, is_right: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return f"{blanks}{cell}" if is_right else f"{cell}{blanks}"


def item_cells(item: ContextItem, placement: str) -> tuple[str, ...]:
    """An item of a request, as a row for ITEM_COLUMNS."""
    worth, inclusion = describe_priority(item), describe_inclusion(item)
    return item.label, placement, f"{item.tokens:,}", worth, inclusion, item.reason


def damage_lines(damages: Sequence[Damage]) -> list[str]:
    """A section on the damage in a file; empty without damage."""
    return [f"## Damage ({len(damages)})", "", *map(damage_line, damages)] if damages else []


def damage_line(damage: Damage) -> str:
    return f"- {damage.kind}: {describe_damage(damage)}"


def describe_damage(damage: Damage) -> str:
    """What is wrong and where: a row of a database, or a line of a file."""
    return f"row {damage.row:,}: {damage.detail}" if damage.row else str(damage)


def first_line(text: str) -> str:
    """The first line of a text, and how many lines follow."""
    first, *rest = text.splitlines() or [""]
    more = f" …(+{len(rest)} line{'s' * (len(rest) > 1)})" if rest else ""
    return shorten(first, WIDTH) + more


# In US dollars; rereading history for less is not announced unless the person asks.
NOTABLE = 0.01


def is_price_news(price: HistoryPrice | None) -> bool:
    """Whether to announce it: every summary, and history that costs something to keep."""
    return price is not None and (price.is_summarised or (price.keep_cost or 0.0) >= NOTABLE)


def describe_history_price(price: HistoryPrice | None) -> list[str]:
    """The cost of keeping history, and of a summary instead, in a sentence each."""
    if price is None:
        return []
    kept = f"{price.tokens:,} tokens{_for(price.keep_cost)}"
    if not price.older_tokens:
        return [f"History is processed again: {kept}."]
    older, length = f"{price.older_tokens:,} tokens", f"{price.summary_tokens:,}"
    if price.is_summarised:
        return [
            f"A summary of {length} tokens replaces {older} of history"
            f"{_now_and_later(price, 'it costs', 'saves')}.",
            f"Without it, history would be processed again: {kept}.",
        ]
    kept = f"History is processed again: {kept}."
    if not price.summary_cost:
        return [kept]
    return [kept, f"A summary of {older} of it{_now_and_later(price, 'would cost', 'save')}."]


def _now_and_later(price: HistoryPrice, costs: str, saves: str) -> str:
    if not price.summary_cost:
        return ""
    colon = ": " if price.is_summarised else " "
    now, later = write_dollars(price.summary_cost), write_dollars(price.summary_saving)
    return f"{colon}{costs} {now} now and {saves} {later} per request"


def _for(cost: float | None) -> str:
    if cost is None:
        return ", cost unknown"
    return f" for {dollars(cost)}" if cost else ""
