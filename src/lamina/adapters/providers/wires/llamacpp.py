"""Encodes requests and decodes replies for the embedded llama.cpp: OpenAI's chat format, for models
that were not trained on tools.

Laws: one string per message, since the server would join several with its own line breaks. Tools
are described in one system part, and while there are any, a schema forces the answer into one JSON
object: a call, or the answer. Output that the model wrote in that form is sent back in that form.
Everything except the messages that is shared with `llamacpp_tools` is written here (`write_body`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lamina.adapters.providers.wires import openai
from lamina.adapters.providers.wires.citation_grammar import write_citation_grammar
from lamina.adapters.providers.wires.wire_messages import WireMessage, join_text, split_prompt
from lamina.adapters.providers.wires.written_calls import read_tool_form
from lamina.core.codec import canonical_bytes
from lamina.core.text import UNSEEN_PICTURE, escape_content, one_line
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.wire import Reply, WireRequest

# Always choose the likeliest token, which suits small models best. Repetition penalties make them
# depart from the given facts, and spell words in odd tokens that the cache then lacks.
TEMPERATURE = 0.0


def write_body(
    request: WireRequest, messages: Sequence[Mapping[str, Any]], form: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a chat completion's body. `form` constrains the answer's format, if anything does:
    tools or a schema; without it a grammar may. `session` determines which cache to use."""
    options = request.options
    body: dict[str, Any] = {
        "model": request.target.model,
        "messages": messages,
        "temperature": TEMPERATURE if options.temperature is None else options.temperature,
        "max_tokens": options.max_tokens or request.target.max_output,
    }
    if options.top_p is not None:
        body["top_p"] = options.top_p
    body |= form
    if numbers := request.enforced_citations:
        body["grammar"] = write_citation_grammar(numbers)
    if request.cache_key:
        body["session"] = request.cache_key
    return body


# Set in a completion whose text is in the tool form; the provider can tell from the request.
IN_TOOL_FORM = "in_tool_form"
# The name of the tool form's schema.
TOOL_FORM = "reply"
RESULT_TAG = "tool_result"
# Always after results: without it a small model calls the same tool for ever.
AFTER_RESULTS = '\n\nNow answer: {"answer": "..."}, or use another tool.'

# The schema keys that occur only at its root; those that contain schemas under names of their own;
# and those that contain data, in which nothing is a reference.
_ROOT_ONLY = {"$defs", "definitions", "$schema", "$id"}
_NAMED_SCHEMAS = {"properties", "patternProperties", "dependentSchemas"}
_DATA = {"const", "default", "enum", "example", "examples"}
MAX_REFERENCES = 500

TOOLS_HEAD = """# Tools

You can use the tools below. Always reply with one JSON object.
To use a tool: {"tool": "its name", "arguments": {...}}
To answer the person: {"answer": "your answer"}
Answer as soon as you know enough; a tool's result comes back to you as <tool_result>."""


def encode(request: WireRequest) -> dict[str, Any]:
    """Return a chat completion's body."""
    tools, system, messages = split_prompt(request.prompt)
    head = "\n\n".join(filter(None, (_describe(tools), join_text(system))))
    wire: list[dict[str, Any]] = [{"role": "system", "content": head}] if head else []
    wire += [_message(message, bool(tools)) for message in messages]
    form: dict[str, Any] = {}
    if tools:
        # The schema is not part of the prompt: it forbids calls that the prompt still describes.
        schema = {"name": TOOL_FORM, "schema": _reply_schema(_callable(tools, request))}
        form["response_format"] = {"type": "json_schema", "json_schema": schema}
    return write_body(request, wire, form)


def _callable(tools: list[ToolDefinition], request: WireRequest) -> list[ToolDefinition]:
    names = request.allowed_tools
    if names is None or not request.target.bars_tools:
        return tools
    return [tool for tool in tools if tool.name in names]


def _describe(tools: list[ToolDefinition]) -> str:
    if not tools:
        return ""
    descriptions = []
    for tool in tools:
        text = f"## {tool.name}\n{tool.description.strip()}".rstrip()
        descriptions.append(f"{text}\nArguments: {canonical_bytes(tool.parameters).decode()}")
    return "\n\n".join([TOOLS_HEAD, *descriptions])


