"""Offers the tools of MCP servers through one host. Servers are connected on first use and
reconnected if they die; their answers are turned into text for a model.

Laws: a failing server affects only its own tools. One that keeps failing is retried less and less
often, and a process that fails too often in a row is not started again; between attempts, callers
get the reason at once. Only reviewed tools are offered or called: a definition that changed after
approval is withheld. Non-text parts of an answer are replaced by their type and size, never dropped
and never sent as base64.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.tools.approved_definitions import Approvals
from lamina.adapters.tools.mcp_client.config import ServerConfig, ServerList
from lamina.adapters.tools.mcp_client.mcp_connection import MAX_TOOLS, Connection
from lamina.adapters.tools.offered_tool import (
    ask_all,
    label_of,
    offer_tool,
    tool_name_of,
    without_duplicates,
)
from lamina.adapters.tools.result_limits import (
    MAX_CHARACTERS,
    NO_RESULT,
    cut_output,
    fail,
    refuse_marks,
    say_seconds,
)
from lamina.core.codec import canonical_bytes, mend_text
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset, WithheldTool
from lamina.errors import InvalidText, UsageError

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock


def read_result(result: "CallToolResult", limit: int) -> ToolOutput:
    """Return the answer to a call; structured content only if there is no text, which would repeat
    it."""
    parts = [_block(block) for block in result.content]
    if result.structured_content is not None and not any(
        block.type == "text" and block.text for block in result.content
    ):
        parts.append(_structured(result.structured_content))
    # A single block is not copied: it may be large.
    text = parts[0] if len(parts) == 1 else "\n".join(parts)
    return cut_output(text or NO_RESULT, limit, is_error=result.is_error)


def _block(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_decoded_size(block.data):,} bytes]"
        case "resource_link":
            kind = f" {block.mime_type}" if block.mime_type else ""
            return f"[resource{kind} {block.uri}]"
        case "resource":
            return _resource(block.resource)


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[resource {resource.uri}]\n{text}"
    kind = resource.mime_type or "application/octet-stream"
    return f"[resource {kind} {resource.uri}, {_decoded_size(resource.blob):,} bytes]"


def _decoded_size(data: str) -> int:
    """Return the number of bytes that base64 text encodes."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _structured(value: Any) -> str:
    try:
        return canonical_bytes(value).decode()
    except (InvalidText, TypeError, OverflowError, RecursionError):
        return str(value)


# Retrying a server that was never reached must not delay every turn.
_SECOND_LOOK_SECONDS = 2.0
_LAST_WORDS_SECONDS = 1.0
_REFUSALS = {"Session terminated", "Server returned an error response"}


class ServerPatience(Struct, frozen=True, kw_only=True):
    """Time limits and retry rules for servers."""

    # For a server whose configuration has no `timeout`.
    connect: float = 20.0
    # The pause after a failure; it doubles every time, up to `longest`.
    rest: float = 2.0
    longest: float = 60.0
    # Consecutive failures after which a process is not started again.
    starts: int = 5
    # For shutting down a process: the time between closing its input, SIGTERM and killing it.
    grace: float = 2.0


