"""`lamina tools`: what the servers of a file offer, and agreeing to what changed."""

from difflib import unified_diff
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text as Styled

from lamina.cli.terminal_text import visible
from lamina.errors import UsageError
from lamina.tools.approvals import Approvals, ToolChange
from lamina.tools.mcp_client.config import read_servers
from lamina.tools.mcp_client.servers import McpServers
from lamina.values.tool import Toolset
from lamina.wiring import data_folder
from lamina.wiring.tool_hosts import APPROVALS_FILE

SHOWN = 60


def open_approvals() -> Approvals:
    return Approvals(data_folder() / APPROVALS_FILE)


async def list_tools(mcp: Path) -> Toolset:
    """What the servers of a file offer now; new tools are agreed to by being listed there."""
    async with McpServers(read_servers(mcp), approvals=open_approvals()) as servers:
        return await servers.toolset()


def show_tools(toolset: Toolset, as_json: bool) -> str:
    """The tools for machines; or drawn, and nothing to print."""
    if as_json:
        return msgspec.json.format(msgspec.json.encode(toolset), indent=2).decode()
    console = Console()
    table = Table(box=None)
    for heading in ("name", "permission", "what it does"):
        table.add_column(heading, overflow="fold")
    for tool in toolset.tools:
        first = (tool.definition.description.strip().splitlines() or [""])[0]
        shown = first if len(first) <= SHOWN else f"{first[: SHOWN - 1]}…"
        table.add_row(visible(tool.definition.name), tool.permission, Styled(visible(shown)))
    if toolset.tools:
        console.print(table, highlight=False)
    for held in toolset.withheld:
        said = f" {visible(held.what)}: {visible(held.detail)}"
        console.print(Styled.assemble(("not offered:", "yellow"), said))
    if not toolset.tools and not toolset.withheld:
        console.print("The file names no servers.")
    return ""


async def show_changes() -> str:
    """What changed of tools since they were agreed to, as a diff of their descriptions."""
    changes = await open_approvals().changes()
    if not changes:
        return "No tool changed since it was approved."
    shown = "\n\n".join(map(_describe, changes))
    return f"{shown}\n\nAgree with `lamina tools approve NAME`, or with --all."


def _describe(change: ToolChange) -> str:
    pairs = [
        ("description", change.approved.description, change.offered.description),
        ("arguments", _schema(change.approved.parameters), _schema(change.offered.parameters)),
    ]
    lines = [f"{change.name} ({change.label})"]
    for what, before, after in pairs:
        if before != after:
            lines += [f"  {what}:"]
            found = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
            lines += [f"    {visible(line)}" for line in list(found)[2:]]
    return "\n".join(lines)


def _schema(parameters: object) -> str:
    return msgspec.json.format(msgspec.json.encode(parameters, order="sorted"), indent=1).decode()


async def approve(names: list[str], everything: bool) -> str:
    """Agrees to what tools say of themselves now.

    Raises:
        UsageError: a name is not known, or nothing was named.
    """
    changes = await open_approvals().changes()
    if everything:
        names = [change.name for change in changes]
        if not names:
            return "No tool changed since it was approved."
    if not names:
        raise UsageError("name the tools, or say --all; `lamina tools changes` lists them")
    digests = {change.name: change.offered.digest for change in changes}
    for name in names:
        await open_approvals().approve(name, digests.get(name))
    return f"Approved: {', '.join(names)}."
