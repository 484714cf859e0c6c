"""Files with tools in them, in the forms that people have.

Law: a tool that cannot be read is an error with its place; none is left out without a word.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.adapters.files.own_file import read_named_file
from lamina.core.text.excerpt import brief
from lamina.core.values.item import ItemId, tool_id
from lamina.core.values.message import ToolDefinition
from lamina.errors import UsageError

FORMS = (
    "a list of tools, an object with `tools` (what an MCP server answers to tools/list), or "
    "functions as OpenAI, Anthropic and Gemini take them"
)
# Where the schema of arguments stands, by whose form it is.
SCHEMAS = ("inputSchema", "input_schema", "parameters", "parametersJsonSchema")
# How much of a wrong value an error shows.
SHOWN = 40
DECLARATIONS = ("functionDeclarations", "function_declarations")


class ListedTool(Struct, frozen=True, kw_only=True):
    """A tool as a file describes it."""

    name: str
    server: str = ""
    description: str = ""
    server_description: str = ""
    parameters: tuple[str, ...] = ()
    schema: dict[str, Any] = {}

    @property
    def id(self) -> ItemId:
        return tool_id(self.server, self.name)

    @property
    def definition(self) -> ToolDefinition:
        """As a request would have it."""
        schema = self.schema or {"properties": {name: {} for name in self.parameters}}
        return ToolDefinition(name=self.name, description=self.description, parameters=schema)


def read_tools(path: Path) -> tuple[ListedTool, ...]:
    """The tools of a file, in its order.

    Raises:
        UsageError: it cannot be read, is not JSON, has no tools, or names one twice.
    """
    try:
        content = json.loads(read_named_file(path).decode("utf-8-sig"))
    except UsageError as error:
        raise UsageError(f"no tools: {error}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{str(path)!r} is not JSON: {error}") from error
    entries = list(_entries(content))
    if not entries:
        raise UsageError(f"there are no tools in {str(path)!r}; what can be read: {FORMS}")
    tools = tuple(_tool(entry, f"tool {number} of {str(path)!r}") for number, entry in entries)
    numbers: dict[ItemId, int] = {}
    for number, tool in enumerate(tools, 1):
        if tool.id in numbers:
            of = f" of the server {brief(tool.server)!r}" if tool.server else ""
            raise UsageError(
                f"{str(path)!r} names the tool {brief(tool.name)!r}{of} twice, as number "
                f"{numbers[tool.id]} and {number}; give each a name or a `server` of its own"
            )
        numbers[tool.id] = number
    return tools


def _entries(content: Any) -> Iterator[tuple[int, Any]]:
    """What stands for a tool each, with its number."""
    if isinstance(content, Mapping) and isinstance(content.get("result"), Mapping):
        # The whole answer of a server.
        content = content["result"]
    if isinstance(content, Mapping):
        content = content.get("tools", content)
    if isinstance(content, Mapping):
        content = [content] if any(key in content for key in DECLARATIONS) else []
    if isinstance(content, list):
        yield from enumerate(_unfolded(content), 1)


def _unfolded(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        declared = next((key for key in DECLARATIONS if _has(entry, key, list)), "")
        if declared:
            yield from entry[declared]
        elif _has(entry, "function", Mapping):
            yield entry["function"]
        else:
            yield entry


def _has(entry: Any, key: str, kind: type) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get(key), kind)


def _tool(entry: Any, place: str) -> ListedTool:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{place} is {_kind(entry)}, not an object with `name` and `description`")
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"{place} has no name: `name` is {_kind(name)}")
    texts = {
        key: _text(entry.get(key), f"`{key}` of {place}")
        for key in ("server", "description", "server_description")
    }
    return ListedTool(name=name, parameters=_parameters(entry), schema=_schema(entry), **texts)


def _text(value: Any, place: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise UsageError(f"{place} is {_kind(value)}, not text")


def _schema(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments, if it has one."""
    return dict(next((entry[key] for key in SCHEMAS if _has(entry, key, Mapping)), {}))


def _parameters(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a tool's arguments, from a list of them or from their schema."""
    arguments = entry.get("params")
    if arguments is None:
        arguments = _schema(entry).get("properties")
    if not isinstance(arguments, list | Mapping):
        return ()
    names = (
        argument.get("name") if isinstance(argument, Mapping) else argument
        for argument in arguments
    )
    return tuple(name for name in names if isinstance(name, str))


def _kind(value: Any) -> str:
    """What something in a file is, for whoever wrote it."""
    if value is None:
        return "missing"
    return brief(json.dumps(value, ensure_ascii=False), SHOWN)
