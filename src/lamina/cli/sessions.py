"""`lamina sessions`: what is kept, and what it came to."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.cli.terminal_text import one_line, visible
from lamina.faces.plain_text import format_json
from lamina.faces.session_list import SessionRow

NARROW = 96
# What gives way where there is no room for all of it, in this order, and how much of it stays.
SHRINKING = (
    ("what it is about", 20), ("workspace", 10), ("session", 24), ("what it is about", 16),
    ("session", 16), ("what it is about", 12), ("session", 8), ("what it is about", 1),
)  # fmt: skip
FIGURES: dict[str, Callable[[SessionRow], str]] = {
    "messages": lambda row: f"{row.messages:,}",
    "in": lambda row: f"{row.usage.input:,}",
    "cached": lambda row: f"{row.usage.cached:,}",
    "out": lambda row: f"{row.usage.output:,}",
    "$": lambda row: f"{row.cost:.4f}" if row.cost else "-",
}


def show_sessions(rows: list[SessionRow], as_json: bool, everywhere: bool = False) -> None:
    console = Console()
    if as_json:
        console.out(format_json(rows))
        return
    if not rows:
        console.print("No sessions here yet. --all looks in every workspace.")
        return
    is_narrow = console.width < NARROW
    # On a narrow screen what it is about matters more than every figure.
    figures = ("in", "cached", "$") if is_narrow else tuple(FIGURES)
    form = "%m-%d %H:%M" if is_narrow else "%Y-%m-%d %H:%M"
    columns = {
        "session": [visible(row.session) or "-" for row in rows],
        **({"workspace": [visible(row.workspace) for row in rows]} if everywhere else {}),
        "what it is about": [_about(row) for row in rows],
        **{heading: [FIGURES[heading](row) for row in rows] for heading in figures},
        "written": [_when(row, form) for row in rows],
    }
    widths = _widths(columns, console.width)
    table = Table(box=None, expand=True)
    for heading, width in widths.items():
        if heading == "what it is about":
            table.add_column(heading, ratio=1, no_wrap=True, overflow="ellipsis")
            continue
        justify: Literal["left", "right"] = "right" if heading in figures else "left"
        table.add_column(heading, justify=justify, width=width, no_wrap=True, overflow="ellipsis")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table)
    for row in rows:
        if not row.session:
            typer.echo(visible(f"{row.workspace}: {row.problem}"), err=True)


def _when(row: SessionRow, form: str) -> str:
    """When it was written; empty if it cannot be read, and nobody knows."""
    return datetime.fromtimestamp(row.written).strftime(form) if row.written else ""


def _about(row: SessionRow) -> str:
    if not row.session:
        return "(cannot be read: see below)"
    about = one_line(row.problem or row.name or "-")
    if row.open:
        about = f"(not answered yet) {about}"
    if row.damage:
        about = f"(damaged in {row.damage} place{'s' * (row.damage > 1)}) {about}"
    return about


def _widths(columns: Mapping[str, Sequence[str]], screen: int) -> dict[str, int]:
    """How wide each column is. Figures and dates stand whole. Ids do if there is room for them and
    for a few words of what it is about, which gets the rest; else they end in an ellipsis, as the
    beginning of an id is enough to name it."""
    widths = {
        heading: max(cell_len(cell) for cell in (heading, *cells))
        for heading, cells in columns.items()
    }
    # One blank on both sides of every column.
    excess = sum(widths.values()) + 2 * len(widths) - screen
    for heading, least in SHRINKING:
        if heading in widths and excess > 0:
            cut = min(excess, max(widths[heading] - least, 0))
            widths[heading] -= cut
            excess -= cut
    return widths
