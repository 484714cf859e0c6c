"""The command about which folders a person trusts."""

from pathlib import Path
from typing import Annotated

import typer

from lamina.apps.cli.flags import AgentWorkspace, AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if
from lamina.apps.cli.terminal_text import visible

app = typer.Typer()


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
    from lamina.apps.cli.trust_command import review_folder, show_trusted
    from lamina.apps.views.folder_trust import revoke_trust

    refuse_if(every and (revoke or folder), "--list goes alone: it is about every folder")
    refuse_if(revoke and (folder is None or as_json), "--revoke goes with a folder, and no --json")
    if every:
        run_async(show_trusted, workspace, as_json)
    elif revoke:
        typer.echo(f"No longer trusted: {visible(revoke_trust(folder or '.', workspace))}")
    elif code := run_async(review_folder, folder or ".", workspace, as_json):
        raise typer.Exit(code)
