"""Bodies of requests and answers of OpenAI's two APIs and of Anthropic's.

Law: a body is read by what it holds, not by where it was sent: logs seldom say. What is not a
message, a system prompt or a tool is in `params`.
"""

import json
from typing import Any

from msgspec import Struct

from lamina.formats.content import (
    content_beyond_text,
    join_texts,
    messages_of,
    read_content,
    read_openai_usage,
    read_tools,
    read_usage,
    result_text,
    target_of,
    write_arguments,
)
from lamina.formats.json_lines import Object, list_in, object_in, text_in, without
from lamina.formats.response_items import read_answer, read_items
from lamina.formats.session_builder import SessionBuilder
from lamina.values.envelope import SystemPart
from lamina.values.message import (
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from lamina.values.usage import Usage

_SYSTEM = ("system", "developer")
_OPENAI_MODELS = ("gpt", "o1", "o3", "o4", "o5", "chatgpt", "codex")


class LoggedMessage(Struct, frozen=True, kw_only=True):
    """A message and the fields of it that have no place of ours."""

    message: Message
    left: Any = None


class RequestBody(Struct, frozen=True, kw_only=True):
    system: tuple[SystemPart, ...]
    tools: tuple[ToolDefinition, ...]
    messages: tuple[LoggedMessage, ...]
    target: str
    params: Object


class AnswerBody(Struct, frozen=True, kw_only=True):
    message: LoggedMessage
    usage: Usage | None
    model: str
    params: Object


def looks_like_body(value: Object) -> bool:
    if isinstance(value.get("messages"), list):
        return "info" not in value and "type" not in value
    return "input" in value and "model" in value and "type" not in value


def read_body(body: Object, builder: SessionBuilder, line: int) -> RequestBody:
    """A request body, of whichever API."""
    model = text_in(body, "model")
    left: Object = {}
    system: list[str] = []
    given = body.get("messages") if "messages" in body else body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        items, left["input"] = [], given
    head = _leading_system(items)
    for held in (body.get("system"), body.get("instructions"), *items[:head]):
        content = held.get("content") if isinstance(held, dict) and "role" in held else held
        parts = content if isinstance(content, list) else [content]
        system += [join_texts(part) for part in parts]
        # What is more than words has no place in a system part.
        if content_beyond_text(content) or (
            isinstance(held, dict) and held.keys() - {"role", "content"}
        ):
            left.setdefault("system", []).append(held)
    tools, left_tools = read_tools(body.get("tools"))
    if left_tools:
        left["tools"] = left_tools
    messages: list[LoggedMessage] = []
    if "messages" in body:
        provider = "anthropic" if "claude" in model else "openai"
        for item in items[head:]:
            messages += _read_message(item, builder, line, provider)
    else:
        messages = [LoggedMessage(message=item.message, left=list(item.left) or None)
                    for item in read_items(items[head:], builder, line)]  # fmt: skip
    named = tuple(
        SystemPart(name="system" if index == 0 else f"system-{index + 1}", text=text)
        for index, text in enumerate(filter(None, system))
    )
    params = without(body, "system", "instructions", "tools", "messages", "input", "model") | left
    return RequestBody(system=named, tools=tools, messages=tuple(messages), target=_target(model),
                params=params)  # fmt: skip


def _leading_system(items: list[Any]) -> int:
    head = 0
    while head < len(items) and isinstance(items[head], dict):
        if items[head].get("role") not in _SYSTEM:
            break
        head += 1
    return head


def _target(model: str) -> str:
    if model.startswith("claude"):
        return target_of("anthropic", model)
    provider = "openai" if model.startswith(_OPENAI_MODELS) else ""
    return target_of(provider, model)


def _read_message(
    item: Any, builder: SessionBuilder, line: int, provider: str
) -> list[LoggedMessage]:
    """A message of a chat, which holds results and words of the user's at once on one wire."""
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        builder.report(line, "unknown_block", "a message without a role; kept as data")
        return [LoggedMessage(message=Message(role="user", blocks=()), left=item)]
    role = item["role"]
    if role in ("tool", "function"):
        result = ToolResult(
            call_id=text_in(item, "tool_call_id"),
            name=text_in(item, "name"),
            text=result_text(item.get("content"), builder, line),
        )
        left = without(item, "role", "tool_call_id", "name", "content")
        left |= content_beyond_text(item.get("content"))
        return [LoggedMessage(message=Message(role="tool", blocks=(result,)), left=left or None)]
    content = read_content(item.get("content"), builder, line, provider)
    blocks: list[Block] = list(content.blocks)
    if reasoning := text_in(item, "reasoning_content", "reasoning"):
        blocks.insert(0, Thinking(text=reasoning, provider=provider))
    if refusal := text_in(item, "refusal"):
        blocks.append(Text(refusal))
    known = ["content", "tool_calls", "reasoning_content", "refusal"]
    unread: list[Any] = []
    beside: list[Any] = []
    for index, call in enumerate(list_in(item, "tool_calls")):
        read = _read_call(call, builder.mint_call(index))
        if read is None:
            unread.append(call)
        else:
            blocks.append(read)
            if _says_more(call):
                beside.append(call)
    left = without(item, *known, *(("role",) if role in ("user", "assistant") else ()))
    if content.rest:
        left["blocks"] = content.rest
    if unread:
        builder.report(line, "unknown_block", f"{len(unread)} calls that cannot be read; as data")
    if unread or beside:
        left["tool_calls"] = unread + beside
    pieces = messages_of(
        role,
        type(content)(blocks=tuple(blocks), results=content.results),
    )
    return [LoggedMessage(message=piece, left=None if index else left or None)
            for index, piece in enumerate(pieces)]  # fmt: skip


def _read_call(call: Any, minted: str) -> ToolCall | None:
    if not isinstance(call, dict):
        return None
    function = object_in(call, "function") or object_in(call, "custom")
    name = text_in(function, "name")
    if not name:
        return None
    arguments = function.get("arguments", function.get("input"))
    if "custom" in call and isinstance(arguments, str):
        arguments = {"input": arguments}
    return ToolCall(
        id=text_in(call, "id") or minted, name=name, arguments=write_arguments(arguments)
    )


def _says_more(call: Object) -> bool:
    """Whether a call says more than what a call of ours can hold."""
    if call.get("type", "function") != "function":
        return True
    function = object_in(call, "function")
    return bool(without(call, "id", "type", "function") or without(function, "name", "arguments"))


def read_answer_body(body: Object, builder: SessionBuilder, line: int) -> AnswerBody | None:
    """The answer in a response body; None if there is none."""
    model = text_in(body, "model")
    usage = object_in(body, "usage")
    choices = [each for each in list_in(body, "choices") if isinstance(each, dict)]
    if choices:
        held = {"role": "assistant", **object_in(choices[0], "message")}
        said = _read_message(held, builder, line, "openai")[-1]
        rest = without(body, "model", "usage", "choices")
        others = [each for each in body["choices"] if each is not choices[0]]
        rest |= {"choices": [without(choices[0], "message"), *others], "usage": body.get("usage")}
        return AnswerBody(message=said, usage=read_openai_usage(usage), model=_target(model),
                      params=rest)  # fmt: skip
    if isinstance(body.get("output"), list):
        items = [item for item in body["output"] if isinstance(item, dict)]
        read = read_answer(items, builder, line)
        said = LoggedMessage(message=read.message, left=list(read.left) or None)
        rest = without(body, "model", "output")
        return AnswerBody(message=said, usage=read_openai_usage(usage), model=_target(model),
                      params=rest)  # fmt: skip
    if isinstance(body.get("content"), list) and body.get("error") is None:
        held = {"role": "assistant", "content": body["content"]}
        said = _read_message(held, builder, line, "anthropic")[-1]
        rest = without(body, "model", "content")
        return AnswerBody(message=said, usage=read_usage(usage),
                          model=target_of("anthropic", model),
                      params=rest)  # fmt: skip
    return None


def message_identity(logged: LoggedMessage) -> str:
    """What makes two logged messages the same. Thinking is left out, as clients drop it when they
    send an answer back; so are blanks around a text, and the order of a call's arguments."""
    message = logged.message
    said = "".join(block.text for block in message.blocks if isinstance(block, Text)).strip()
    # A role that we do not have is one more fact.
    role = logged.left.get("role") if isinstance(logged.left, dict) else None
    facts: list[Any] = [message.role, role, said]
    for block in message.blocks:
        match block:
            case ToolCall(id=call, name=name, arguments=arguments):
                facts.append(["call", call, name, _in_order(arguments)])
            case ToolResult(call_id=call, text=text):
                facts.append(["result", call, text.strip()])
            case Image(picture=picture):
                facts.append(["image", picture.digest])
            case _:
                pass
    return json.dumps(facts)


def _in_order(arguments: str) -> Any:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
