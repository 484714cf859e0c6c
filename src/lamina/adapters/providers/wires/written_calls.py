"""Reads calls that the embedded model writes: in the enforced tool form, or as text in its own JSON
style, as small models often do.

Law: text is a call only if the whole answer is one, to a tool that was offered, with nothing else
in it. Everything else remains text, unchanged.
"""

import re
from collections.abc import Collection
from typing import Any, Final

import msgspec

from lamina.adapters.providers.wires.wire_messages import (
    mint_call_id,
    parse_arguments,
    write_arguments,
)
from lamina.core.codec import mend_text
from lamina.core.values.message import Text, ToolCall


def read_tool_form(text: str, *facts: str) -> Text | ToolCall:
    """Read an answer in the tool form. A truncated one is text: a call has to be complete."""
    match parse_arguments(text):
        case {"answer": str(answer)}:
            return Text(mend_text(answer))
        case {"tool": str(name), "arguments": dict(arguments)}:
            text = write_arguments(arguments)
            return ToolCall(id=mint_call_id(0, *facts), name=mend_text(name), arguments=text)
        case _:
            reader = ToolFormReader()
            beginning = reader.feed(text)
            return Text(mend_text(beginning if reader.is_answer else text))


_OPENS = re.compile(r'\s*\{\s*"(answer|tool)"\s*:\s*"')
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
# Characters that may become the second half of a surrogate pair.
_HALF = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class ToolFormReader:
    """Reads the answer from the tool form while it is being written."""

    def __init__(self) -> None:
        self._raw = ""
        self._at: int | None = None
        self.is_answer = False
        self.is_call = False
        self.name = ""

    def feed(self, fragment: str) -> str:
        """Return this fragment's part of the answer's text; `is_call` and `name` show when a call
        is being written instead."""
        self._raw += fragment
        if self._at is None:
            opening = _OPENS.match(self._raw)
            if opening is None:
                return ""
            self._at = opening.end()
            self.is_call = opening[1] == "tool"
            self.is_answer = not self.is_call
        if self.is_call:
            end = self._raw.find('"', self._at)
            self.name = self._raw[self._at : end] if end >= 0 else ""
            return ""
        return self._read()

    def _read(self) -> str:
        text: list[str] = []
        assert self._at is not None
        while self._at < len(self._raw):
            char = self._raw[self._at]
            if char == '"':
                break
            if char != "\\":
                text.append(char)
                self._at += 1
                continue
            escape = _ESCAPE.match(self._raw, self._at)
            if escape is None:
                break  # the rest of it has not arrived yet
            if escape[1] is None:
                text.append(_PLAIN.get(escape[2], escape[2]))
                self._at = escape.end()
                continue
            code = int(escape[1], 16)
            self._at = escape.end()
            if not 0xD800 <= code < 0xE000:
                text.append(chr(code))
            elif code < 0xDC00 and (low := _LOW.match(self._raw, escape.end())):
                text.append(bytes.fromhex(escape[1] + low[1]).decode("utf-16-be"))
                self._at = low.end()
            elif code < 0xDC00 and _HALF.fullmatch(self._raw, escape.end()):
                self._at = escape.start()
                break  # the other half of the character has not arrived yet
            else:
                text.append("\ufffd")
        return "".join(text)


# Possible beginnings of such an answer, without white space, up to the point where they can be
# recognised.
_KEY: Final = '{"name":'
_WRAPPERS: Final = {
    "": "",
    "```json": "```",
    "```": "```",
    "<tool_call>": "</tool_call>",
    "<tools>": "</tools>",
}


def may_be_call(beginning: str) -> bool:
    """Return whether an answer with this beginning may turn out to be a call."""
    compact = "".join(beginning[:200].split())
    starts = [opening + brace + _KEY for opening in _WRAPPERS for brace in ("", "{")]
    return any(start.startswith(compact) or compact.startswith(start) for start in starts)


def read_written_call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """Return the call in an answer, in chat completion format; None if the answer is text."""
    text = text.strip()
    for opening, closing in _WRAPPERS.items():
        if not (text.startswith(opening) and text.endswith(closing)):
            continue
        inner = text[len(opening) : len(text) - len(closing)].strip()
        if inner.startswith("{{") and inner.endswith("}}"):
            # As Qwen's own template presents it.
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
