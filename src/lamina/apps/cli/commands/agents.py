"""Commands about agents: write one, find them, look at them, check them, and how they are used."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lamina.apps.cli.flags import AgentWorkspace, AsJson, SessionWorkspace
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_outcome
from lamina.apps.cli.terminal_text import print_text

app = typer.Typer(
    name="agent",
    help="Agents on disk: create, list, show and check them, and see how they are used.",
    no_args_is_help=True,
)


@app.command("new")
def new_agent(
    name: Annotated[str, typer.Argument(help="The agent's name, and its folder's.")],
    parent: Annotated[
        Path | None, typer.Option("--in", metavar="FOLDER", help="Where to put its folder.")
    ] = None,
    workspace: AgentWorkspace = Path(),
) -> None:
    """Create an agent to start from, in the workspace's .lamina/agents or in the --in folder.

    Existing files are never overwritten.
    """
    from lamina.apps.cli.agent_commands import write_new_agent

    print_text(write_new_agent(name, parent, workspace))


@app.command("list")
def list_agents(workspace: AgentWorkspace = Path(), as_json: AsJson = False) -> None:
    """List the workspace's agents and your own, and what the workspace's folder holds."""
    from lamina.apps.cli.agent_commands import show_agents

    show_agents(workspace, as_json)


@app.command("show")
def show_agent(
    which: Annotated[
        str,
        typer.Argument(metavar="PATH|NAME", help="A folder, a file, or a name from `agent list`."),
    ] = ".",
    workspace: AgentWorkspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show an agent: its persona, rules, references, servers, projects and problems."""
    from lamina.apps.cli.agent_commands import print_agent

    print_agent(which, workspace, as_json)


@app.command("set")
def set_default(
    which: Annotated[str, typer.Argument(metavar="PATH|NAME", help="The agent.")],
    setting: Annotated[
        str,
        typer.Argument(
            help="model, or a setting such as temperature, max_tokens, search or search.top_n."
        ),
    ],
    value: Annotated[str, typer.Argument(help="Its value; none leaves it to the session.")],
    workspace: AgentWorkspace = Path(),
) -> None:
    """Change a default in an agent's file: sessions that are opened with it have it then.

    Comments and everything else in the file stay as they are. What a session set for itself counts
    for more.
    """
    from lamina.apps.cli.agent_commands import set_agent_default

    print_text(set_agent_default(which, workspace, setting, value))


@app.command("check")
def check_agents(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Folders, files or names; by default all of `agent list`."
        ),
    ] = None,
    workspace: AgentWorkspace = Path(),
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print every problem in agents' files as file:line; exits with 1 if one is an error."""
    from lamina.apps.cli.agent_commands import print_problems

    report, is_fine = print_problems(paths or [], workspace, strict, as_json)
    print_outcome(report, is_fine, as_json=as_json)


@app.command()
def usage(
    agent: Annotated[
        str | None, typer.Argument(help="An agent's name; by default every agent.")
    ] = None,
    workspace: SessionWorkspace = Path(),
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Also write it to a new .json or .csv file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which rules, references and tools were in force, chosen and used, and what to change.

    Counts every session of the workspace. A tool is used when it is called, a rule or reference
    when an answer names it.
    """
    from lamina.apps.cli.agent_commands import report_usage

    run_async(partial(report_usage, workspace, agent, export, as_json=as_json))
