"""Commands about agents: write one, find them, look at them, check them, and how they are used."""

from pathlib import Path
from typing import Annotated

import anyio
import typer

from lamina.cli.commands.sessions import Workspace as SessionWorkspace

app = typer.Typer()

agent = typer.Typer(
    help="Agents on disk: write one, list them, look at one, check their files.",
    no_args_is_help=True,
)
app.add_typer(agent, name="agent")

Workspace = Annotated[
    Path, typer.Option("--workspace", "-w", help="The folder whose agents are looked for.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]


@agent.command("new")
def new_agent(
    name: Annotated[str, typer.Argument(help="What it is called; its folder, too.")],
    parent: Annotated[
        Path | None,
        typer.Option("--in", metavar="FOLDER", help="Where its folder is to be."),
    ] = None,
    workspace: Workspace = Path(),
) -> None:
    """Write an agent to begin with, into .lamina/agents of the workspace unless --in says where.

    Nothing that is there is written over.
    """
    from lamina.cli.agents import write_new_agent

    typer.echo(write_new_agent(name, parent, workspace))


@agent.command("list")
def list_agents(workspace: Workspace = Path(), as_json: AsJson = False) -> None:
    """List the agents of the workspace and your own, and what the workspace's folder holds."""
    from lamina.cli.agents import show_agents

    if shown := show_agents(workspace, as_json):
        typer.echo(shown)


@agent.command("show")
def show_agent(
    which: Annotated[
        str, typer.Argument(metavar="PATH|NAME", help="A folder, a file, or a name of `list`.")
    ] = ".",
    workspace: Workspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show an agent: who it is, its rules, references, servers and projects, and what is odd."""
    from lamina.cli.agents import print_agent

    if shown := print_agent(which, workspace, as_json):
        typer.echo(shown)


@agent.command("check")
def check_agents(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Folders, files or names; all of `list` if none."),
    ] = None,
    workspace: Workspace = Path(),
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print every problem of agents as file:line; exits with 1 if one is an error."""
    from lamina.cli.agents import print_problems

    shown, is_fine = print_problems(paths or [], workspace, strict, as_json)
    typer.echo(shown)
    if not is_fine:
        raise typer.Exit(1)


@agent.command()
def usage(
    agent: Annotated[
        str | None, typer.Argument(help="An agent's name; every agent's sessions without one.")
    ] = None,
    workspace: SessionWorkspace = Path(),
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Also write it: a new .json or .csv file."),
    ] = None,
    as_json: AsJson = False,
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
