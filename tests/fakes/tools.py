"""Tools that do as they are told, and a person who decides."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import anyio

from lamina.core.assembly.shortened_results import READ_RESULT
from lamina.core.codec import digest_value
from lamina.core.values.item import ItemId
from lamina.core.values.message import ToolCall, ToolDefinition
from lamina.core.values.tool import (
    Decision,
    OfferedTool,
    Permission,
    ToolOutput,
    Toolset,
    WithheldTool,
)

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CLOSED = PATH | {"additionalProperties": False}


def tool(
    name: str,
    permission: Permission = "free",
    *,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> OfferedTool:
    """A tool of the server `fake`; without parameters it takes whatever it is given."""
    definition = ToolDefinition(
        name=name,
        description=description or f"Does {name}.",
        parameters=dict(parameters or {"type": "object"}),
    )
    return OfferedTool(
        id=ItemId(f"tool:fake/{name}"),
        definition=definition,
        digest=digest_value(definition),
        permission=permission,
        label=f"fake · {name}",
    )


def of_host(names: Iterable[str]) -> list[str]:
    """The names of a list without that of the engine's own tool for reading results, which stands
    in every list that has a tool."""
    return [name for name in names if name != READ_RESULT.name]


class ToolHostFake:
    """Gives `outputs` by tool name, or the tool's name and arguments. A test changes `tools` and
    `withheld` as servers come and go. Calls of tools in `held` wait until the event is set."""

    def __init__(self, *tools: OfferedTool) -> None:
        self.tools: Sequence[OfferedTool] = tools
        self.withheld: Sequence[WithheldTool] = ()
        self.outputs: dict[str, ToolOutput | BaseException] = {}
        self.held: dict[str, anyio.Event] = {}
        self.listing: anyio.Event | None = None
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.running = 0
        # The most that ran at the same time, and those that were stopped on the way.
        self.together = 0
        self.stopped: list[str] = []
        self.waits = anyio.Event()
        self.closed = True

    async def __aenter__(self) -> Self:
        self.closed = False
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.closed = True

    @property
    def called(self) -> list[str]:
        return [name for name, _ in self.calls]

    async def toolset(self) -> Toolset:
        if self.listing is not None:
            self.waits.set()
            await self.listing.wait()
        return Toolset(tools=tuple(self.tools), withheld=tuple(self.withheld))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        self.calls.append((name, arguments))
        self.running += 1
        self.together = max(self.together, self.running)
        try:
            await anyio.lowlevel.checkpoint()
            if name in self.held:
                self.waits.set()
                await self.held[name].wait()
        except BaseException:
            self.stopped.append(name)
            raise
        finally:
            self.running -= 1
        output = self.outputs.get(name, ToolOutput(text=f"{name} gave {dict(arguments)}"))
        if isinstance(output, BaseException):
            raise output
        return output


class ApproverFake:
    """Gives its decisions in turn, the last one for ever; exceptions are raised, and at an event it
    waits for ever."""

    def __init__(self, *decisions: Decision | BaseException | anyio.Event) -> None:
        self._decisions = decisions
        self.asked: list[str] = []
        self.waits = anyio.Event()

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        self.asked.append(call.id)
        await anyio.lowlevel.checkpoint()
        decision = self._decisions[min(len(self.asked), len(self._decisions)) - 1]
        if isinstance(decision, anyio.Event):
            self.waits.set()
            await decision.wait()
            raise AssertionError("nobody decides")
        if isinstance(decision, BaseException):
            raise decision
        return decision
