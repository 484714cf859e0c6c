"""Describes briefly, in plain words instead of a JSON Schema, what a tool does and accepts. Tools
loaded by a result are described this way to a model that cannot load them.

Law: nothing of the schema is lost. Parts that words cannot express stay as schema. Only a signature
has less: names, types and required arguments, in one line; if there are very many, not all.
"""

import re
from collections.abc import Sequence
from typing import Any

from lamina.core.codec import canonical_bytes
from lamina.core.text.renderer import render_item
from lamina.core.text.wording import Wording
from lamina.core.values.item import Item
from lamina.core.values.message import LoadedTool

_PLAIN = ("type", "description", "enum", "default", "title")
_WORDS = {"string", "integer", "number", "boolean", "null"}
# Top-level schema keys that say nothing about the parts.
_FRAME = {"type", "properties", "required", "additionalProperties", "title", "$schema"}
# The maximum length of the first sentence quoted in a brief description.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
_LONGEST_SENTENCE = 160
# For arguments: the length of a brief schema's signature in characters, and how many choices it
# shows.
_LONGEST_ARGUMENTS, _MAX_CHOICES = 2_000, 12
# Where another word of a name starts: after a punctuation mark, or at a capital.
_NEXT_WORD = re.compile(r"[^\W_][\W_]+(?=[^\W_])|[a-z0-9](?=[A-Z])")


def describe_briefly(name: str, description: str, schema: dict[str, Any]) -> str:
    """Return a tool in two lines: the first sentence of its description, and its signature."""
    head = ": ".join(filter(None, (name, first_sentence(description))))
    return f"{head}\n{_signature(schema)}"


def describe_signature(name: str, schema: dict[str, Any]) -> str:
    """Return a tool in one line: its name and its signature."""
    return f"{name}: {_signature(schema)}"


def _signature(schema: dict[str, Any]) -> str:
    required = _required(schema)
    arguments = [
        f"{field}{'' if field in required else '?'}: {_type_name(inner)}"
        for field, inner in _fields(schema).items()
    ]
    return f"Arguments: {', '.join(arguments) or 'none'}"


def first_sentence(description: str) -> str:
    """Return a description's first sentence, as used in a brief description."""
    lines = description.strip().splitlines()
    sentence = _SENTENCE_END.split(lines[0], maxsplit=1)[0].strip() if lines else ""
    if len(sentence) > _LONGEST_SENTENCE:
        sentence = f"{sentence[: _LONGEST_SENTENCE - 1].rstrip()}…"
    return sentence


def is_one_word(name: str) -> bool:
    """Return whether a tool's name is a single word, which says too little."""
    return _NEXT_WORD.search(name) is None


def brief_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the information of a signature: names, types and required arguments;
    with very many arguments or choices, not all."""
    required = _required(schema)
    brief: dict[str, Any] = {
        "type": "object",
        "properties": {field: _brief_field(inner) for field, inner in _main_fields(schema).items()},
    }
    return brief | {"required": required} if required else brief


def _brief_field(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {}
    brief = {key: schema[key] for key in ("type", "enum") if key in schema}
    if isinstance(choices := brief.get("enum"), list) and len(choices) > _MAX_CHOICES:
        del brief["enum"]
    if "items" in schema:
        brief["items"] = _brief_field(schema["items"])
    return brief


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return properties if isinstance(properties, dict) else {}


def _required(schema: dict[str, Any]) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _main_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments or, if there are very many, as many as fit, required ones first."""
    fields, first = _fields(schema), _required(schema)
    room = _LONGEST_ARGUMENTS
    taken: set[str] = set()
    for field in sorted(fields, key=lambda field: field not in first):
        room -= len(f"{field}?: {_type_name(_brief_field(fields[field]))}, ")
        if room < 0:
            break
        taken.add(field)
    return {field: inner for field, inner in fields.items() if field in taken}


def _type_name(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    return _kind(schema) or (kind if isinstance(kind := schema.get("type"), str) else "any")


def describe_arguments(schema: dict[str, Any]) -> str:
    """Return the arguments of a tool, one per line; or its schema, if that says more than the
    list."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not _is_list_of_arguments(schema, properties, required):
        return f"Arguments, as a JSON Schema: {_json(schema)}"
    if not properties:
        return "Arguments: none"
    lines = [_line(name, field, name in required) for name, field in properties.items()]
    return "\n".join(["Arguments:", *lines])


def _is_list_of_arguments(schema: dict[str, Any], properties: Any, required: Any) -> bool:
    return (
        set(schema) <= _FRAME
        and schema.get("type", "object") == "object"
        and isinstance(schema.get("additionalProperties", True), bool)
        and isinstance(properties, dict)
        and isinstance(required, list)
        and all(isinstance(name, str) and name in properties for name in required)
        and all(isinstance(field, dict) for field in properties.values())
    )


def _line(name: str, schema: dict[str, Any], required: bool) -> str:
    kind = _kind(schema)
    if kind is None:
        return f"- {name} ({'' if required else 'optional; '}as a JSON Schema): {_json(schema)}"
    words = [kind, *([] if required else ["optional"])]
    if "default" in schema:
        words.append(f"default {_json(schema['default'])}")
    description = " ".join(str(schema.get("description", "")).split())
    return f"- {name} ({', '.join(words)})" + (f": {description}" if description else "")


def _kind(schema: dict[str, Any]) -> str | None:
    """Describe a type in words; None if words are not enough."""
    type_name = schema.get("type", "any")
    if set(schema) <= {*_PLAIN, "items"} and type_name == "array":
        item = schema.get("items", {})
        inner = _kind(item) if isinstance(item, dict) and "description" not in item else None
        return f"list of {inner}" if inner else None
    if not set(schema) <= set(_PLAIN):
        return None
    if "enum" in schema:
        choices = schema["enum"]
        return f"one of {', '.join(map(_json, choices))}" if isinstance(choices, list) else None
    if type_name == "any" or (isinstance(type_name, str) and type_name in _WORDS):
        return str(type_name)
    return None


def _json(value: Any) -> str:
    return canonical_bytes(value).decode()


def render_loaded(text: str, tools: Sequence[LoadedTool], words: Wording) -> str:
    """Return the `text` of a result, followed by descriptions of the tools it would load."""
    items = [
        Item(
            id=tool.item,
            content=describe_briefly(
                tool.definition.name, tool.definition.description, tool.definition.parameters
            ),
        )
        for tool in tools
    ]
    blocks = [render_item(item, words) for item in items]
    return "\n\n".join((text, words.use_loaded, *blocks))
