"""The tools of MCP servers.

Law: a failing server costs only its own tools. What is offered was reviewed: a tool whose
definition changed since a person approved it is neither offered nor called.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from lamina.adapters.tools.approvals import Approvals
from lamina.adapters.tools.limits import MOST_CHARACTERS, refuse_marks
from lamina.adapters.tools.mcp_client.config import ServerConfig, ServerList
from lamina.adapters.tools.mcp_client.server import Server, ServerPatience
from lamina.adapters.tools.offered_tool import ask_all, tool_name_of, without_duplicates
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.errors import UsageError


class McpServers:
    """MCP servers as a tool host, to be used with `async with`: servers are connected when tools
    are first needed, and all their processes are gone at the end."""

    def __init__(
        self,
        config: ServerList,
        *,
        approvals: Approvals | None = None,
        patience: ServerPatience | None = None,
        max_characters: int = MOST_CHARACTERS,
        check: Callable[[ServerConfig], None] | None = None,
        of_agent: bool = False,
    ) -> None:
        """`check` is called in a thread before a server is started, and raises a UsageError if it
        must not be. `of_agent` says that the session's agent brings the servers."""
        self._of_agent = of_agent
        self._config = config
        self._check = check
        self._approvals = approvals
        self._patience = patience or ServerPatience()
        self._max_characters = max_characters
        self._tasks: TaskGroup | None = None
        self._servers: dict[str, Server] = {}
        # By the name for the model.
        self._offers: dict[str, tuple[Server, OfferedTool]] = {}

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise UsageError("these MCP servers are open already; open them once")
        tasks = self._tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._servers = {
            server.name: Server(server, tasks, self._patience, self._max_characters, self._check)
            for server in self._config.servers
        }
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        tasks, self._tasks = self._tasks, None
        self._offers = {}
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return await tasks.__aexit__(kind, error, trace)
        # The group would wrap any other error, which does not concern it.
        await tasks.__aexit__(None, None, None)
        return None

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of running servers, by server."""
        servers = self._servers.items()
        return {name: server.pid for name, server in servers if server.pid is not None}

    async def toolset(self) -> Toolset:
        """The tools of all servers, in the order of the configuration and of each server.

        Raises:
            UsageError: the host is not open.
        """
        self._require_open()
        servers = list(self._servers.values())
        toolsets = await ask_all([server.toolset for server in servers])
        whole = without_duplicates(
            replace(tool, of_agent=self._of_agent) for toolset in toolsets for tool in toolset.tools
        )
        review = Toolset(tools=whole.tools)
        if self._approvals is not None:
            review = await self._approvals.review(whole.tools)
        pairs = zip(servers, toolsets, strict=True)
        homes = {tool.id: server for server, toolset in pairs for tool in toolset.tools}
        self._offers = {tool.definition.name: (homes[tool.id], tool) for tool in review.tools}
        unusable = [tool for toolset in toolsets for tool in toolset.withheld]
        return Toolset(
            tools=review.tools,
            withheld=(*self._config.problems, *unusable, *whole.withheld, *review.withheld),
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Calls a tool that was offered.

        Raises:
            UsageError: the host is not open.
        """
        self._require_open()
        if name not in self._offers:
            await self.toolset()
        if name not in self._offers:
            return ToolOutput(text=f"No MCP server offers a tool {name!r}", is_error=True)
        if refusal := refuse_marks(arguments):
            return refusal
        server, tool = self._offers[name]
        return await server.call(tool_name_of(tool.id), arguments, tool.digest)

    def retry(self, server: str) -> None:
        """Allows another attempt at a server that failed too often.

        Raises:
            UsageError: there is no such server.
        """
        if server not in self._servers:
            names = ", ".join(map(repr, self._servers)) or "none"
            raise UsageError(f"there is no server {server!r}; there are: {names}")
        self._servers[server].retry()

    def _require_open(self) -> None:
        if self._tasks is None:
            raise UsageError("these MCP servers are not open; use `async with` around them")
