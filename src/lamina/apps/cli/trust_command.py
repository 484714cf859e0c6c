"""`lamina trust`: show what a folder brings, and ask a person whether they trust it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
import typer
from rich.console import Console
from rich.text import Text as Styled

from lamina.apps.cli.flags import AgentWorkspace, AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.terminal_text import print_note, visible
from lamina.apps.views.folder_trust import (
    describe_folder_trust,
    describe_trusted_folder,
    list_trusted,
    look_at_folder,
    revoke_trust,
    trust_folder,
)
from lamina.apps.views.plain_text import format_json
from lamina.apps.wiring.trust_lookup import FolderTrust
from lamina.errors import UsageError

app = typer.Typer()

YES = ("y", "yes")
_STYLES = {"+": "green", "-": "red"}
# The messages for folders that need no question.
_SETTLED = {
    "nothing": "It contains only texts, which need no trust.",
    "own": "It is one of your own agents, which are trusted.",
    "recorded": "You trust its current contents.",
}
_STANDINGS = {
    "recorded": "trusted",
    "changed": "changed since, seen from this folder",
    "gone": "gone",
    "nothing": "no longer brings anything",
}


async def review_folder(which: str, workspace: Path, as_json: bool) -> int:
    """Show what a folder brings and ask whether to trust it; return 0 if it is trusted.

    Raises:
        UsageError: there is no such agent, or trust cannot be recorded.
    """
    folder = await look_at_folder(which, workspace)
    if as_json:
        typer.echo(format_json(describe_folder_trust(folder)))
        return 0 if folder.counts else 1
    console = Console(highlight=False)
    show_folder(console, folder)
    if folder.counts:
        console.print(_SETTLED[folder.standing])
        return 0
    if not folder.can_be_kept:
        raise UsageError(folder.problem or folder.claims.problem)
    if not can_ask(console):
        raise UsageError(
            "only a person can trust a folder: run this on a terminal. In a script, give --trust "
            "to the command that needs it, for that command only"
        )
    if not await ask_trust(console, "Trust its current contents?"):
        console.print("It is not trusted.")
        return 1
    await trust_folder(folder)
    console.print("Trusted. You will be asked again when any of this changes.")
    return 0


async def agree_to_folder(console: Console, folder: FolderTrust) -> bool:
    """Show what a folder brings to the session being opened, and ask whether to trust it."""
    show_folder(console, folder)
    if folder.can_be_kept:
        return await ask_trust(console, "Trust its current contents?")
    print_note(console, visible(folder.problem or folder.claims.problem))
    return await ask_trust(console, "Trust it for this session?")


def show_folder(console: Console, folder: FolderTrust) -> None:
    """Print what has changed in a folder since it was trusted, then everything it brings."""
    claims = folder.claims
    console.print(Styled(visible(claims.place), style="bold"), soft_wrap=True)
    if folder.standing == "changed":
        console.print("It has changed since you trusted it:")
        for line in folder.changes() or ("  something hidden, such as a secret",):
            print_note(console, f"  {visible(line)}", _STYLES.get(line[0], ""))
    if claims.lines:
        console.print("It brings:")
    for line in claims.lines:
        print_note(console, f"  {visible(line)}")


async def ask_trust(console: Console, question: str) -> bool:
    """Wait for a line that says yes; anything else is a no."""
    with _terminal_input() as handle:
        console.print(f"{question} [y/N] ", end="", markup=False)
        console.file.flush()
        if handle is None:
            line = await anyio.to_thread.run_sync(sys.stdin.readline)
        else:
            # Waiting can be cancelled; a read cannot.
            await anyio.wait_readable(handle)
            line = os.read(handle, 1024).decode("utf-8", "replace")
    return line.strip().lower() in YES


@contextmanager
def _terminal_input() -> Iterator[int | None]:
    """Open the terminal itself, as standard input may be set aside; None where it has no name.
    Input typed earlier is not an answer, and is dropped."""
    if sys.platform == "win32":
        yield None
        return
    import termios

    handle = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    try:
        termios.tcflush(handle, termios.TCIFLUSH)
        yield handle
    finally:
        os.close(handle)


async def show_trusted(workspace: Path, as_json: bool) -> None:
    """
    Raises:
        UsageError: the records cannot be read.
    """
    folders = await list_trusted(workspace)
    if as_json:
        typer.echo(format_json([describe_trusted_folder(folder) for folder in folders]))
        return
    console = Console(highlight=False)
    if not folders:
        console.print(
            "You trust no folders. `lamina trust FOLDER` shows what a folder brings, and asks."
        )
    for folder in folders:
        day = datetime.fromtimestamp(folder.record.at).strftime("%Y-%m-%d")
        standing = _STANDINGS.get(folder.standing, "cannot be looked up")
        console.print(Styled(visible(folder.place), style="bold"), soft_wrap=True)
        console.print(f"  since {day}; {standing}")


@app.command()
def trust(
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|NAME",
            help="A folder, a file (of hooks if it ends in .py), or an agent's name; by default "
            "this folder.",
        ),
    ] = None,
    workspace: AgentWorkspace = Path(),
    every: Annotated[bool, typer.Option("--list", help="List the folders you trust.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting this folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what an agent's folder or a hooks file would run, and trust its current contents.

    Until then, its texts are read, but its MCP servers are not started, its hooks are not run, and
    its model and any settings that would ask you less are ignored. You are asked again when any of
    this changes, or a file named in a command. --json does not ask. Exits with 1 if it is not
    trusted.
    """
    refuse_if(every and (revoke or folder), "--list cannot be combined: it lists every folder")
    refuse_if(
        revoke and (folder is None or as_json),
        "--revoke needs a folder, and cannot be combined with --json",
    )
    if every:
        run_async(show_trusted, workspace, as_json)
    elif revoke:
        typer.echo(f"No longer trusted: {visible(revoke_trust(folder or '.', workspace))}")
    elif code := run_async(review_folder, folder or ".", workspace, as_json):
        raise typer.Exit(code)
