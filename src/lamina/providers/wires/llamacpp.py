"""The embedded llama.cpp's wire: OpenAI's chat form, for models that know no tools of their own.

Laws: one string per message, since the server joins several with line breaks of its own. Tools are
described in one system part, and while there are any the answer is one JSON object that a schema
enforces: a call, or the answer. What was said in that form is sent back in that form.
"""

import re
from typing import Any

import msgspec

from lamina.codec import canonical_bytes, mend_text
from lamina.providers.wires import openai
from lamina.providers.wires.messages import (
    WireMessage,
    join_text,
    mint_call_id,
    parse_arguments,
    split_prompt,
    write_arguments,
)
from lamina.text import escape_content, one_line
from lamina.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.values.wire import Reply, WireRequest

# Always the likeliest word: it is what a small model knows best. Penalties on repetition make it
# leave the facts it was given, and spell words in odd tokens that its cache then lacks.
TEMPERATURE = 0.0
# Set in a completion whose text is in the form of tools; the provider knows what was asked for.
IN_TOOL_FORM = "in_tool_form"
UNSEEN_IMAGE = "[An image, which this model cannot see.]"
RESULT_TAG = "tool_result"
# Behind results, always: without it a small model calls the same tool for ever.
AFTER_RESULTS = '\n\nNow answer: {"answer": "..."}, or use another tool.'

# Of a schema: what stands at its root only; below which schemas have names of their own; and below
# which stands data, in which nothing is a reference.
_APART = {"$defs", "definitions", "$schema", "$id"}
_NAMED = {"properties", "patternProperties", "dependentSchemas"}
_DATA = {"const", "default", "enum", "example", "examples"}
MAX_REFERENCES = 500

TOOLS_HEAD = """# Tools

You can use the tools below. Always reply with one JSON object.
To use a tool: {"tool": "its name", "arguments": {...}}
To answer the person: {"answer": "your answer"}
Answer as soon as you know enough; a tool's result comes back to you as <tool_result>."""


def encode(request: WireRequest) -> dict[str, Any]:
    """The body of a chat completion; `session` says whose cache is meant."""
    tools, system, messages = split_prompt(request.prompt)
    head = "\n\n".join(filter(None, (_describe(tools), join_text(system))))
    wire: list[dict[str, Any]] = [{"role": "system", "content": head}] if head else []
    wire += [_message(message, bool(tools)) for message in messages]
    options = request.options
    body: dict[str, Any] = {
        "model": request.target.model,
        "messages": wire,
        "temperature": TEMPERATURE if options.temperature is None else options.temperature,
        "max_tokens": options.max_tokens or request.target.max_output,
    }
    if options.top_p is not None:
        body["top_p"] = options.top_p
    if tools:
        schema = {"name": "reply", "schema": _reply_schema(tools)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.cache_key:
        body["session"] = request.cache_key
    return body


def _describe(tools: list[ToolDefinition]) -> str:
    if not tools:
        return ""
    listed = []
    for tool in tools:
        text = f"## {tool.name}\n{tool.description.strip()}".rstrip()
        listed.append(f"{text}\nArguments: {canonical_bytes(tool.parameters).decode()}")
    return "\n\n".join([TOOLS_HEAD, *listed])


def _message(message: WireMessage, with_tools: bool) -> dict[str, Any]:
    texts: list[str] = []
    for segment in message.segments:
        match segment.content:
            case Text(text=text) if message.role == "assistant" and with_tools:
                texts.append(f'{{"answer": {msgspec.json.encode(text).decode()}}}')
            case Text(text=text):
                texts.append(text)
            case ToolCall(name=name, arguments=arguments):
                named = msgspec.json.encode(name).decode()
                texts.append(f'{{"tool": {named}, "arguments": {arguments}}}')
            case ToolResult(name=name, text=text):
                named, inside = (
                    escape_content(each, RESULT_TAG) for each in (one_line(name), text)
                )
                texts.append(f'<{RESULT_TAG} name="{named}">\n{inside}\n</{RESULT_TAG}>')
            case Image():
                texts.append(UNSEEN_IMAGE)
            case _:
                pass
    # Blocks of an answer or results are several objects; what a person attached is one text.
    glue = "" if message.role == "user" else "\n"
    if message.role == "tool":
        return {"role": "user", "content": glue.join(texts) + AFTER_RESULTS}
    return {"role": message.role, "content": glue.join(texts)}


def _reply_schema(tools: list[ToolDefinition]) -> dict[str, Any]:
    answer = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"anyOf": [answer, *map(_call_schema, tools)]}


