"""Tools and their calls as vendors write them: definitions, arguments, ids."""

from copy import deepcopy
from json import dumps
from typing import Any

import msgspec

from lamina.core.codec import digest_texts, mend_text
from lamina.core.values.message import ToolDefinition

_MINTED_PREFIX = "call-"


def describe_tool(tool: ToolDefinition, schema_name: str) -> dict[str, Any]:
    """A tool's name, description and schema, which has another name for each vendor."""
    description: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        description["description"] = tool.description
    # Vendors require an object with properties, even if there are none.
    description[schema_name] = {"type": "object", "properties": {}} | deepcopy(tool.parameters)
    return description


def parse_arguments(arguments: str) -> dict[str, Any]:
    """A call's JSON arguments as an object; anything else that a model wrote is wrapped in one."""
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": value}


def write_arguments(arguments: object) -> str:
    """A call's arguments as JSON text, in the order in which the model wrote the keys."""
    return mend_text(dumps(arguments or {}, ensure_ascii=False, separators=(",", ":")))


def mint_call_id(index: int, *facts: str) -> str:
    """An id for a call that came without one: the same whenever this reply is read, and different
    from those of other replies."""
    return f"{_MINTED_PREFIX}{index}-{digest_texts(facts)[:12]}"


def is_minted(call_id: str) -> bool:
    return call_id.startswith(_MINTED_PREFIX)
