"""`lamina why` and `/why`: what was used to answer a question, and why.

Law: it shows what the request was built from, as recorded in the journal. Missing and left-out
items are shown as such, never among the used ones.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.console import ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.flags import (
    AsJson,
    SessionName,
    SessionWorkspace,
)
from lamina.apps.cli.outcome import run_on_session
from lamina.apps.cli.report_text import BADGES, ITEM_COLUMNS, item_cells
from lamina.apps.cli.screen import open_page, table_below
from lamina.apps.cli.terminal_text import one_line, visible
from lamina.apps.views.journal_log import describe_display, dict_rows, display_lines
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.sent_requests import PLACEMENT_NAMES
from lamina.apps.views.session_items import find_stored_changes
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.views.why import ASTRAY, Explanation, Reason, describe_why, explain_question
from lamina.core.audit.break_causes import count_of
from lamina.core.values.patch import HookDisplay
from lamina.core.values.request import ContextItem, LeftOut

app = typer.Typer()

# From this width on the three columns are side by side.
WIDE = 100
# The maximum length of a description, in columns.
ABOUT = 120
# And of the text that something was found with, such as the model's query.
FROM = 200
# The indentation of the lines below a name, past its priority.
INDENT = (0, 0, 0, 6)


async def show_why(
    stored: StoredSession, number: int | None, *, workspace: Path, as_json: bool
) -> None:
    """Return what the command prints.

    Raises:
        NoSuchEntry: there is no such question, or nothing was sent for it.
    """
    journal = await stored.read()
    why = explain_question(journal, number, load_book())
    why = replace(why, agent_changes=await find_stored_changes(journal, workspace))
    if as_json:
        typer.echo(format_json(describe_why(why)))
    else:
        screen = open_page()
        screen.show(draw_why(why, screen.width))


def draw_why(why: Explanation, width: int) -> ConsoleRenderable:
    """Rules, references and tools, side by side if there is room; everything else below."""
    head = (
        f"question {why.number} of {why.questions}: {one_line(why.question, max(20, width - 24))}"
    )
    parts: list[ConsoleRenderable] = [
        Text(head, style="bold"),
        Text(f"request {why.request} to {one_line(why.target)}", style="dim"),
        *(Text(f"! {visible(problem)}", style="yellow") for problem in why.problems),
        Text(),
    ]
    titles = {"Rules": why.rules, "References": why.references, "Tools": why.tools}
    columns = [_column(title, rows) for title, rows in titles.items()]
    if width >= WIDE:
        side = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for _ in columns:
            side.add_column(ratio=1, overflow="fold")
        side.add_row(*columns)
        parts.append(side)
    else:
        parts += [columns[0], Text(), columns[1], Text(), columns[2]]
    parts += draw_found(why.found)
    parts += draw_planned(why.planned)
    for record in why.searches:
        parts += draw_found(record)
    parts += _others(why.items)
    parts += _out(why.left_out)
    parts += _displays(why.displays)
    parts += [Text(f"! {visible(warning)}", style="yellow") for warning in why.warnings]
    if why.agent_changes:
        heading = "The agent's files have changed since the session last applied them"
        parts += [Text(), Text(heading, style="bold underline")]
        parts += [Text(one_line(change.detail)) for change in why.agent_changes]
        parts.append(
            Text(f"`lamina sessions adopt {why.session}` applies the changes", style="dim")
        )
    return Group(*parts)


def _column(title: str, rows: Sequence[Reason]) -> ConsoleRenderable:
    counted = f"{title} ({len(rows)})" if rows else title
    parts: list[ConsoleRenderable] = [Text(counted, style="bold underline")]
    for row in rows:
        parts += [_name(row), *(Padding(Text(line, "dim"), INDENT) for line in _about(row))]
    return Group(*(parts if rows else [*parts, Text("none", style="dim")]))


def _name(row: Reason) -> Text:
    """`010 • name [Agent - 0.73]`; for a tool, with its server instead of a priority."""
    badge = (f"[{row.badge}]", BADGES[row.include])
    return Text.assemble((f"{one_line(row.place)} ", "dim"), one_line(row.name), " ", badge)


def _about(row: Reason) -> list[str]:
    source = one_line(row.source, FROM)
    origin = f"{row.origin}{f' from {source}' if source else ''}"
    if row.origin == "model":
        origin = f'found by the model, which searched for "{source}"'
    lines = (one_line(row.about, ABOUT), origin if row.origin else "", *row.notes)
    return list(filter(None, lines))


def _others(items: Sequence[ContextItem]) -> list[ConsoleRenderable]:
    cells = [item_cells(item, PLACEMENT_NAMES[item.placement]) for item in items]
    rows = [[Text(one_line(cell)) for cell in row] for row in cells]
    return table_below(ITEM_COLUMNS, rows, right=("tokens",))


def _out(left_out: Sequence[LeftOut]) -> list[ConsoleRenderable]:
    rows = []
    for omission in left_out:
        reason = Text(omission.reason.replace("_", " "), style="red" * (omission.reason in ASTRAY))
        rows.append((Text(one_line(omission.what)), reason, Text(one_line(omission.detail))))
    return table_below(("left out", "reason", "detail"), rows)


def _displays(displays: Sequence[HookDisplay]) -> list[ConsoleRenderable]:
    """What hooks display about their changes."""
    lines: list[ConsoleRenderable] = []
    for shown in displays:
        lines.append(Text(one_line(describe_display(shown))))
        texts = (visible(line) for line in display_lines(shown.display))
        lines += [Padding(Text(text, "dim"), INDENT) for text in texts]
    return [Text(), Text(f"Hooks ({len(displays)})", style="bold underline"), *lines] * bool(lines)


def draw_found(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The passages sent with a question, each with its citation number."""
    if record is None:
        return []
    hits = dict_rows(record.get("hits"))
    searched = record.get("searched", 0)
    title = f"Found in {count_of(searched, 'note')} ({len(hits)})"
    if query := record.get("query"):
        title = f"Searched for {one_line(str(query), 120)} ({len(hits)})"
    lines = [Text(), Text(title, style="bold underline")]
    for hit in hits:
        score = hit.get("score")
        fit = f"{score:.2f}" if isinstance(score, int | float) else "words"
        place = f"{hit.get('path', '?')}#L{hit.get('start', '?')}-L{hit.get('end', '?')}"
        lines.append(Text(f"{fit:>5} [^{hit.get('source', '?')}] {one_line(place)}"))
    if others := dict_rows(record.get("without_room")):
        lines.append(Text(f"{len(others)} more did not fit", style="dim"))
    return list(lines)


def draw_planned(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The planned calls and their outcomes."""
    if record is None:
        return []
    calls = dict_rows(record.get("calls"))
    lines = [Text(), Text(f"Planned calls ({len(calls)})", style="bold underline")]
    for call in calls:
        text = f"{call.get('name', '?')} {call.get('arguments', '')}"
        lines.append(Text(f"{call.get('outcome', '?')!s:>8} {one_line(text, 160)}"))
    return list(lines)


@app.command()
def why(
    session: SessionName,
    question: Annotated[
        int | None,
        typer.Argument(metavar="N", help="The number of the question; by default the last one."),
    ] = None,
    workspace: SessionWorkspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show which rules, references and tools were used to answer a question, and why.

    Includes priorities, include modes, scores, what was left out, and what was missing.
    """
    run_on_session(
        session, workspace, partial(show_why, number=question, workspace=workspace, as_json=as_json)
    )