class Server:
    """A configured server; its connections run in `tasks`."""

    def __init__(
        self,
        config: ServerConfig,
        tasks: TaskGroup,
        patience: ServerPatience,
        max_characters: int,
        check: Callable[[ServerConfig], None] | None = None,
    ) -> None:
        self.config = config
        self._check = check
        self._tasks = tasks
        self._patience = patience
        self._start_seconds = config.start_timeout or patience.connect
        self._max_characters = max_characters
        self._connection: Connection | None = None
        self._was_reached = False
        self._failures = 0
        self._rest_until = 0.0
        self._offer_cache: tuple[object, Toolset] = (None, Toolset())

    @property
    def pid(self) -> int | None:
        current = self._connection
        return current.place.pid if current and not current.ended.is_set() else None

    async def toolset(self) -> Toolset:
        """Return the tools of the server, or a problem if it cannot be reached."""
        connection = await self._connected()
        if isinstance(connection, str):
            return self._unreachable(connection)
        if connection.is_stale:
            try:
                with anyio.fail_after(self._start_seconds):
                    await connection.list_tools()
            # Any error here affects only this server.
            except Exception as error:  # noqa: BLE001
                connection.close()  # now useless; the next call opens another
                return self._unreachable(f"its tools cannot be listed: {_describe_error(error)}")
        return self._offered(connection)

    async def call(self, tool: str, arguments: Mapping[str, Any], digest: str) -> ToolOutput:
        """Call a tool that was offered with this digest."""
        try:
            canonical_bytes(arguments)
        except (InvalidText, TypeError, OverflowError, RecursionError) as error:
            return fail(f"These arguments cannot be sent: {error}")
        output = await self._call_once(tool, arguments, digest)
        # A server that lost our session has run nothing, so repeat the call in a new session.
        if output is None:
            output = await self._call_once(tool, arguments, digest)
        return output or fail(f"The server {self.config.name!r} ends every session at once")

    async def _call_once(
        self, tool: str, arguments: Mapping[str, Any], digest: str
    ) -> ToolOutput | None:
        """Return the output of a call; None if the server no longer recognises our session."""
        name = self.config.name
        connection = await self._connected()
        if isinstance(connection, str):
            return fail(f"The server {name!r} cannot be reached: {connection}")
        if all(tool.digest != digest for tool in self._offered(connection).tools):
            return fail(
                f"{tool!r} was not called: the server {name!r} was started again, and now "
                f"describes it in other words or has it no more"
            )
        with anyio.move_on_after(self.config.timeout):
            try:
                result = await connection.call(tool, arguments)
                self._failures = 0
                return read_result(result, self._max_characters)
            # A tool's error is its result, and the SDK raises many types.
            except Exception as error:  # noqa: BLE001
                return await self._read_failure(connection, error)
        return fail(f"{tool!r} timed out after {say_seconds(self.config.timeout)}")

    def retry(self) -> None:
        """Forget past failures, so that the next call tries again at once."""
        self._failures = 0
        self._rest_until = 0.0

    async def _connected(self) -> Connection | str:
        """Return an open connection, or the reason why there is none."""
        current = self._connection
        if current is not None and current.settled.is_set() and not current.is_open:
            with anyio.move_on_after(self._patience.connect):
                await current.ended.wait()
        current = self._connection
        if current is None or current.ended.is_set():
            if problem := self._refusal():
                return problem
            current = self._start()
        wait = current.deadline - anyio.current_time()
        if self._failures and not self._was_reached:
            wait = min(wait, _SECOND_LOOK_SECONDS)
        with anyio.move_on_after(max(wait, 0)):
            await current.settled.wait()
        if current.is_open:
            self._was_reached = True
            return current
        if current.ended.is_set():
            return self._refusal() or current.problem
        if anyio.current_time() < current.deadline:
            return "it is being tried once more, and has not answered yet"
        return current.problem

    def _start(self) -> Connection:
        patience = self._patience
        self._connection = Connection(self.config, self._start_seconds, patience.grace, self._check)
        self._tasks.start_soon(self._hold, self._connection)
        return self._connection

    async def _hold(self, connection: Connection) -> None:
        start = anyio.current_time()
        await connection.run()
        now = anyio.current_time()
        if connection.was_open and now - start >= self._patience.longest:
            self._failures = 0  # it ran for a long time, so this is not a crash loop
        self._failures += 1
        # A server that worked is restarted at once; one that never did can wait.
        steps = self._failures - (2 if connection.was_open else 1)
        pause = self._patience.rest * 2 ** min(steps, 16) if steps >= 0 else 0.0
        self._rest_until = now + min(pause, self._patience.longest)

    def _refusal(self) -> str:
        """Return the reason for not trying the server now; empty if it may be tried."""
        if self._connection is None:
            return ""
        problem = self._connection.problem
        if not self.config.url and self._failures >= self._patience.starts:
            return (
                f"{problem}; it failed {self._failures} times in a row and is not started again. "
                f"Mend it or disable it, and begin anew"
            )
        pause = self._rest_until - anyio.current_time()
        if pause > 0:
            return f"{problem}; it is tried again in {max(1, round(pause))} s"
        return ""

    def _unreachable(self, problem: str) -> Toolset:
        detail = mend_text(problem)
        server = WithheldTool(what=self.config.name, reason="unreachable", detail=detail)
        return Toolset(withheld=(server,))

    def _offered(self, connection: Connection) -> Toolset:
        if self._offer_cache[0] is not connection.tools:
            self._offer_cache = (connection.tools, self._offer(connection))
        return self._offer_cache[1]

    def _offer(self, connection: Connection) -> Toolset:
        config = self.config
        tools: list[OfferedTool] = []
        withheld = self._complaints(connection)
        for tool in connection.tools:
            if config.is_disabled(tool.name):
                continue
            offer = offer_tool(
                config.name,
                tool.name,
                tool.description or "",
                tool.input_schema,
                config.permission_of(tool.name),
                config.include_of(tool.name),
            )
            if isinstance(offer, WithheldTool):
                withheld.append(offer)
            else:
                tools.append(replace(offer, about=connection.about))
        return Toolset(tools=tuple(tools), withheld=tuple(withheld))

    def _complaints(self, connection: Connection) -> list[WithheldTool]:
        """Return warnings about configured tools that the server lacks (the person may have meant
        to forbid another one), and about too many tools."""
        names = [tool.name for tool in connection.tools]
        complaints = []
        for name in self.config.tools:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "remove it"
                detail = f"the configuration speaks of it, and the server has no such tool; {hint}"
                label = label_of(self.config.name, name)
                complaints.append(WithheldTool(what=label, reason="invalid", detail=detail))
        if connection.has_more_tools:
            detail = f"it lists more than {MAX_TOOLS:,} tools; those after them are not offered"
            complaints.append(WithheldTool(what=self.config.name, reason="invalid", detail=detail))
        return complaints

    async def _read_failure(self, connection: Connection, error: Exception) -> ToolOutput | None:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        code = error.code if isinstance(error, MCPError) else None
        # The SDK's messages for an answer that is not JSON-RPC.
        if connection.place.forgot_us and str(error) in _REFUSALS:
            connection.close()
            return None
        is_gone = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if is_gone or code == CONNECTION_CLOSED or not connection.is_open:
            connection.close()
            # Its last output arrives when it ends.
            with anyio.move_on_after(_LAST_WORDS_SECONDS):
                await connection.ended.wait()
            return fail(
                f"The server {self.config.name!r} broke off during the call: {connection.problem}. "
                f"Whether the call took effect is not known; the server is tried again when it is "
                f"next needed"
            )
        self._failures = 0
        message = _describe_error(error)
        if str(error) in _REFUSALS:
            message = f"{message} ({connection.place.last_words})"
        return fail(message, self._max_characters)


