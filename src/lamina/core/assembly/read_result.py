"""`read_result`: the tool through which a model reads what was left out of a result.

Laws: a handle is the beginning of the digest of all that the tool gave: the same text has the same
handle on every branch, in every fork and after every restart. A model is told of a handle where it
can be used, and nowhere else. What is wrong with a call is its result.
"""

import re

from msgspec import Struct

from lamina.core.journal import State
from lamina.core.values.message import ToolDefinition

# The least digits of a digest that make a handle, and the most tokens of a page: of the room that a
# request has at most this share, and never less than a few lines.
DIGITS = 8
MOST_TOKENS, LEAST_TOKENS, PAGE_SHARE = 8_000, 500, 8
_HANDLE = re.compile(rf"\s*r?([0-9a-f]{{{DIGITS},64}})\s*")

READ_RESULT = ToolDefinition(
    name="read_result",
    description=(
        "Reads what was left out of a long tool result, by the handle that stands where it was "
        "cut. Gives numbered lines, and says how to go on."
    ),
    parameters={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle, such as r1a2b3c4d."},
            "lines": {
                "type": "string",
                "description": 'Which lines: "120-180", "120-", or "-50" for the last 50.',
            },
            "find": {
                "type": "string",
                "description": (
                    "Gives only lines with this text, in any case; * stands for anything, a|b for "
                    "either. Not a regular expression."
                ),
            },
            "context": {
                "type": "integer",
                "description": "How many lines to give around each that was found; 2 if not said.",
            },
        },
        "required": ["handle"],
    },
)


class ReadArguments(Struct, frozen=True, kw_only=True):
    """What a call of the tool says."""

    handle: str
    lines: str = ""
    find: str = ""
    context: int = 2


def make_handle(digest: str) -> str:
    """The handle of what has this digest."""
    return f"r{digest[:DIGITS]}"


def digits_of(handle: str) -> str:
    """What the digest begins with that a handle is for; empty if it is none."""
    match = _HANDLE.fullmatch(handle.lower())
    return match[1] if match else ""


def can_read_results(state: State) -> bool:
    """Whether the model has the tool: the engine's own, not somebody else's of that name."""
    return any(is_reader(tool) for tool in state.envelope.tools)


def is_reader(tool: ToolDefinition) -> bool:
    return tool.name == READ_RESULT.name and "handle" in tool.parameters.get("properties", {})


def say_how_to_read(digest: str) -> str:
    """What stands where a result was cut."""
    return f"{READ_RESULT.name} gives the rest: handle {make_handle(digest)}"


def page_tokens(limit: int) -> int:
    """The most tokens of a page, where requests may have `limit`."""
    return max(LEAST_TOKENS, min(MOST_TOKENS, limit // PAGE_SHARE))
