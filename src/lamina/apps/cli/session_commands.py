"""`lamina sessions`: what is kept and what it cost; `sessions delete`, where what would go is shown
and a person agrees before it does; and `sessions adopt`.
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
Everywhere = Annotated[bool, typer.Option("--all", help="Of every workspace.")]


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
    """Deletes them, if the person agrees; says whether all of them are gone. The question is asked
    outside of the event loop, which would swallow the first Ctrl-C.

    Raises:
        UsageError: the age cannot be read.
        UnknownSession: a session is not there.
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
    table = make_table(
        "session", "what it is about", "messages", "size", right=("messages", "size")
    )
    for session in sessions:
        about = session.problem or session.name or "-"
        table.add_row(
            visible(session.stored.session),
            one_line(about, ABOUT_WIDTH).replace("[", r"\["),
            f"{session.messages:,}",
            format_bytes(session.bytes),
        )
    # With the question, as standard output is for what was done.
    Console(stderr=True, highlight=False).print(table)


def _report(deletions: Sequence[SessionDeletion]) -> None:
    for deletion in deletions:
        if deletion.problem:
            what = f"{deletion.session} is still there" if deletion.session else "not looked into"
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
SESSION, ABOUT = "session", "what it is about"
# What gives way where there is no room for all of it, in this order, and how much of it stays. Ids
# are folded and not cut: they are what other commands take.
SHRINKING = ((ABOUT, 20), (SESSION, 17), (ABOUT, 12), (SESSION, 12), (ABOUT, 1), (SESSION, 8))
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
        console.print("No sessions here yet. --all looks in every workspace.")
        return
    is_narrow = console.width < NARROW
    # On a narrow screen what it is about matters more than every figure.
    figures = ("in", "cached", "cost") if is_narrow else tuple(FIGURES)
    form = "%m-%d %H:%M" if is_narrow else "%Y-%m-%d %H:%M"
    columns = {
        SESSION: [visible(row.session) or "-" for row in rows],
        ABOUT: [_about(row) for row in rows],
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
        console.print("?: nobody knows the price of requests that are left out of the sum")
    for row in rows:
        if not row.session:
            print_text(visible(f"{row.workspace}: {row.problem}"), err=True)


def _table(
    widths: Mapping[str, int], rows: Sequence[tuple[str, ...]], *, has_head: bool = True
) -> Table:
    """Rows at given widths, so that several tables stand in line."""
    table = Table(box=None, expand=True, show_header=has_head)
    for heading, width in widths.items():
        if heading == ABOUT:
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
    """What it cost; a plus stands for requests of which nobody knows that."""
    if row.cost is None:
        return "?"
    if row.unpriced:
        return f"{dollars(row.cost)}+?"
    return dollars(row.cost) if row.cost else "-"


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
    for a few words of what it is about, which gets the rest; else they are folded."""
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


async def adopt_agent(workspace: Path, stored: StoredSession, *, as_json: bool) -> str:
    """Takes over what a session's agent has by now, and says what that changes.

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
    lines = [f"taken over: {one_line(change.detail)}" for change in changes]
    return "\n".join(lines) or "Nothing differs: the session has what the agent's files say."


@sessions_app.callback()
def sessions(
    context: typer.Context,
    workspace: SessionWorkspace = Path(),
    everywhere: Everywhere = False,
    as_json: AsJson = False,
) -> None:
    """List the stored sessions, with what they cost; `sessions delete` deletes some."""
    if (command := context.invoked_subcommand) is not None:
        is_given = everywhere or as_json or workspace != Path()
        refuse_if(is_given, f"options stand behind the command: lamina sessions {command} ...")
        return
    show_sessions(run_async(list_sessions, workspace, everywhere), as_json, everywhere)
    if elsewhere := run_async(describe_elsewhere, workspace):
        print_text(f"Of this workspace there are more: {elsewhere}.", err=True)


# Bare, and by the name that other lists have.
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
        typer.Option(metavar="AGE", help="Those not written to for so long: 12h, 30d, 4w."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="With --older-than: of every workspace.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --yes: print JSON.")] = False,
) -> None:
    """Delete sessions for good, with the pictures and results that no other session uses.

    Shows what goes, and asks. Also forgets what the embedded model read of them. A session that is
    open is left as it is. Exits with 1 if one is still there.
    """
    refuse_if(not names and older_than is None, "name sessions, or give --older-than AGE")
    refuse_if(names and older_than is not None, "sessions and --older-than exclude one another")
    refuse_if(everywhere and older_than is None, "--all goes with --older-than")
    refuse_if(as_json and not yes, "--json goes with --yes: nobody is asked")
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
    """Take over what changed in the files of a session's agent since the session began.

    A session keeps the rules, references and tools that it began with, whatever becomes of their
    include modes in the agent's files; edited texts are always sent as they are now. What you added
    or took out yourself stays.
    """
    print_report(
        run_on_session(session, workspace, partial(adopt_agent, workspace, as_json=as_json)),
        as_json=as_json,
    )
