"""Servers that people use, of both protocol versions: listed, called, killed and reached again."""

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import pytest
from tests.adapters.tools.conftest import Configure, eventually, is_alive, until

from lamina.adapters.tools.mcp_client.mcp_servers import McpServers, ServerPatience
from lamina.core.values.tool import Toolset

pytestmark = pytest.mark.anyio
LIMIT = 40


@pytest.fixture
def entries(node_servers: Path, tmp_path: Path) -> dict[str, dict[str, Any]]:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.txt").write_text("hello from a file")
    python = Path(sys.executable).parent
    return {
        "everything": {"command": str(node_servers / "mcp-server-everything")},
        "files": {"command": str(node_servers / "mcp-server-filesystem"), "args": [str(files)]},
        "memory": {
            "command": str(node_servers / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")},
        },
        "git": {"command": str(python / "mcp-server-git")},
        "time": {"command": str(python / "mcp-server-time")},
    }


async def test_servers_of_both_protocols_are_listed_and_called_and_leave_nothing_behind(
    configure: Configure, entries: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(**entries)) as servers:
            toolset = await servers.toolset()
            assert toolset.withheld == ()
            counts: dict[str, int] = {}
            for tool in toolset.tools:
                home = tool.definition.name.partition("__")[0]
                counts[home] = counts.get(home, 0) + 1
            assert counts == {"everything": 13, "files": 14, "memory": 9, "git": 12, "time": 2}
            assert list(counts) == list(entries)
            assert (await servers.toolset()) == toolset

            echo = await servers.call("everything__echo", {"message": "ä 🦊"})
            assert echo.text == "Echo: ä 🦊"
            image = await servers.call("everything__get-tiny-image", {})
            assert "[image image/png, 4,033 bytes]" in image.text
            path = str(tmp_path / "files" / "a.txt")
            read = await servers.call("files__read_text_file", {"path": path})
            assert read.text == "hello from a file"
            outside = await servers.call("files__read_text_file", {"path": "/etc/passwd"})
            assert outside.is_error
            fox = {"name": "Fox", "entityType": "animal", "observations": ["is red"]}
            await servers.call("memory__create_entities", {"entities": [fox]})
            assert "is red" in (await servers.call("memory__read_graph", {})).text
            now = await servers.call("time__get_current_time", {"timezone": "Europe/Berlin"})
            assert '"timezone": "Europe/Berlin"' in now.text
            assert (await servers.call("git__git_status", {"repo_path": str(tmp_path)})).is_error
            pids = list(servers.pids.values())
            assert len(pids) == 5
        assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "answer"),
    [
        ("everything", "echo", {"message": "again"}, "Echo: again"),
        ("time", "get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
    ],
)
async def test_a_killed_server_is_reached_again(
    configure: Configure,
    entries: dict[str, dict[str, Any]],
    server: str,
    tool: str,
    arguments: dict[str, str],
    answer: str,
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(**{server: entries[server]})) as servers:
            before = await servers.toolset()
            first = servers.pids[server]
            os.kill(first, signal.SIGKILL)
            await until(lambda: servers.pids.get(server) != first)
            output = await servers.call(f"{server}__{tool}", arguments)
            assert answer in output.text
            assert not output.is_error
            assert await servers.toolset() == before
            second = servers.pids[server]
            assert second != first
        assert not is_alive(second)


async def test_a_server_killed_in_a_long_call_gives_an_error_and_answers_the_next(
    configure: Configure, entries: dict[str, dict[str, Any]]
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(everything=entries["everything"])) as servers:
            await servers.toolset()
            name = "everything__trigger-long-running-operation"
            async with anyio.create_task_group() as tasks:

                async def kill() -> None:
                    await anyio.wait_all_tasks_blocked()
                    os.kill(servers.pids["everything"], signal.SIGKILL)

                tasks.start_soon(kill)
                output = await servers.call(name, {"duration": 30, "steps": 3})
            assert output.is_error
            assert "broke off during the call" in output.text
            short = await servers.call(name, {"duration": 0.1, "steps": 1})
            assert "completed" in short.text


async def test_a_server_of_the_older_protocol_over_http_that_forgot_us_is_reached_again(
    configure: Configure, node_servers: Path, port: int
) -> None:
    """It keeps sessions: started anew, it knows nothing of ours."""
    url = f"http://127.0.0.1:{port}/mcp"
    command = [str(node_servers / "mcp-server-everything"), "streamableHttp"]
    environ = {**os.environ, "PORT": str(port)}

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        process = await anyio.open_process(command, env=environ, stdout=DEVNULL, stderr=DEVNULL)
        async with process:
            yield
            process.kill()

    def has_tools(toolset: Toolset) -> bool:
        return bool(toolset.tools)

    def is_up() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    patience = ServerPatience(rest=0.05, longest=0.05)
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(everything={"url": url}), patience=patience) as servers:
            async with serving():
                await eventually(servers.toolset, has_tools)
                echo = await servers.call("everything__echo", {"message": "one"})
                assert echo.text == "Echo: one"
            async with serving():
                # Up again before we have noticed anything.
                await until(is_up)
                echo = await servers.call("everything__echo", {"message": "two"})
                assert echo.text == "Echo: two"
            gone = await servers.call("everything__echo", {"message": "three"})
            assert "cannot be reached" in gone.text or "broke off" in gone.text
