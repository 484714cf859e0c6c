"""Calls of tools that a model wrote as text, in JSON of its own, where its template asked for them
in another form. Small models often do.

Law: it is a call only if the whole answer is one, to a tool that was offered, with nothing else in
it. Everything else is text, as it came.
"""

from collections.abc import Collection
from typing import Any, Final

import msgspec

from lamina.adapters.providers.wires.tool_calls import write_arguments

# What such an answer begins with, white space left out, up to where it can be told.
_KEY: Final = '{"name":'
_WRAPPERS: Final = {
    "": "",
    "```json": "```",
    "```": "```",
    "<tool_call>": "</tool_call>",
    "<tools>": "</tools>",
}


def may_be_call(beginning: str) -> bool:
    """Whether an answer that begins so may turn out to be a call."""
    compact = "".join(beginning[:200].split())
    starts = [opening + brace + _KEY for opening in _WRAPPERS for brace in ("", "{")]
    return any(start.startswith(compact) or compact.startswith(start) for start in starts)


def read_written_call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """The call that an answer is, in the form of a chat completion; None if it is text."""
    text = text.strip()
    for opening, closing in _WRAPPERS.items():
        if not (text.startswith(opening) and text.endswith(closing)):
            continue
        inner = text[len(opening) : len(text) - len(closing)].strip()
        if inner.startswith("{{") and inner.endswith("}}"):
            # As Qwen's own template shows it.
            inner = inner[1:-1]
        try:
            value = msgspec.json.decode(inner)
        except (msgspec.DecodeError, RecursionError):
            continue
        match value:
            case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
                if name in names:
                    function = {"name": name, "arguments": write_arguments(arguments)}
                    return {"type": "function", "function": function}
    return None
