"""`lamina sessions delete`: what would go is shown, and a person agrees before it does."""

import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.screen import make_table
from lamina.apps.cli.terminal_text import format_bytes, one_line, visible
from lamina.apps.cli.wrapped_text import print_text
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_deletion import (
    DeletableSession,
    SessionDeletion,
    delete_all,
    find_named,
    find_older,
    read_age,
)

ABOUT = 60


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
            one_line(about, ABOUT).replace("[", r"\["),
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
