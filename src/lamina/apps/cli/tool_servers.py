"""What the servers of a file offer, and agreeing to what changed."""

from pathlib import Path

from lamina.adapters.tools.approvals import Approvals
from lamina.adapters.tools.mcp_client.config import read_servers
from lamina.adapters.tools.mcp_client.server import ServerPatience
from lamina.adapters.tools.mcp_client.servers import McpServers
from lamina.apps.wiring import data_folder
from lamina.apps.wiring.tool_hosts import APPROVALS_FILE
from lamina.core.values.tool import Toolset
from lamina.errors import UsageError


def open_approvals() -> Approvals:
    return Approvals(data_folder() / APPROVALS_FILE)


async def list_tools(mcp: Path) -> Toolset:
    """What the servers of a file offer now; new tools are agreed to by being listed there."""
    # Nobody stays for another attempt, so none is announced.
    patience = ServerPatience(rest=0)
    servers = McpServers(read_servers(mcp), approvals=open_approvals(), patience=patience)
    async with servers:
        return await servers.toolset()


async def approve_tools(names: list[str], everything: bool) -> list[str]:
    """Agrees to what tools say of themselves now; of `everything` that changed, or of those named.

    Raises:
        UsageError: a name is not known, or nothing was named.
    """
    approvals = open_approvals()
    changes = await approvals.changes()
    if everything:
        names = [change.name for change in changes]
    elif not names:
        raise UsageError("name the tools, or say --all; `lamina tools changes` lists them")
    digests = {change.name: change.offered.digest for change in changes}
    for name in names:
        await approvals.approve(name, digests.get(name))
    return names
