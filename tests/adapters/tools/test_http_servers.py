"""MCP servers over streamable HTTP, in the same process but through a real socket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from tests.adapters.tools.conftest import Configure, eventually

from lamina.adapters.tools.mcp_client.mcp_servers import McpServers, ServerPatience
from lamina.core.values.tool import Toolset

pytestmark = pytest.mark.anyio
LIMIT = 20
QUICK = ServerPatience(rest=0.05, longest=0.05, starts=2)


def has_tools(toolset: Toolset) -> bool:
    return bool(toolset.tools)


def make_server() -> MCPServer:
    server = MCPServer("http")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def large(characters: int) -> str:
        """Says much."""
        return "x" * characters

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Adds a tool."""
        server.add_tool(lambda: "grown", name="grown", description="New.")
        await ctx.notify_tools_changed()
        return "ok"

    @server.tool()
    async def who(ctx: Context) -> str:
        """Says what it was sent."""
        return str((ctx.headers or {}).get("x-key"))

    return server


@contextmanager
def serving(port: int, stateless: bool = False, sse: bool = False) -> Iterator[None]:
    app = make_server().streamable_http_app(stateless_http=stateless)
    if sse:
        app = make_server().sse_app()
    config = uvicorn.Config(
        app, port=port, log_level="critical", timeout_graceful_shutdown=1, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


async def test_tools_over_http_are_listed_and_called_with_the_headers_given(
    configure: Configure, port: int
) -> None:
    entry = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"X-Key": "${KEY}"}}
    with anyio.fail_after(LIMIT), serving(port):
        async with McpServers(configure({"KEY": "s3"}, web=entry), patience=QUICK) as servers:
            toolset = await eventually(servers.toolset, has_tools)
            assert toolset.tools[0].definition.name == "web__add"
            assert (await servers.call("web__add", {"a": 2, "b": 3})).text == "5"
            assert (await servers.call("web__who", {})).text == "s3"
            wrong = await servers.call("web__add", {"a": "x", "b": 3})
            assert wrong.is_error
            cut = await servers.call("web__large", {"characters": 3_000_000})
            assert "3,000,000 characters in all" in cut.text
            assert servers.pids == {}


async def test_a_server_that_goes_away_and_comes_back_is_reached_again(
    configure: Configure, port: int
) -> None:
    entry = {"url": f"http://127.0.0.1:{port}/mcp"}
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(web=entry), patience=QUICK) as servers:
            assert (await servers.toolset()).withheld[0].reason == "unreachable"
            with serving(port):
                await eventually(servers.toolset, has_tools)
                assert (await servers.call("web__add", {"a": 2, "b": 3})).text == "5"
            gone = await servers.call("web__add", {"a": 2, "b": 3})
            assert gone.is_error
            for _ in range(5):
                assert (await servers.toolset()).tools == ()
                await anyio.sleep(0.06)
            with serving(port):
                await eventually(servers.toolset, has_tools)
                assert (await servers.call("web__add", {"a": 2, "b": 3})).text == "5"


async def test_a_modern_server_that_says_its_tools_changed_is_listed_again(
    configure: Configure, port: int
) -> None:
    entry = {"url": f"http://127.0.0.1:{port}/mcp"}
    with anyio.fail_after(LIMIT), serving(port):
        async with McpServers(configure(web=entry), patience=QUICK) as servers:
            before = (await eventually(servers.toolset, has_tools)).tools
            assert (await servers.call("web__grow", {})).text == "ok"
            # The news comes over a stream of its own.
            after = await eventually(servers.toolset, lambda found: found.tools != before)
            assert [tool.label for tool in after.tools] == [
                *(tool.label for tool in before),
                "web · grown",
            ]


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_an_address_that_is_no_mcp_server_is_withheld_with_what_it_said(
    configure: Configure, status: int
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        entry = {"url": f"http://127.0.0.1:{server.server_port}/{status}"}
        with anyio.fail_after(LIMIT):
            async with McpServers(configure(web=entry)) as servers:
                (held,) = (await servers.toolset()).withheld
                assert f"HTTP {status}" in held.detail
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_server_that_speaks_sse_is_listed_and_called_with_the_headers_given(
    configure: Configure, port: int
) -> None:
    entry = {"type": "sse", "url": f"http://127.0.0.1:{port}/sse", "headers": {"X-Key": "${KEY}"}}
    with anyio.fail_after(LIMIT), serving(port, sse=True):
        async with McpServers(configure({"KEY": "s3"}, old=entry), patience=QUICK) as servers:
            toolset = await eventually(servers.toolset, has_tools)
            assert toolset.tools[0].definition.name == "old__add"
            assert (await servers.call("old__add", {"a": 2, "b": 3})).text == "5"
            assert (await servers.call("old__who", {})).text == "s3"


async def test_a_server_that_speaks_no_sse_is_withheld_with_its_status(
    configure: Configure, port: int
) -> None:
    entry = {"type": "sse", "url": f"http://127.0.0.1:{port}/nowhere"}
    with anyio.fail_after(LIMIT), serving(port, sse=True):
        async with McpServers(configure({}, old=entry), patience=QUICK) as servers:
            toolset = await eventually(servers.toolset, lambda toolset: bool(toolset.withheld))
            assert "404" in toolset.withheld[0].detail
