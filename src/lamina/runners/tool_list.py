"""The tools that a session can call at present.

Law: what was removed from the session is not offered; what a host withholds is reported once.
"""

from lamina.assembly.tools import intended_call
from lamina.ports import ToolHost
from lamina.runners.mode import RunContext
from lamina.values.message import ToolCall
from lamina.values.tool import OfferedTool, Toolset


class ToolList:
    """The tools of `host`, as `refresh` found them last."""

    def __init__(self, run: RunContext, host: ToolHost) -> None:
        run.session.turns.list_tools = host.toolset
        self.host = host
        self.toolset: Toolset | None = None
        self.offered: dict[str, OfferedTool] = {}
        self._run = run
        self._reported: set[str] = set()

    async def refresh(self) -> None:
        self.toolset = toolset = await self.host.toolset()
        members = self._run.session.state.members
        self.offered = {
            tool.definition.name: tool
            for tool in toolset.tools
            if members.get(tool.id) != "removed"
        }
        for tool in toolset.withheld:
            # Once a session: a server that is down should not be news on every turn.
            key = f"{tool.what} {tool.reason}"
            if key not in self._reported:
                self._reported.add(key)
                await self._run.warn(f"{tool.what}: {tool.detail}")

    async def find(self, call: ToolCall) -> tuple[str, OfferedTool | None]:
        """The name of the tool that a call is for, and the tool if it is there."""
        if not self.offered or intended_call(call, self.offered).name not in self.offered:
            await self.refresh()
        name = intended_call(call, self.offered).name
        return name, self.offered.get(name)
