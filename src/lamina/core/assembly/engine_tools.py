"""The engine's own tools: they stand in front of a list of tools, and no host runs them.

Laws: each is one row of the table, in the order in which they stand on the wire; a definition that
was sent never changes. A tool of somebody else's that has such a name takes its place.
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

# How many tools one search brings at most, and how much may be said of them.
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


# As a session that begins today has them.
USE_TOOL, FIND_TOOLS = _use_tool(wording(RENDERER)), _find_tools(wording(RENDERER))
_DEFINITIONS = {
    renderer: {
        tool.name: tool
        for tool in (_use_tool(wording(renderer)), _find_tools(wording(renderer)), READ_RESULT)
    }
    for renderer in RENDERERS
}


def define_engine_tool(name: str, renderer: int) -> ToolDefinition:
    """Return the definition that joins a list where a session goes on with this renderer."""
    return _DEFINITIONS[renderer][name]


def is_search(tool: ToolDefinition) -> bool:
    """Whether it is the engine's search for tools, in the words of any renderer."""
    return any(tool == known[FIND_TOOLS.name] for known in _DEFINITIONS.values())


class EngineTool(Struct, frozen=True, kw_only=True):
    """A row of the table. `needs` says what has to be there for it to be offered: tools that are
    not in the list, a search over them, too, or results that can be read."""

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
    """The engine's tools that stand in a list: which `speaks` for tools that are not in it,
    `searches` them, `reads` results. Names that are `taken` belong to somebody else, or were
    withdrawn."""
    speaks = speaks and USE_TOOL.name not in taken  # else what is found could not be called
    there = {"unlisted": speaks, "search": speaks and searches, "results": reads}
    return tuple(
        name for name, tool in ENGINE_TOOLS.items() if there[tool.needs] and name not in taken
    )


def engine_members(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The engine's tools that a session with these `tools` can do without: where there is no tool
    there is none of them, and a name that somebody else has is not theirs."""
    taken = {tool.definition.name for tool in tools}
    return tuple(
        OfferedTool(id=tool_id("", name), definition=tool.definition, digest="")
        for name, tool in ENGINE_TOOLS.items()
        if tools and name not in taken
    )


def is_engine_tool(item: ItemId) -> bool:
    """Whether a tool of a request is the engine's own, and nobody's server has it."""
    return item in _IDS


def intended_call(call: ToolCall, offered: Mapping[str, OfferedTool] = {}) -> ToolCall:
    """The call itself, or the one that is made through `use_tool`; as it is, if that cannot be
    read, or if somebody offers a tool of that name."""
    if call.name != USE_TOOL.name or USE_TOOL.name in offered:
        return call
    try:
        inner = msgspec.json.decode(call.arguments or "{}", type=_Inner)
    except msgspec.MsgspecError:
        return call
    # Some write the arguments as a text that holds them.
    text = inner.arguments
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    # Where it is only named, it is named by its server and its own name.
    labels = {key_of(tool.id): name for name, tool in offered.items()}
    return replace(call, name=labels.get(inner.name, inner.name), arguments=text)


class _Inner(Struct):
    name: str
    arguments: dict[str, object] | str = {}
