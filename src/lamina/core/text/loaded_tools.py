"""Tools that a result loads, for a model that cannot load them: in words."""

from collections.abc import Sequence

from lamina.core.text.arguments import describe_briefly
from lamina.core.text.renderer import render_item
from lamina.core.values.item import Item
from lamina.core.values.message import LoadedTool

USE_LOADED = "They are called through use_tool:"


def render_loaded(text: str, tools: Sequence[LoadedTool]) -> str:
    """The `text` of a result, and behind it what it would load."""
    items = [
        Item(
            id=tool.item,
            content=describe_briefly(
                tool.definition.name, tool.definition.description, tool.definition.parameters
            ),
        )
        for tool in tools
    ]
    return "\n\n".join((text, USE_LOADED, *map(render_item, items)))
