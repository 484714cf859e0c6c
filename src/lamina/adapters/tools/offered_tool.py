"""Converts the tool definition of a server or function into an offered tool, named `server__tool`
for the model in characters that every provider accepts.

Laws: every offered tool can be sent to every provider; others are withheld with a reason. Two
different tools never get the same name, and a tool's name depends only on its server and its own
name, so it stays the same when other tools are added or removed.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from lamina.core.codec import digest_texts, digest_value, mend_text
from lamina.core.schemas import check_schema
from lamina.core.values.item import Include, ItemId, tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.tool import OfferedTool, Permission, Toolset, WithheldTool
from lamina.errors import InvalidText

MAX_LETTERS = 64
_CLEAN = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST_LETTERS = 16


def is_exposable(name: str) -> bool:
    """Check whether every provider accepts this tool name."""
    return len(name) <= MAX_LETTERS and _CLEAN.fullmatch(name) is not None


def exposed_name(server: str, tool: str) -> str:
    """Return the tool's name for the model. A clean pair can be parsed back: its first `__` ends
    the server. Any other name gets a digest and has no `__`, so it cannot be mistaken for a clean
    one."""
    pair = f"{server}__{tool}"
    if _is_clean(server, tool) and len(pair) <= MAX_LETTERS:
        return pair
    words = re.sub(r"[^A-Za-z0-9-]+", "_", f"{server}_{tool}").strip("_")
    head = words[: MAX_LETTERS - _DIGEST_LETTERS - 1].rstrip("_") or "tool"
    return f"{head}_{digest_texts((server, tool))[:_DIGEST_LETTERS]}"


def _is_clean(server: str, tool: str) -> bool:
    letters = _CLEAN.fullmatch(server) and _CLEAN.fullmatch(tool)
    # Without this, `a_` + `b` and `a` + `_b` would be indistinguishable.
    return bool(letters) and not ("__" in server or server.endswith("_") or tool.startswith("_"))


# Functions do not belong to a server.
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
    """Return the offered tool, or the reason why it cannot be offered."""
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
        # The digest covers the tool's own description, not its name for the model.
        digest=digest_value([server, name, description, parameters]),
        label=label_of(server, name),
    )


def _as_object(schema: Any) -> Any:
    """Return an object schema: tools without arguments often lack one, but providers require it."""
    if schema is None:
        schema = {}
    if isinstance(schema, dict) and schema.get("type", "object") == "object":
        return {"properties": {}, **schema, "type": "object"}
    return schema


def tool_name_of(id: ItemId) -> str:
    """Return the tool part of an id."""
    return id.partition("/")[2]


async def ask_all(asks: Sequence[Callable[[], Awaitable[Toolset]]]) -> list[Toolset]:
    """Request the toolsets of several hosts concurrently; return them in the order of the hosts."""
    toolsets = [Toolset()] * len(asks)

    async def ask(at: int) -> None:
        toolsets[at] = await asks[at]()

    async with anyio.create_task_group() as tasks:
        for at in range(len(asks)):
            tasks.start_soon(ask, at)
    return toolsets


def without_duplicates(tools: Iterable[OfferedTool]) -> Toolset:
    """Return the first tool with each name; a model could not distinguish two."""
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
