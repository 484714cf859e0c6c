"""`lamina sessions`: the stored sessions and their cost; `sessions delete`, which shows what it
would delete and asks first; and `sessions adopt`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.apps.cli.flags import AsJson, SessionName, SessionWorkspace
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_report, refuse_if, run_on_session
from lamina.apps.cli.screen import make_table
from lamina.apps.cli.terminal_text import format_bytes, one_line, print_text, visible
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_deletion import (
    DeletableSession,
    SessionDeletion,
    delete_all,
    find_named,
    find_older,
    read_age,
)
from lamina.apps.views.session_items import change_row
from lamina.apps.views.stored_sessions import (
    SessionRow,
    StoredSession,
    describe_elsewhere,
    list_sessions,
)
from lamina.apps.wiring.sessions import open_session
from lamina.core.text.money import dollars

app = typer.Typer()
sessions_app = typer.Typer(invoke_without_command=True)
app.add_typer(sessions_app, name="sessions")
Everywhere = Annotated[bool, typer.Option("--all", help="List the sessions of every workspace.")]


ABOUT_WIDTH = 60


def delete_sessions(
    names: Sequence[str],
    workspace: Path,
    *,
    older_than: str | None,
    everywhere: bool,
    asks: bool,
    as_json: bool,
) -> bool:
    """Delete sessions if the person agrees; return whether all of them are gone. The question is
    asked outside the event loop, which would swallow the first Ctrl-C.

    Raises:
        UsageError: the age cannot be read.
        UnknownSession: a session does not exist.
    """
    unread: list[SessionDeletion] = []
    if older_than is None:
        sessions = run_async(find_named, names, workspace)
    else:
        before = time.time() - read_age(older_than)
        sessions, unread = run_async(find_older, before, workspace, everywhere)
    if not sessions and not as_json:
        _report(unread)
        typer.echo(f"No session is older than {older_than}.")
        return not unread
    if asks:
        _show(sessions)
        size = format_bytes(sum(session.bytes for session in sessions))
        noun = "this session" if len(sessions) == 1 else f"these {len(sessions):,} sessions"
        typer.confirm(f"Delete {noun} ({size}) for good?", abort=True, err=True)
    deletions = [*run_async(delete_all, sessions), *unread]
    if as_json:
        typer.echo(format_json(deletions))
    else:
        _report(deletions)
    return not any(deletion.problem for deletion in deletions)


def _show(sessions: Sequence[DeletableSession]) -> None:
    table = make_table("session", "title", "messages", "size", right=("messages", "size"))
    for session in sessions:
        about = session.problem or session.name or "-"
        table.add_row(
            visible(session.stored.session),
            one_line(about, ABOUT_WIDTH).replace("[", r"\["),
            f"{session.messages:,}",
            format_bytes(session.bytes),
        )
    # With the question, as standard output is for the result.
    Console(stderr=True, highlight=False).print(table)


def _report(deletions: Sequence[SessionDeletion]) -> None:
    for deletion in deletions:
        if deletion.problem:
            what = f"{deletion.session} is still there" if deletion.session else "not examined"
            print_text(visible(f"{what}: {deletion.problem}"), err=True)
    gone = [deletion for deletion in deletions if not deletion.problem]
    if gone:
        blobs = sum(deletion.blobs for deletion in gone)
        slots = sum(deletion.slot_bytes for deletion in gone)
        parts = [f"{len(gone):,} session{'s' * (len(gone) > 1)}"]
        parts += [f"{blobs:,} blob{'s' * (blobs > 1)}"] if blobs else []
        parts += [f"{format_bytes(slots)} of the embedded model's memory"] if slots else []
        print_text(f"Deleted: {', '.join(parts)}.")


NARROW = 96
SESSION, TITLE = "session", "title"
# The columns that shrink if there is not enough room, in this order, and how much of each stays.
# Ids are wrapped and not cut, since other commands accept them.
SHRINKING = ((TITLE, 20), (SESSION, 17), (TITLE, 12), (SESSION, 12), (TITLE, 1), (SESSION, 8))
FIGURES: dict[str, Callable[[SessionRow], str]] = {
    "messages": lambda row: f"{row.messages:,}",
    "in": lambda row: f"{row.usage.input:,}",
    "cached": lambda row: f"{row.usage.cached:,}",
    "out": lambda row: f"{row.usage.output:,}",
    "cost": lambda row: _cost(row),
}


def show_sessions(rows: list[SessionRow], as_json: bool, everywhere: bool = False) -> None:
    console = Console()
    if as_json:
        console.out(format_json(rows))
        return
    if not rows:
        console.print("No sessions here yet. --all lists those of every workspace.")
        return
    is_narrow = console.width < NARROW
    # On a narrow screen the title matters more than any figure.
    figures = ("in", "cached", "cost") if is_narrow else tuple(FIGURES)
    form = "%m-%d %H:%M" if is_narrow else "%Y-%m-%d %H:%M"
    columns = {
        SESSION: [visible(row.session) or "-" for row in rows],
        TITLE: [_title(row) for row in rows],
        **{heading: [FIGURES[heading](row) for row in rows] for heading in figures},
        "written": [_when(row, form) for row in rows],
    }
    widths = _widths(columns, console.width)
    cells = list(zip(*columns.values(), strict=True))
    if everywhere:
        places: dict[str, list[tuple[str, ...]]] = {}
        for row, line in zip(rows, cells, strict=True):
            places.setdefault(row.workspace, []).append(line)
        for at, (place, lines) in enumerate(places.items()):
            console.print(Text(visible(place), "bold"), soft_wrap=True)
            console.print(_table(widths, lines, has_head=at == 0))
    else:
        console.print(_table(widths, cells))
    if any(row.unpriced for row in rows):
        console.print("?: the total excludes requests with unknown prices")
    for row in rows:
        if not row.session:
            print_text(visible(f"{row.workspace}: {row.problem}"), err=True)


def _table(
    widths: Mapping[str, int], rows: Sequence[tuple[str, ...]], *, has_head: bool = True
) -> Table:
    """Rows at given widths, so that several tables line up."""
    table = Table(box=None, expand=True, show_header=has_head)
    for heading, width in widths.items():
        if heading == TITLE:
            title = heading if width >= len(heading) else heading.split()[-1]
            table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
        elif heading == SESSION:
            table.add_column(heading, width=width, overflow="fold")
        else:
            justify: Literal["left", "right"] = "right" if heading in FIGURES else "left"
            table.add_column(heading, justify=justify, width=width, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _cost(row: SessionRow) -> str:
    """The cost of a session; a mark stands for requests with unknown prices."""
    if row.cost is None:
        return "?"
    if row.unpriced:
        return f"{dollars(row.cost)}+?"
    return dollars(row.cost) if row.cost else "-"


def _when(row: SessionRow, form: str) -> str:
    """When the session was last written; empty if it cannot be read."""
    return datetime.fromtimestamp(row.written).strftime(form) if row.written else ""


def _title(row: SessionRow) -> str:
    if not row.session:
        return "(cannot be read: see below)"
    about = one_line(row.problem or row.name or "-")
    if row.open:
        about = f"(unanswered) {about}"
    if row.damage:
        about = f"(damaged in {row.damage} place{'s' * (row.damage > 1)}) {about}"
    return about


def _widths(columns: Mapping[str, Sequence[str]], screen: int) -> dict[str, int]:
    """The width of each column. Figures and dates are never cut. Ids are wrapped unless there is
    room for them and a few words of the title, which gets the rest."""
    widths = {
        heading: max(cell_len(cell) for cell in (heading, *cells))
        for heading, cells in columns.items()
    }
    # One space on both sides of every column.
    excess = sum(widths.values()) + 2 * len(widths) - screen
    for heading, least in SHRINKING:
        if heading in widths and excess > 0:
            cut = min(excess, max(widths[heading] - least, 0))
            widths[heading] -= cut
            excess -= cut
    return widths


async def adopt_agent(workspace: Path, stored: StoredSession, *, as_json: bool) -> str:
    """Apply the current state of a session's agent, and return what that changes.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: the agent cannot be read.
    """
    async with await open_session(
        stored.session, store=stored.store, workspace=workspace
    ) as session:
        changes = tuple(map(change_row, await session.adopt_agent()))
    if as_json:
        return format_json({"session": stored.session, "changes": changes})
    lines = [f"applied: {one_line(change.detail)}" for change in changes]
    return "\n".join(lines) or "Nothing to apply: the session matches the agent's files."


@sessions_app.callback()
def sessions(
    context: typer.Context,
    workspace: SessionWorkspace = Path(),
    everywhere: Everywhere = False,
    as_json: AsJson = False,
) -> None:
    """List the stored sessions and their cost; `sessions delete` deletes them."""
    if (command := context.invoked_subcommand) is not None:
        is_given = everywhere or as_json or workspace != Path()
        refuse_if(is_given, f"options go after the command: lamina sessions {command} ...")
        return
    show_sessions(run_async(list_sessions, workspace, everywhere), as_json, everywhere)
    if elsewhere := run_async(describe_elsewhere, workspace):
        print_text(f"This workspace has more sessions: {elsewhere}.", err=True)


# As `lamina sessions`, and under the name that other groups use.
sessions_app.command(name="list")(sessions)


@sessions_app.command()
def delete(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION...", help="Ids, or the beginnings of ids."),
    ] = None,
    workspace: SessionWorkspace = Path(),
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Delete sessions not written to for this long: 12h, 30d, 4w."
        ),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="With --older-than: in every workspace.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --yes: print JSON.")] = False,
) -> None:
    """Delete sessions permanently, with pictures and results that no other session uses.

    Shows what will be deleted, and asks. Also deletes the embedded model's memory of them. Open
    sessions are not touched. Exits with 1 if a session could not be deleted.
    """
    refuse_if(not names and older_than is None, "name sessions, or give --older-than AGE")
    refuse_if(names and older_than is not None, "sessions and --older-than cannot be combined")
    refuse_if(everywhere and older_than is None, "--all needs --older-than")
    refuse_if(as_json and not yes, "--json needs --yes")
    is_done = delete_sessions(
        names or (), workspace,
        older_than=older_than, everywhere=everywhere, asks=not yes, as_json=as_json,
    )  # fmt: skip
    if not is_done:
        raise typer.Exit(1)


@sessions_app.command()
def adopt(
    session: SessionName, workspace: SessionWorkspace = Path(), as_json: AsJson = False
) -> None:
    """Apply changes in the agent's files to a session that began before them.

    A session keeps the rules, references and tools that it began with, even if their include modes
    change in the agent's files; edited texts are always sent in their current version. What you
    added or removed yourself stays that way.
    """
    print_report(
        run_on_session(session, workspace, partial(adopt_agent, workspace, as_json=as_json)),
        as_json=as_json,
    )
