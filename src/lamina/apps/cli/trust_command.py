"""`lamina trust`: what a folder brings, and asking a person whether they trust it."""

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
# What is said of a folder that a person need not be asked about.
_SETTLED = {
    "nothing": "It brings nothing that needs trust: texts alone.",
    "own": "It is one of your own agents, which are trusted.",
    "recorded": "You trust it as it is.",
}
_STANDINGS = {
    "recorded": "trusted as it is",
    "changed": "changed since, as seen from this folder",
    "gone": "gone",
    "nothing": "brings nothing any more",
}


async def review_folder(which: str, workspace: Path, as_json: bool) -> int:
    """Shows what a folder brings and asks whether to trust it; the exit code says whether it is
    trusted.

    Raises:
        UsageError: there is no such agent, or trust cannot be kept.
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
            "only a person can trust a folder: run this on a terminal. A script takes --trust with "
            "the command that needs it, for that command alone"
        )
    if not await ask_trust(console, "Trust it as it is?"):
        console.print("It is not trusted.")
        return 1
    await trust_folder(folder)
    console.print("Trusted. You are asked again when any of this changes.")
    return 0


async def agree_to_folder(console: Console, folder: FolderTrust) -> bool:
    """Shows what a folder brings to the session that is being opened, and asks whether to trust
    it."""
    show_folder(console, folder)
    if folder.can_be_kept:
        return await ask_trust(console, "Trust it as it is?")
    print_note(console, visible(folder.problem or folder.claims.problem))
    return await ask_trust(console, "Trust it for this session?")


def show_folder(console: Console, folder: FolderTrust) -> None:
    """What a folder brings, whole, and first what changed since it was trusted."""
    claims = folder.claims
    console.print(Styled(visible(claims.place), style="bold"), soft_wrap=True)
    if folder.standing == "changed":
        console.print("It changed since you trusted it:")
        for line in folder.changes() or ("  something that is not shown, such as a secret",):
            print_note(console, f"  {visible(line)}", _STYLES.get(line[0], ""))
    if claims.lines:
        console.print("It brings:")
    for line in claims.lines:
        print_note(console, f"  {visible(line)}")


async def ask_trust(console: Console, question: str) -> bool:
    """Waits for a line that says yes; anything else is a no."""
    with _terminal_input() as handle:
        console.print(f"{question} [y/N] ", end="", markup=False)
        console.file.flush()
        if handle is None:
            line = await anyio.to_thread.run_sync(sys.stdin.readline)
        else:
            # Waiting can be cancelled, which a read could not.
            await anyio.wait_readable(handle)
            line = os.read(handle, 1024).decode("utf-8", "replace")
    return line.strip().lower() in YES


@contextmanager
def _terminal_input() -> Iterator[int | None]:
    """The terminal itself, as standard input may be put aside; None where it has no name. What was
    typed before is no answer, and is forgotten."""
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
            "No folder is trusted. `lamina trust FOLDER` shows what one brings, and asks."
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
            help="A folder, a file (of hooks, if it ends in .py), or an agent's name; by default "
            "this folder.",
        ),
    ] = None,
    workspace: AgentWorkspace = Path(),
    every: Annotated[bool, typer.Option("--list", help="List the folders you trust.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust this folder no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what an agent's folder or a file of hooks would run, and trust it as it is.

    Until you do, its texts are read, but its MCP servers are not started, hooks are not run, and
    its model and settings that would ask you less do not count. You are asked again when any of
    that changes, or a file that a command names. With --json nothing is asked. Exits with 1 if it
    is not trusted.
    """
    refuse_if(every and (revoke or folder), "--list goes alone: it is about every folder")
    refuse_if(revoke and (folder is None or as_json), "--revoke goes with a folder, and no --json")
    if every:
        run_async(show_trusted, workspace, as_json)
    elif revoke:
        typer.echo(f"No longer trusted: {visible(revoke_trust(folder or '.', workspace))}")
    elif code := run_async(review_folder, folder or ".", workspace, as_json):
        raise typer.Exit(code)
