"""`lamina sessions`: what is kept, and what it came to."""

from collections.abc import Callable
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Table

from lamina.cli.terminal_text import visible
from lamina.faces.plain_text import format_json
from lamina.faces.session_list import SessionRow

NARROW = 96
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
    table = Table(box=None, expand=True)
    # Ids and dates whole, so that they can be copied; what it is about gets the rest.
    table.add_column("session", no_wrap=True, overflow="fold")
    if everywhere:
        table.add_column("workspace", no_wrap=True)
    table.add_column("what it is about", no_wrap=True, overflow="ellipsis", ratio=1)
    # On a narrow screen what it is about matters more than every figure.
    figures = ("in", "cached", "$") if console.width < NARROW else tuple(FIGURES)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("written", no_wrap=True)
    for row in rows:
        about = row.problem or row.name or "-"
        if row.open:
            about = f"(not answered yet) {about}"
        if row.damage:
            about = f"(damaged in {row.damage} place{'s' * (row.damage > 1)}) {about}"
        if not row.session:
            about = "(not a session: see below)"
        # Of what cannot be read, nobody may know when it was written.
        written = datetime.fromtimestamp(row.written).strftime("%Y-%m-%d %H:%M")
        when = written if row.written else ""
        table.add_row(
            row.session or "-",
            *([row.workspace] if everywhere else []),
            about.replace("[", r"\["),
            *(FIGURES[heading](row) for heading in figures),
            when if console.width >= NARROW else when[5:],
        )
    console.print(table)
    for row in rows:
        if not row.session:
            typer.echo(visible(f"{row.workspace}: {row.problem}"), err=True)
