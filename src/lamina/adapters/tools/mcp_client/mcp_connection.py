"""Manages one connection to an MCP server from start to end: to a process, or to an address over
streamable HTTP or the older SSE.

Laws: the task that opens a connection also closes it, however it ends: the server dies, a call
finds it dead, time runs out, or it is cancelled. Calls may come from any task, and none waits
longer than its limit, even while an unresponsive server is being shut down. If an address answers
with something other than MCP, the HTTP status is kept for the error message; the address itself,
which may contain a secret, is not shown.
"""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread

from lamina.adapters.files.extras import require
from lamina.adapters.tools.mcp_client.config import ServerConfig
from lamina.adapters.tools.mcp_client.process import MAX_MESSAGE_BYTES, ServerProcess
from lamina.adapters.tools.result_limits import say_seconds
from lamina.core.codec import mend_text
from lamina.errors import UsageError

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Client, IncomingMessage
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, Tool


_CONNECT_SECONDS = 30.0
_ADVICE = {
    401: "check the headers of its entry",
    403: "check the headers of its entry",
    404: "check its url, which often ends in /mcp",
    405: "check its url, which often ends in /mcp",
}


class Endpoint:
    """A server's address. `connect` is a transport for the MCP client."""

    # A remote server has no local process.
    pid: int | None = None

    @property
    def forgot_us(self) -> bool:
        """Check whether the server has just refused a request outright, as one does that no longer
        recognises our session after a restart: with 404 per the protocol, with 400 in many
        servers."""
        return self._status in (400, 404)

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._status = 0

    @property
    def last_words(self) -> str:
        """Return the HTTP status of the last refusal, if any."""
        if not self._status:
            return ""
        advice = _ADVICE.get(self._status)
        return f"it answers HTTP {self._status}" + (f"; {advice}" if advice else "")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["TransportStreams"]:
        if self._config.is_sse:
            from mcp.client.sse import sse_client

            async with sse_client(self._config.url, httpx_client_factory=self._client) as streams:
                yield streams
            return
        from mcp.client.streamable_http import streamable_http_client

        async with (
            self._client() as http,
            streamable_http_client(
                self._config.url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams,
        ):
            yield streams

    def _client(self, *_: object, **__: object) -> "httpx2.AsyncClient":
        """Return the HTTP client for a connection, ignoring the SDK's own settings."""
        import httpx2

        return httpx2.AsyncClient(
            headers=self._config.headers,
            # No timeout for reading: calls have their own, and a subscription has none.
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            event_hooks={"response": [self._note]},
        )

    async def _note(self, response: "httpx2.Response") -> None:
        self._status = response.status_code if response.status_code >= 400 else 0


MAX_TOOLS = 1000
MAX_ABOUT = 1000
_MAX_PAGES = 100


class Connection:
    """A connection to a server. `settled` is set once it is open or has failed; `ended` once it is
    shut down."""

    def __init__(
        self,
        config: ServerConfig,
        seconds: float,
        grace: float,
        check: Callable[[ServerConfig], None] | None = None,
    ) -> None:
        self.config = config
        self._check = check
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.deadline = anyio.current_time() + seconds
        # The tools listed by the server, and whether it has more than we accept.
        self.tools: tuple[Tool, ...] = ()
        self.has_more_tools = False
        # The server's own description.
        self.about = ""
        self.is_stale = False
        self.was_open = False
        self._seconds = seconds
        self._over = anyio.Event()
        self._client: Client | None = None
        self.place = Endpoint(config) if config.url else ServerProcess(config, grace)
        self._problem = ""

    @property
    def is_open(self) -> bool:
        return self.was_open and not self._over.is_set()

    @property
    def problem(self) -> str:
        """Return the reason why it is not open, with the server's last output."""
        reason = self._problem or (
            "it died" if self.was_open else f"it did not answer within {say_seconds(self._seconds)}"
        )
        words = self.place.last_words
        return f"{reason} ({words})" if words else reason

    def close(self) -> None:
        """Tell the task that runs the connection to shut it down."""
        self._over.set()

    async def run(self) -> None:
        """Open the connection and keep it until it ends. Only a cancellation propagates."""
        try:
            with anyio.CancelScope(deadline=self.deadline) as limit:
                async with self._opened() as client, anyio.create_task_group() as tasks:
                    self._client = client
                    self.about = mend_text((client.instructions or "")[:MAX_ABOUT])
                    await self.list_tools()
                    limit.deadline = math.inf
                    self.was_open = True
                    self.settled.set()
                    tasks.start_soon(self._follow, client)
                    await self._over.wait()
                    tasks.cancel_scope.cancel()
        # A server can make the SDK fail in any way; the failure affects only this server.
        except Exception as error:  # noqa: BLE001
            self._problem = self._say(error)
        finally:
            self._over.set()
            self._client = None
            self.settled.set()
            self.ended.set()

    async def list_tools(self) -> None:
        """List the tools again.

        Raises:
            MCPError: the server refuses, or is gone.
        """
        from mcp import MCPError
        from mcp_types import METHOD_NOT_FOUND

        client = self._live()
        self.is_stale = False
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    break  # the server has no tools
                raise
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        self.has_more_tools = cursor is not None or len(tools) > MAX_TOOLS
        self.tools = tuple(tools[:MAX_TOOLS])

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """Call a tool; errors of the SDK propagate."""
        return await self._live().call_tool(tool, dict(arguments))

    def _live(self) -> "Client":
        if self._client is None:
            raise anyio.ClosedResourceError
        return self._client

    def _say(self, error: BaseException) -> str:
        """Return a message for the first plain error in nested groups."""
        if isinstance(error, UsageError):
            return str(error)  # without the SDK there are no other error types
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        command = self.config.command
        if isinstance(error, FileNotFoundError) and command and error.filename == command:
            return f"there is no command {command!r}; install it, or give its whole path"
        message = str(error).strip()
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            return "it broke off before it answered"
        if isinstance(error, OSError | MCPError) and message:
            return message
        return f"{type(error).__name__}: {message}" if message else type(error).__name__

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator["Client"]:
        # Slow to import, and only needed with servers.
        await anyio.to_thread.run_sync(_load_sdk)
        if self._check is not None:
            # As late as possible: nothing happens between this check and the start.
            await anyio.to_thread.run_sync(self._check, self.config)
        from mcp.client import Client
        from mcp_types import Implementation

        async with Client(
            _watch_end(self.place.connect(), self._over),
            message_handler=self._hear,
            client_info=Implementation(name="lamina", version=version("lamina-context")),
            # We know when the list is stale, and refresh it only then.
            cache=None,
        ) as client:
            yield client

    async def _hear(self, message: "IncomingMessage") -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.is_stale = True

    async def _follow(self, client: "Client") -> None:
        """Subscribe to tool changes: since protocol 2026-07-28, servers report them only to
        subscribers."""
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        tools = client.server_capabilities.tools
        is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        if not (is_modern and tools and tools.list_changed):
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.is_stale = True
        except (MCPError, SubscriptionLost, TimeoutError):
            # Events may have been missed; listing again costs little.
            self.is_stale = True


def _load_sdk() -> None:
    import logging

    require("mcp")
    import mcp.client.streamable_http  # noqa: F401

    # Without a handler, Python prints the SDK's warnings to the terminal.
    logging.getLogger("mcp").addHandler(logging.NullHandler())


@asynccontextmanager
async def _watch_end(
    transport: AbstractAsyncContextManager["TransportStreams"], over: anyio.Event
) -> AsyncIterator["TransportStreams"]:
    """Open the transport; set `over` when no more messages will arrive."""
    async with transport as (inbox, outbox):
        yield _WatchedStream(inbox, over), outbox


class _WatchedStream:
    """A stream of incoming messages that detects when the other side is gone, even while no call is
    waiting. Messages pass through unchanged."""

    def __init__(self, inner: Any, over: anyio.Event) -> None:
        self._inner = inner
        self._over = over

    @property
    def last_context(self) -> Any:
        """The SDK reads it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except anyio.EndOfStream:
            self._over.set()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