def _call_schema(tool: ToolDefinition) -> dict[str, Any]:
    root = {"type": "object", "properties": {}} | tool.parameters
    return {
        "type": "object",
        "properties": {
            "tool": {"const": tool.name},
            "arguments": _Inliner(root).write_out(root),
        },
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


class _Inliner:
    """Writes the references of a schema out, for it no longer stands at the root. What refers to
    itself, or to elsewhere, may be anything: arguments are checked when they come."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        # Definitions that use one another twice each double at every step.
        self._left = MAX_REFERENCES

    def write_out(self, value: Any, inside: tuple[str, ...] = ()) -> Any:
        if isinstance(value, list):
            return [self.write_out(each, inside) for each in value]
        if not isinstance(value, dict):
            return value
        if isinstance(reference := value.get("$ref"), str):
            self._left -= 1
            known = self._left >= 0 and reference not in inside
            found = _look_up(reference, self._root) if known else None
            return {} if found is None else self.write_out(found, (*inside, reference))
        return {k: self._below(k, each, inside) for k, each in value.items() if k not in _APART}

    def _below(self, key: str, value: Any, inside: tuple[str, ...]) -> Any:
        if key in _DATA:
            return value
        if key in _NAMED and isinstance(value, dict):
            return {name: self.write_out(each, inside) for name, each in value.items()}
        return self.write_out(value, inside)


def _look_up(reference: str, root: dict[str, Any]) -> Any:
    found: Any = root
    head, *steps = reference.split("/")
    if head != "#":
        return None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def loosen_arguments(body: dict[str, Any]) -> dict[str, Any]:
    """The body with arguments of any form: for schemas that llama.cpp cannot make a grammar of."""
    schema = body["response_format"]["json_schema"]["schema"]
    forms = [
        form | {"properties": form["properties"] | {"arguments": {"type": "object"}}}
        if "tool" in form["properties"]
        else form
        for form in schema["anyOf"]
    ]
    loose = {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"anyOf": forms}}}
    return body | {"response_format": loose}


def decode(reply: object) -> Reply:
    """What a chat completion says.

    Raises:
        ReplyError: it is not a chat completion.
    """
    decoded = openai.decode(reply)
    if not (isinstance(reply, dict) and reply.get(IN_TOOL_FORM)):
        return decoded
    text = "".join(block.text for block in decoded.blocks if isinstance(block, Text))
    thought = [block for block in decoded.blocks if isinstance(block, Thinking)]
    said = read_tool_form(text, str(reply.get("id", "")), text)
    return msgspec.structs.replace(decoded, blocks=(*thought, said))


def read_tool_form(text: str, *facts: str) -> Text | ToolCall:
    """What an answer in the form of tools says. One that was cut off is text: a call has to be
    whole."""
    said = parse_arguments(text)
    match said:
        case {"answer": str(answer)}:
            return Text(mend_text(answer))
        case {"tool": str(name), "arguments": dict(arguments)}:
            written = write_arguments(arguments)
            return ToolCall(id=mint_call_id(0, *facts), name=mend_text(name), arguments=written)
        case _:
            reader = ToolFormReader()
            begun = reader.feed(text)
            return Text(mend_text(begun if reader.is_answer else text))


_OPENS = re.compile(r'\s*\{\s*"(answer|tool)"\s*:\s*"')
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
# What may become the second half of a letter.
_HALF = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class ToolFormReader:
    """Reads the answer out of the form while it is being written."""

    def __init__(self) -> None:
        self._raw = ""
        self._at: int | None = None
        self.is_answer = False
        self.is_call = False
        self.name = ""

    def feed(self, fragment: str) -> str:
        """What of the answer's text came with this fragment; `is_call` and `name` say when a call
        is being written instead."""
        self._raw += fragment
        if self._at is None:
            opened = _OPENS.match(self._raw)
            if opened is None:
                return ""
            self._at = opened.end()
            self.is_call = opened[1] == "tool"
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
                break  # the rest of it has not come yet
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
                break  # the other half of the letter has not come yet
            else:
                text.append("\ufffd")
        return "".join(text)
