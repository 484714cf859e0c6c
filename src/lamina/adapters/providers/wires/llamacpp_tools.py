"""Encodes requests for the embedded llama.cpp and models that were trained on tools: the model's
own template renders the tools, from OpenAI's chat format.

Laws: one string per message. Templates place the tools after the first system message, so while
there are any, that message is a fixed one, and the session's own follows as a second: tools come
first, as on every wire.
"""

from typing import Any

from lamina.adapters.providers.wires import openai
from lamina.adapters.providers.wires.llamacpp import inline_references, write_body
from lamina.adapters.providers.wires.wire_messages import (
    WireMessage,
    describe_tool,
    join_text,
    parse_arguments,
    split_prompt,
    write_arguments,
)
from lamina.core.text import UNSEEN_PICTURE, escape_content
from lamina.core.values.message import Image, Text, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.wire import WireRequest

decode = openai.decode

TOOLS_HEAD = "You are a helpful assistant. Use a tool only if the question needs it."
# Always after results: without it a small model calls the same tool for ever.
AFTER_RESULTS = "\n\nNow answer the question with this, or use another tool."
# The tags in which templates wrap calls and results; a result cannot close them.
_WRAPPERS = ("tool_response", "tool_call")


def encode(request: WireRequest) -> dict[str, Any]:
    """Return a chat completion's body."""
    tools, system, messages = split_prompt(request.prompt)
    heads = ([TOOLS_HEAD] if tools else []) + list(filter(None, [join_text(system)]))
    wire: list[dict[str, Any]] = [{"role": "system", "content": head} for head in heads]
    for message in messages:
        wire += _encode_message(message)
    form: dict[str, Any] = {}
    if tools:
        form["tools"] = [{"type": "function", "function": _describe(tool)} for tool in tools]
    elif request.options.schema is not None:
        schema = {"name": "answer", "schema": inline_references(request.options.schema)}
        form["response_format"] = {"type": "json_schema", "json_schema": schema}
    return write_body(request, wire, form)


def _describe(tool: ToolDefinition) -> dict[str, Any]:
    description = describe_tool(tool, "parameters")
    return description | {"parameters": inline_references(description["parameters"])}


def _encode_message(message: WireMessage) -> list[dict[str, Any]]:
    contents = [segment.content for segment in message.segments]
    if message.role == "tool":
        results = [content for content in contents if isinstance(content, ToolResult)]
        wire = [
            {
                "role": "tool",
                "tool_call_id": result.call_id,
                "content": escape_content(result.text, *_WRAPPERS),
            }
            for result in results
        ]
        wire[-1]["content"] += AFTER_RESULTS
        return wire
    texts = [
        content.text if isinstance(content, Text) else UNSEEN_PICTURE
        for content in contents
        if isinstance(content, Text | Image)
    ]
    plain: dict[str, Any] = {"role": message.role, "content": "".join(texts)}
    calls = [content for content in contents if isinstance(content, ToolCall)]
    if calls:
        plain["tool_calls"] = [_encode_call(call) for call in calls]
    return [plain]


def _encode_call(call: ToolCall) -> dict[str, Any]:
    # llama.cpp refuses arguments that are not a JSON object.
    arguments = write_arguments(parse_arguments(call.arguments))
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
