"""`lamina tools`: list the tools of a file's servers, and approve changes."""

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text as Styled

from lamina.adapters.files.extras import require
from lamina.adapters.tools.approved_definitions import Approvals, ToolChange
from lamina.adapters.tools.mcp_client.config import read_servers
from lamina.adapters.tools.mcp_client.mcp_servers import McpServers, ServerPatience
from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.screen import make_table
from lamina.apps.cli.terminal_text import print_text, visible
from lamina.apps.views.plain_text import format_json, shorten
from lamina.apps.wiring import data_folder
from lamina.apps.wiring.tool_hosts import APPROVALS_FILE
from lamina.core.values.tool import Toolset
from lamina.errors import UsageError

app = typer.Typer()


tools_app = typer.Typer(
    help="Manage the tools of MCP servers: list them, see what changed, and approve changes.",
    no_args_is_help=True,
)
app.add_typer(tools_app, name="tools")


def open_approvals() -> Approvals:
    return Approvals(data_folder() / APPROVALS_FILE)


async def list_tools(mcp: Path) -> Toolset:
    """Return what the servers of a file offer now; listing a new tool approves it."""
    # The process ends before another attempt, so none is announced.
    patience = ServerPatience(rest=0)
    servers = McpServers(read_servers(mcp), approvals=open_approvals(), patience=patience)
    async with servers:
        return await servers.toolset()


async def approve_tools(names: list[str], everything: bool) -> list[str]:
    """Approve the current descriptions of the named tools, or of `everything` that changed.

    Raises:
        UsageError: a name is not known, or nothing was named.
    """
    approvals = open_approvals()
    changes = await approvals.changes()
    if everything:
        names = [change.name for change in changes]
    elif not names:
        raise UsageError("give the names of tools, or --all; `lamina tools changes` lists them")
    digests = {change.name: change.offered.digest for change in changes}
    for name in names:
        await approvals.approve(name, digests.get(name))
    return names


SHOWN = 60
UNCHANGED = "No tool has changed since it was approved."


def show_tools(toolset: Toolset, as_json: bool) -> None:
    if as_json:
        typer.echo(format_json(toolset))
        return
    console = Console()
    table = make_table("name", "permission", "what it does", pad_edge=True)
    for tool in toolset.tools:
        first = (tool.definition.description.strip().splitlines() or [""])[0]
        about = Styled(visible(shorten(first, SHOWN)))
        table.add_row(visible(tool.definition.name), tool.permission, about)
    if toolset.tools:
        console.print(table, highlight=False)
    for omission in toolset.withheld:
        detail = f" {visible(omission.what)}: {visible(omission.detail)}"
        console.print(Styled.assemble(("not offered:", "yellow"), detail))
    if not toolset.tools and not toolset.withheld:
        console.print("The file names no servers.")


async def show_changes() -> str:
    """Return the changes in tools since they were approved, as a diff of their descriptions."""
    changes = await open_approvals().changes()
    if not changes:
        return UNCHANGED
    return "\n\n".join(
        [*map(_describe, changes), "Approve with `lamina tools approve NAME`, or with --all."]
    )


def _describe(change: ToolChange) -> str:
    pairs = [
        ("description", change.approved.description, change.offered.description),
        ("arguments", _schema(change.approved.parameters), _schema(change.offered.parameters)),
    ]
    lines = [f"{change.name} ({change.label})"]
    for what, before, after in pairs:
        if before != after:
            lines += [f"  {what}:"]
            changes = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
            lines += [f"    {visible(line)}" for line in list(changes)[2:]]
    return "\n".join(lines)


def _schema(parameters: object) -> str:
    return msgspec.json.format(msgspec.json.encode(parameters, order="sorted"), indent=1).decode()


async def approve(names: list[str], everything: bool) -> str:
    """Approve the current descriptions of tools, and return which.

    Raises:
        UsageError: a name is not known, or nothing was named.
    """
    approved = await approve_tools(names, everything)
    return f"Approved: {', '.join(approved)}." if approved else UNCHANGED


@tools_app.command("list")
def tools_list(
    mcp: Annotated[Path, typer.Option("--mcp", help="A JSON file with `mcpServers`.")],
    as_json: AsJson = False,
) -> None:
    """Start the servers of a file and list their tools. Exits with 1 if a tool is withheld."""
    require("mcp")

    toolset = run_async(list_tools, mcp)
    show_tools(toolset, as_json)
    if toolset.withheld:
        raise typer.Exit(1)


@tools_app.command("changes")
def tools_changes() -> None:
    """Show which tools' descriptions have changed since they were approved."""
    print_text(run_async(show_changes))


@tools_app.command("approve")
def tools_approve(
    names: Annotated[
        list[str] | None, typer.Argument(help="The names that the model sees.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Approve every change.")] = False,
) -> None:
    """Approve the new descriptions of changed tools; until then they are not offered."""
    print_text(run_async(approve, names or [], everything))
