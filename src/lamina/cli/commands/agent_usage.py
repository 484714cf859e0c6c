"""The command about what became of an agent's items."""

from pathlib import Path
from typing import Annotated

import anyio
import typer

from lamina.cli.commands.sessions import Workspace


def register(app: typer.Typer) -> None:
    """Adds `usage` to the commands about agents."""
    app.command()(usage)


def usage(
    agent: Annotated[
        str | None, typer.Argument(help="An agent's name; every agent's sessions without one.")
    ] = None,
    workspace: Workspace = Path(),
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Also write it: a new .json or .csv file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show which rules, references and tools were in force, chosen and used, and what to change.

    Over all sessions that are kept of the workspace. A tool is used when it is called, a rule or
    reference when an answer names it.
    """
    from lamina.cli.agent_usage import report_usage

    async def report() -> str:
        return await report_usage(workspace, agent, export, as_json=as_json)

    if shown := anyio.run(report):
        typer.echo(shown, nl=False)