def _message(message: WireMessage, with_tools: bool) -> dict[str, Any]:
    texts: list[str] = []
    for segment in message.segments:
        match segment.content:
            case Text(text=text) if message.role == "assistant" and with_tools:
                texts.append(f'{{"answer": {msgspec.json.encode(text).decode()}}}')
            case Text(text=text):
                texts.append(text)
            case ToolCall(name=name, arguments=arguments):
                quoted_name = msgspec.json.encode(name).decode()
                texts.append(f'{{"tool": {quoted_name}, "arguments": {arguments}}}')
            case ToolResult(name=name, text=text):
                quoted_name, inside = (
                    escape_content(part, RESULT_TAG) for part in (one_line(name), text)
                )
                texts.append(f'<{RESULT_TAG} name="{quoted_name}">\n{inside}\n</{RESULT_TAG}>')
            case Image():
                texts.append(UNSEEN_PICTURE)
            case _:
                pass
    # Blocks of an answer, and results, are separate objects; a person's message is one string.
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
        "properties": {"tool": {"const": tool.name}, "arguments": inline_references(root)},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def inline_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references to other parts."""
    inlined: dict[str, Any] = _Inliner(schema).write_out(schema)
    return inlined


class _Inliner:
    """Expands the references in a schema that is no longer at the root. Circular and external
    references become schemas that allow anything: arguments are checked when they arrive."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        # If each definition uses the next one twice, their number doubles at every step.
        self._references_left = MAX_REFERENCES

    def write_out(self, value: Any, inside: tuple[str, ...] = ()) -> Any:
        if isinstance(value, list):
            return [self.write_out(inner, inside) for inner in value]
        if not isinstance(value, dict):
            return value
        if isinstance(reference := value.get("$ref"), str):
            self._references_left -= 1
            is_known = self._references_left >= 0 and reference not in inside
            definition = _look_up(reference, self._root) if is_known else None
            return {} if definition is None else self.write_out(definition, (*inside, reference))
        return {k: self._below(k, v, inside) for k, v in value.items() if k not in _ROOT_ONLY}

    def _below(self, key: str, value: Any, inside: tuple[str, ...]) -> Any:
        if key in _DATA:
            return value
        if key in _NAMED_SCHEMAS and isinstance(value, dict):
            return {name: self.write_out(inner, inside) for name, inner in value.items()}
        return self.write_out(value, inside)


def _look_up(reference: str, root: dict[str, Any]) -> Any:
    definition: Any = root
    head, *steps = reference.split("/")
    if head != "#":
        return None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(definition, dict) or name not in definition:
            return None
        definition = definition[name]
    return definition


def loosen_arguments(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with any arguments allowed, for schemas that have no llama.cpp grammar."""
    schema = body["response_format"]["json_schema"]["schema"]
    forms = [
        form | {"properties": form["properties"] | {"arguments": {"type": "object"}}}
        if "tool" in form["properties"]
        else form
        for form in schema["anyOf"]
    ]
    loose = {"type": "json_schema", "json_schema": {"name": TOOL_FORM, "schema": {"anyOf": forms}}}
    return body | {"response_format": loose}


def is_in_tool_form(body: dict[str, Any]) -> bool:
    """Return whether a body forces the answer into the tool form."""
    form = body.get("response_format")
    return form is not None and form["json_schema"]["name"] == TOOL_FORM


def decode(reply: object) -> Reply:
    """Decode a chat completion.

    Raises:
        ReplyError: `reply` is not a chat completion.
    """
    plain_reply = openai.decode(reply)
    if not (isinstance(reply, dict) and reply.get(IN_TOOL_FORM)):
        return plain_reply
    text = "".join(block.text for block in plain_reply.blocks if isinstance(block, Text))
    thoughts = [block for block in plain_reply.blocks if isinstance(block, Thinking)]
    answer = read_tool_form(text, str(reply.get("id", "")), text)
    return msgspec.structs.replace(plain_reply, blocks=(*thoughts, answer))
