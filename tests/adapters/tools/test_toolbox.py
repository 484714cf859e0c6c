"""All tools as one host: a stable order, one tool per name, words for what is not there."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.tools.conftest import Configure, Starts, is_alive

from lamina.adapters.tools.functions import FunctionTools, tool
from lamina.adapters.tools.mcp_client.mcp_servers import McpServers
from lamina.adapters.tools.toolbox import Toolbox
from lamina.core.ports import ToolHost
from lamina.core.values.item import tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio
LIMIT = 20


@tool
def zeta() -> str:
    """Last letter, first tool."""
    return "z"


@tool(permission="free")
def alpha() -> str:
    """First letter, second tool."""
    return "a"


@tool(name="odd__echo")
def mine() -> str:
    """Has the name of another."""
    return "mine"


class BadHost:
    """Offers what no provider would take."""

    async def toolset(self) -> Toolset:
        schema = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
        definition = ToolDefinition(name="broken", parameters=schema)
        return Toolset(
            tools=(OfferedTool(id=tool_id("bad", "broken"), definition=definition, digest="d"),)
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        raise AssertionError("it was not offered")


async def test_hosts_and_their_tools_keep_their_order_and_the_first_of_a_name_wins(
    configure: Configure, starts: Starts
) -> None:
    config = configure(second=starts.entry(), odd=starts.entry())
    with anyio.fail_after(LIMIT):
        async with Toolbox(FunctionTools(zeta, alpha, mine), McpServers(config)) as box:
            toolset = await box.toolset()
            names = [tool.definition.name for tool in toolset.tools]
            assert names[:4] == ["zeta", "alpha", "odd__echo", "second__echo"]
            assert [name.partition("__")[0] for name in names[3:]] == ["second"] * 10 + ["odd"] * 9
            assert [(held.what, held.reason) for held in toolset.withheld] == [
                ("odd · echo", "duplicate")
            ]
            assert await box.toolset() == toolset
            assert (await box.call("odd__echo", {})).text == "mine"
            assert (await box.call("second__echo", {"a": 1})).text == '{"a": 1}'
            assert [tool.permission for tool in toolset.tools[:3]] == [
                "required",
                "free",
                "required",
            ]
        assert len(starts.pids) == 2
        assert not any(is_alive(pid) for pid in starts.pids)


async def test_a_name_that_is_not_offered_is_an_error_that_suggests_others() -> None:
    async with Toolbox(FunctionTools(zeta, alpha)) as box:
        assert await box.call("alhpa", {}) == ToolOutput(
            text="There is no tool 'alhpa'; did you mean 'alpha'?", is_error=True
        )
        assert (await box.call("q", {})).text == "There is no tool 'q'"
        assert (await box.call("alpha", {})).text == "a"


async def test_a_tool_whose_schema_is_none_is_withheld_and_cannot_be_called() -> None:
    host: ToolHost = Toolbox(BadHost(), FunctionTools(alpha))
    toolset = await host.toolset()
    assert [tool.definition.name for tool in toolset.tools] == ["alpha"]
    (held,) = toolset.withheld
    assert (held.what, held.reason) == ("broken", "invalid")
    assert (await host.call("broken", {})).is_error


async def test_a_toolbox_that_is_not_open_says_so_before_it_starts_anything(
    configure: Configure, starts: Starts
) -> None:
    box = Toolbox(McpServers(configure(odd=starts.entry())))
    with pytest.raises(UsageError, match="use `async with` around it"):
        await box.toolset()
    assert starts.pids == []


def test_what_is_slow_to_import_is_imported_when_it_is_needed() -> None:
    script = (
        "import sys, lamina, lamina.adapters.tools.toolbox\n"
        "import lamina.adapters.tools.mcp_client.mcp_servers, lamina.core.schemas\n"
        "slow = {'mcp', 'jsonschema', 'httpx2', 'pydantic'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_an_interrupt_leaves_no_process_behind(starts: Starts, tmp_path: Path) -> None:
    script = """
import sys, anyio
from pathlib import Path
from lamina.adapters.tools.mcp_client.config import read_servers
from lamina.adapters.tools.mcp_client.mcp_servers import McpServers
from lamina.adapters.tools.toolbox import Toolbox
async def main():
    async with Toolbox(McpServers(read_servers(Path(sys.argv[1])))) as box:
        await box.toolset()
        print("ready", flush=True)
        await box.call("odd__hang", {})
anyio.run(main)
"""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"odd": starts.entry()}}))
    command = [sys.executable, "-c", script, str(config)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGINT)
        output = run.stderr.read()
        assert run.wait(LIMIT) != 0
    assert output.rstrip().endswith("KeyboardInterrupt")
    assert not is_alive(starts.pids[0])
