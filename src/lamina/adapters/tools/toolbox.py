"""Combines all the tools of a session in one host.

Law: order is preserved: hosts as given, and tools as listed by their host. A name refers to at most
one tool.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from difflib import get_close_matches
from typing import Any, Self

from lamina.adapters.tools.offered_tool import ask_all, without_duplicates
from lamina.core.ports import ToolHost
from lamina.core.schemas import check_schema
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset, WithheldTool
from lamina.errors import UsageError


class Toolbox:
    """A tool host that combines several others. Hosts that have to be opened are opened with it
    (`async with`) and closed in reverse order."""

    def __init__(self, *hosts: ToolHost) -> None:
        self._hosts = hosts
        self._managed_hosts = [h for h in hosts if isinstance(h, AbstractAsyncContextManager)]
        self._stack: AsyncExitStack | None = None
        self._homes: dict[str, ToolHost] = {}
        # Cached by the definition's digest, because checking a schema takes time.
        self._checked: dict[str, str | None] = {}

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for host in self._managed_hosts:
                await stack.enter_async_context(host)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        stack, self._stack = self._stack, None
        self._homes = {}
        return await stack.__aexit__(*error) if stack else None

    async def toolset(self) -> Toolset:
        """Return the tools of all hosts.

        Raises:
            UsageError: a host needs to be opened, and the toolbox is not open.
        """
        if self._stack is None and self._managed_hosts:
            raise UsageError("this toolbox is not open; use `async with` around it")
        toolsets = await ask_all([host.toolset for host in self._hosts])
        tools = [tool for toolset in toolsets for tool in toolset.tools]
        problems = {id(tool): problem for tool in tools if (problem := self._check(tool))}
        whole = without_duplicates(tool for tool in tools if id(tool) not in problems)
        usable_ids = {id(tool) for tool in whole.tools}
        self._homes = {
            tool.definition.name: host
            for host, toolset in zip(self._hosts, toolsets, strict=True)
            for tool in toolset.tools
            if id(tool) in usable_ids
        }
        invalid = [
            WithheldTool(
                what=tool.label or tool.definition.name,
                reason="invalid",
                detail=f"the schema of its arguments cannot be used: {problems[id(tool)]}",
            )
            for tool in tools
            if id(tool) in problems
        ]
        withheld = [tool for toolset in toolsets for tool in toolset.withheld]
        return Toolset(tools=whole.tools, withheld=(*withheld, *invalid, *whole.withheld))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        if name not in self._homes:
            await self.toolset()
        host = self._homes.get(name)
        if host is not None:
            return await host.call(name, arguments)
        near = get_close_matches(name, self._homes, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        return ToolOutput(text=f"There is no tool {name!r}{hint}", is_error=True)

    def _check(self, tool: OfferedTool) -> str | None:
        if tool.digest not in self._checked:
            self._checked[tool.digest] = check_schema(tool.definition.parameters)
        return self._checked[tool.digest]