def _describe_error(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__


class McpServers:
    """A tool host for MCP servers, used with `async with`: servers are connected when tools are
    first needed, and all their processes have ended when the block exits."""

    def __init__(
        self,
        config: ServerList,
        *,
        approvals: Approvals | None = None,
        patience: ServerPatience | None = None,
        max_characters: int = MAX_CHARACTERS,
        check: Callable[[ServerConfig], None] | None = None,
        of_agent: bool = False,
    ) -> None:
        """Call `check` in a thread before starting a server; it raises a UsageError to prevent the
        start. `of_agent` says that the servers come from the session's agent."""
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
        # The group would wrap any other error, even an unrelated one.
        await tasks.__aexit__(None, None, None)
        return None

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids of running servers by server."""
        servers = self._servers.items()
        return {name: server.pid for name, server in servers if server.pid is not None}

    async def toolset(self) -> Toolset:
        """Return the tools of all servers, in configuration order and each server's own order.

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
        """Call a tool that was offered.

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
        """Allow another attempt to reach a server that failed too often.

        Raises:
            UsageError: no server has that name.
        """
        if server not in self._servers:
            names = ", ".join(map(repr, self._servers)) or "none"
            raise UsageError(f"no server is called {server!r}; known servers: {names}")
        self._servers[server].retry()

    def _require_open(self) -> None:
        if self._tasks is None:
            raise UsageError("these MCP servers are not open; use `async with` around them")
