"""From a server's or function's description of a tool to the tool that is offered.

Law: what is offered can be sent to every provider; anything else is withheld, with a reason.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from lamina.adapters.tools.names import exposed_name
from lamina.core.codec import digest_value, mend_text
from lamina.core.schemas import check_schema
from lamina.core.values.item import Include, ItemId, tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.tool import OfferedTool, Permission, Toolset, WithheldTool
from lamina.errors import InvalidText

# Functions belong to no server.
NO_SERVER = ""


def label_of(server: str, name: str) -> str:
    return f"{server} · {name}" if server else name


def offer_tool(
    server: str,
    name: str,
    description: str,
    schema: Any,
    permission: Permission,
    include: Include = "always",
) -> OfferedTool | WithheldTool:
    """The tool as it is offered, or why it cannot be."""
    label = label_of(server, mend_text(name))
    parameters = _as_object(schema)
    problem = check_schema(parameters)
    if problem is None and parameters.get("type") != "object":
        problem = f"its arguments are to be an object, not {parameters.get('type')!r}"
    if problem is None:
        try:
            tool = _offer(server, mend_text(name), mend_text(description), parameters)
            return replace(tool, permission=permission, include=include)
        except (InvalidText, TypeError, OverflowError, RecursionError) as error:
            problem = str(error)
    return WithheldTool(
        what=label,
        reason="invalid",
        detail=f"the schema of its arguments cannot be used: {problem}. Tell whoever makes it, "
        f"or disable the tool in the configuration",
    )


def _offer(server: str, name: str, description: str, parameters: dict[str, Any]) -> OfferedTool:
    full_name = exposed_name(server, name) if server else name
    return OfferedTool(
        id=tool_id(server, name),
        definition=ToolDefinition(name=full_name, description=description, parameters=parameters),
        # Of the tool's own description, not of its name for the model.
        digest=digest_value([server, name, description, parameters]),
        label=label_of(server, name),
    )


def _as_object(schema: Any) -> Any:
    """Tools without arguments often have no schema at all; providers require one."""
    if schema is None:
        schema = {}
    if isinstance(schema, dict) and schema.get("type", "object") == "object":
        return {"properties": {}, **schema, "type": "object"}
    return schema


def tool_name_of(id: ItemId) -> str:
    """The tool's part of its id."""
    return id.partition("/")[2]


async def ask_all(asks: Sequence[Callable[[], Awaitable[Toolset]]]) -> list[Toolset]:
    """The toolsets of several hosts, asked at once, in the order of the hosts."""
    toolsets = [Toolset()] * len(asks)

    async def ask(at: int) -> None:
        toolsets[at] = await asks[at]()

    async with anyio.create_task_group() as tasks:
        for at in range(len(asks)):
            tasks.start_soon(ask, at)
    return toolsets


def without_duplicates(tools: Iterable[OfferedTool]) -> Toolset:
    """The first tool of every name; a model could not say which of two it means."""
    first: dict[str, OfferedTool] = {}
    withheld: list[WithheldTool] = []
    for tool in tools:
        name = tool.definition.name
        holder = first.setdefault(name, tool)
        if holder is not tool:
            withheld.append(
                WithheldTool(
                    what=tool.label,
                    reason="duplicate",
                    detail=f"{holder.label!r} is already offered as {name!r}; rename one of them, "
                    f"or disable one",
                )
            )
    return Toolset(tools=tuple(first.values()), withheld=tuple(withheld))
