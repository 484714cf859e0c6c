"""Real MCP servers, and odd ones of our own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from lamina.adapters.tools.mcp_client.config import ServerList, parse_servers

ODD = str(Path(__file__).parent / "odd_server.py")
# Fetched once and kept with the environment; the versions that Lamina is tested with.
NODE_SERVERS = {
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "memory": "@modelcontextprotocol/server-memory@2026.8.31",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def node_servers() -> Path:
    """The folder of the commands of the servers that come from npm."""
    folder = Path(sys.prefix) / "mcp-node"
    commands = folder / "node_modules" / ".bin"
    stamp = folder / "versions.json"
    wanted = json.dumps(NODE_SERVERS)
    if not stamp.exists() or stamp.read_text() != wanted:
        folder.mkdir(exist_ok=True)
        quiet = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
        subprocess.run(
            ["npm", "install", "--prefix", str(folder), *quiet, *NODE_SERVERS.values()], check=True
        )
        stamp.write_text(wanted)
    return commands


Configure = Callable[..., ServerList]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """A configuration as a person would write it."""

    def made(environ: Mapping[str, str] | None = None, **servers: Mapping[str, Any]) -> ServerList:
        data = json.dumps({"mcpServers": servers}).encode()
        return parse_servers(data, tmp_path / "mcp.json", environ or {})

    return made


class Starts:
    """Where odd servers note that they were started."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []

    def entry(self, mode: str = "plain", *args: str, **more: Any) -> dict[str, Any]:
        """The entry of an odd server."""
        given = [ODD, mode, *args]
        return {"command": sys.executable, "args": given, "env": {"STARTS": str(self.path)}, **more}


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def until(done: Callable[[], bool]) -> None:
    """Looks until it is so; the test's own limit ends it."""
    while not done():  # noqa: ASYNC110 - what it looks at sets no event
        await anyio.sleep(0.01)


T = TypeVar("T")


async def eventually(ask: Callable[[], Awaitable[T]], right: Callable[[T], bool]) -> T:
    """Asks until the answer is right; the test's own limit ends it."""
    while not right(found := await ask()):  # noqa: ASYNC110 - what it asks sets no event
        await anyio.sleep(0.02)
    return found


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Starts]:
    """Odd servers; none of them may be left when the test is over."""
    noted = Starts(tmp_path / "starts")
    yield noted
    left = [pid for pid in noted.pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, 9)
    assert not left, "servers were left behind"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found
