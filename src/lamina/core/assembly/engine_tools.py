"""The engine's own tools: listed before all other tools, and run by the engine instead of a host.

Laws: each tool is one row of the table, in wire order; a definition that was sent never changes. A
third-party tool of the same name replaces it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.shortened_results import READ_RESULT
from lamina.core.text.wording import Wording, wording
from lamina.core.values.entry import RENDERER, RENDERERS
from lamina.core.values.item import ItemId, key_of, tool_id
from lamina.core.values.message import ToolCall, ToolDefinition
from lamina.core.values.tool import OfferedTool

# The maximum number of results of one search, and the maximum length of their descriptions.
MAX_FOUND, FOUND_TOKENS = 10, 2_000


def _use_tool(words: Wording) -> ToolDefinition:
    return ToolDefinition(
        name="use_tool",
        description=(
            "Calls a tool that is described in the conversation (in <tool_context>) and is not in "
            "this list."
        ),
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": words.use_tool_name},
                "arguments": {"type": "object", "description": words.use_tool_arguments},
            },
            "required": ["name", "arguments"],
        },
    )


def _find_tools(words: Wording) -> ToolDefinition:
    return ToolDefinition(
        name="find_tools",
        description=words.find_tools.format(most=MAX_FOUND),
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string", "description": words.find_tools_query}},
            "required": ["query"],
        },
    )


# The current renderer's definitions, for sessions that begin today.
USE_TOOL, FIND_TOOLS = _use_tool(wording(RENDERER)), _find_tools(wording(RENDERER))
_DEFINITIONS = {
    renderer: {
        tool.name: tool
        for tool in (_use_tool(wording(renderer)), _find_tools(wording(renderer)), READ_RESULT)
    }
    for renderer in RENDERERS
}


def define_engine_tool(name: str, renderer: int) -> ToolDefinition:
    """Return the definition to add to the list of a session that continues with this renderer."""
    return _DEFINITIONS[renderer][name]


def is_search(tool: ToolDefinition) -> bool:
    """Return whether a tool is the engine's tool search, under any renderer."""
    return any(tool == known[FIND_TOOLS.name] for known in _DEFINITIONS.values())


class EngineTool(Struct, frozen=True, kw_only=True):
    """A row of the table. `needs` is the condition for offering the tool: unlisted tools, a search
    over them as well, or readable results."""

    definition: ToolDefinition
    needs: Literal["unlisted", "search", "results"]


ENGINE_TOOLS: Mapping[str, EngineTool] = {
    tool.definition.name: tool
    for tool in (
        EngineTool(definition=USE_TOOL, needs="unlisted"),
        EngineTool(definition=FIND_TOOLS, needs="search"),
        EngineTool(definition=READ_RESULT, needs="results"),
    )
}
_IDS = frozenset(tool_id("", name) for name in ENGINE_TOOLS)


def engine_names(
    taken: Collection[str], *, speaks: bool, searches: bool, reads: bool
) -> tuple[str, ...]:
    """Return the names of the engine's tools for a list: `speaks` if there are unlisted tools,
    `searches` if they can be searched, `reads` if results can be read. Names in `taken` belong to
    another provider or were withdrawn."""
    speaks = speaks and USE_TOOL.name not in taken  # else found tools could not be called
    there = {"unlisted": speaks, "search": speaks and searches, "results": reads}
    return tuple(
        name for name, tool in ENGINE_TOOLS.items() if there[tool.needs] and name not in taken
    )


def engine_members(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """Return the engine's tools that a session with these `tools` may have: none if it has no
    tools, and none whose name another provider uses."""
    taken = {tool.definition.name for tool in tools}
    return tuple(
        OfferedTool(id=tool_id("", name), definition=tool.definition, digest="")
        for name, tool in ENGINE_TOOLS.items()
        if tools and name not in taken
    )


def is_engine_tool(item: ItemId) -> bool:
    """Return whether a requested tool is the engine's own rather than a server's."""
    return item in _IDS


def intended_call(call: ToolCall, offered: Mapping[str, OfferedTool] = {}) -> ToolCall:
    """Return the call itself, or the one made through `use_tool`; unchanged if its arguments cannot
    be read or if another provider offers a tool of that name."""
    if call.name != USE_TOOL.name or USE_TOOL.name in offered:
        return call
    try:
        inner = msgspec.json.decode(call.arguments or "{}", type=_Inner)
    except msgspec.MsgspecError:
        return call
    # Some models write the arguments as a JSON string.
    text = inner.arguments
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    # A tool given by name only is given by its server and its own name.
    labels = {key_of(tool.id): name for name, tool in offered.items()}
    return replace(call, name=labels.get(inner.name, inner.name), arguments=text)


class _Inner(Struct):
    name: str
    arguments: dict[str, object] | str = {}
