"""Reads request and answer bodies of OpenAI's two APIs and of Anthropic's, including answers logged
as event streams.

Laws: a body is read by its content, not by its destination, which logs seldom record. Everything
except messages, system prompt and tools is in `params`. A stream becomes the answer that the same
API returns without streaming; a truncated stream yields the part that had arrived, and events that
cannot be read are counted, not raised.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import (
    ForeignMessage,
    content_beyond_text,
    join_texts,
    messages_of,
    read_content,
    read_openai_usage,
    read_result,
    read_tools,
    read_usage,
    target_of,
    write_arguments,
)
from lamina.adapters.formats.json_lines import (
    Object,
    list_in,
    object_in,
    parse_json,
    parse_text,
    text_in,
    without,
)
from lamina.adapters.formats.response_items import read_answer, read_items
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.envelope import SystemPart
from lamina.core.values.message import (
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from lamina.core.values.usage import Usage


class StreamedAnswer(Struct, frozen=True, kw_only=True):
    body: Object
    unread_events: int = 0


def read_stream(text: str) -> StreamedAnswer | None:
    """Return the answer in a stream; None if `text` is not a stream."""
    events: list[Object] = []
    unread_events = 0
    for data in _events(text):
        try:
            value, _ = parse_json(data.encode("utf-8", "replace"))
        except ValueError:
            unread_events += 1
            continue
        if isinstance(value, dict):
            events.append(value)
        else:
            unread_events += 1
    if not events:
        return None
    kinds = {event["type"] for event in events if isinstance(event.get("type"), str)}
    if any("choices" in event for event in events):
        body = _join_chat(events)
    elif any(kind.startswith("response.") for kind in kinds):
        body = _join_responses(events)
    elif kinds & {"message_start", "content_block_start", "content_block_delta"}:
        body = _join_anthropic(events)
    else:
        body = events[-1]  # an error is a separate event
    return StreamedAnswer(body=body, unread_events=unread_events)


def parse_answer(text: str) -> StreamedAnswer | None:
    """Parse a logged answer: one object or a stream; None if it is neither."""
    value = parse_text(text)
    return StreamedAnswer(body=value) if isinstance(value, dict) else read_stream(text)


def _events(text: str) -> Iterator[str]:
    data: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("data:"):
            data.append(line[len("data:") :].strip())
        elif not line.strip() and data:
            # Some loggers drop the blank lines between events; then each line is an event.
            yield from (payload for payload in data if payload and payload != "[DONE]")
            data = []


def _join_chat(events: list[Object]) -> Object:
    body: Object = {}
    message: Object = {"role": "assistant", "content": ""}
    calls: dict[int, Object] = {}
    reason: Any = None
    for event in events:
        body |= {key: part for key, part in event.items() if key != "choices" and part is not None}
        # Of several answers, use the first, as without streaming.
        for choice in list_in(event, "choices")[:1]:
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                continue
            reason = choice.get("finish_reason") or reason
            delta = object_in(choice, "delta")
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if piece := text_in(delta, name):
                    message[name] = message.get(name, "") + piece
            for place, call in enumerate(list_in(delta, "tool_calls")):
                if isinstance(call, dict):
                    _join_call(calls, call, place)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return body | {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _join_call(calls: dict[int, Object], call: Object, place: int) -> None:
    index = call.get("index")
    joined_call = calls.setdefault(
        index if isinstance(index, int) else place,
        {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
    )
    joined_call["id"] = joined_call["id"] or text_in(call, "id")
    function, delta = joined_call["function"], object_in(call, "function")
    function["name"] = function["name"] or text_in(delta, "name")
    function["arguments"] += text_in(delta, "arguments")


def _join_anthropic(events: list[Object]) -> Object:
    body: Object = {"type": "message", "role": "assistant"}
    blocks: dict[int, Object] = {}
    partial: dict[int, str] = {}
    usage: Object = {}
    for event in events:
        index = event.get("index")
        place = index if isinstance(index, int) else len(blocks)
        match event.get("type"):
            case "message_start":
                body |= object_in(event, "message")
                usage |= object_in(body, "usage")
            case "content_block_start":
                blocks[place] = dict(object_in(event, "content_block"))
            case "content_block_delta":
                _join_delta(blocks, partial, place, object_in(event, "delta"))
            case "message_delta":
                body |= object_in(event, "delta")
                usage |= {k: v for k, v in object_in(event, "usage").items() if v is not None}
            case "error":
                body["error"] = event.get("error")
            case _:
                pass  # pings, and ends of blocks and messages
    for place, text in partial.items():
        try:
            blocks[place]["input"], _ = parse_json(text.encode("utf-8", "replace"))
        except ValueError:
            blocks[place]["input"] = {"_raw": text}
    return body | {"content": [blocks[place] for place in sorted(blocks)], "usage": usage}


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _join_delta(
    blocks: dict[int, Object], partial: dict[int, str], place: int, delta: Object
) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        blocks.setdefault(place, {"type": "tool_use"})
        partial[place] = partial.get(place, "") + text_in(delta, "partial_json")
    elif isinstance(kind, str) and (name := _DELTAS.get(kind)):
        block = blocks.setdefault(place, {"type": "text" if name == "text" else "thinking"})
        block[name] = text_in(block, name) + text_in(delta, name)


def _join_responses(events: list[Object]) -> Object:
    """Join a stream's events. The last one repeats everything; in a truncated stream, return the
    completed items."""
    body: Object = {}
    items: list[Any] = []
    for event in events:
        if response := object_in(event, "response"):
            body |= response
        if event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
    return body | {"output": list_in(body, "output") or items}


_SYSTEM = ("system", "developer")
_OPENAI_MODELS = ("gpt", "o1", "o3", "o4", "o5", "chatgpt", "codex")


class RequestBody(Struct, frozen=True, kw_only=True):
    system: tuple[SystemPart, ...]
    tools: tuple[ToolDefinition, ...]
    messages: tuple[ForeignMessage, ...]
    target: str
    params: Object


class AnswerBody(Struct, frozen=True, kw_only=True):
    message: ForeignMessage
    usage: Usage | None
    model: str
    params: Object


def looks_like_body(value: Object) -> bool:
    if isinstance(value.get("messages"), list):
        return "info" not in value and "type" not in value
    return "input" in value and "model" in value and "type" not in value


def read_body(body: Object, builder: SessionBuilder, line: int) -> RequestBody:
    """Read a request body of either vendor's APIs."""
    model = text_in(body, "model")
    rest: Object = {}
    system: list[str] = []
    items = body.get("messages", body.get("input"))
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    elif not isinstance(items, list):
        items, rest["input"] = [], items
    head = next((i for i, item in enumerate(items) if not _is_system(item)), len(items))
    for prompt in (body.get("system"), body.get("instructions"), *items[:head]):
        content = prompt.get("content") if isinstance(prompt, dict) and "role" in prompt else prompt
        parts = content if isinstance(content, list) else [content]
        system += [join_texts(part) for part in parts]
        # Content other than text has no place in a system part.
        if content_beyond_text(content) or (
            isinstance(prompt, dict) and prompt.keys() - {"role", "content"}
        ):
            rest.setdefault("system", []).append(prompt)
    tools, other_tools = read_tools(body.get("tools"))
    if other_tools:
        rest["tools"] = other_tools
    messages: list[ForeignMessage] = []
    if "messages" in body:
        provider = "anthropic" if "claude" in model else "openai"
        for item in items[head:]:
            messages += _read_message(item, builder, line, provider)
    else:
        messages = read_items(items[head:], builder, line)
    system_parts = tuple(
        SystemPart(name="system" if index == 0 else f"system-{index + 1}", text=text)
        for index, text in enumerate(filter(None, system))
    )
    params = without(body, "system", "instructions", "tools", "messages", "input", "model") | rest
    return RequestBody(system=system_parts, tools=tools, messages=tuple(messages),
                       target=_target(model), params=params)  # fmt: skip


def _is_system(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") in _SYSTEM


def _target(model: str) -> str:
    if model.startswith("claude"):
        return target_of("anthropic", model)
    provider = "openai" if model.startswith(_OPENAI_MODELS) else ""
    return target_of(provider, model)


def _read_message(
    item: Any, builder: SessionBuilder, line: int, provider: str
) -> list[ForeignMessage]:
    """Read one message from a chat body: in one format it may contain both results and user
    text."""
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        builder.report(line, "unknown_block", "a message without a role; kept as data")
        return [ForeignMessage(message=Message(role="user", blocks=()), rest=item)]
    role = item["role"]
    if role in ("tool", "function"):
        result = read_result(item, "tool_call_id", "name", "", builder, line)
        rest = without(item, "role", "tool_call_id", "name", "content")
        rest |= content_beyond_text(item.get("content"))
        return [ForeignMessage(message=Message(role="tool", blocks=(result,)), rest=rest or None)]
    content = read_content(item.get("content"), builder, line, provider)
    blocks: list[Block] = list(content.blocks)
    if reasoning := text_in(item, "reasoning_content", "reasoning"):
        blocks.insert(0, Thinking(text=reasoning, provider=provider))
    if refusal := text_in(item, "refusal"):
        blocks.append(Text(refusal))
    unread_calls: list[Any] = []
    beside: list[Any] = []
    for index, call in enumerate(list_in(item, "tool_calls")):
        tool_call = _read_call(call, builder.mint_call(index))
        if tool_call is None:
            unread_calls.append(call)
        else:
            blocks.append(tool_call)
            beside += [call] if _says_more(call) else []
    rest = without(item, "content", "tool_calls", "reasoning_content", "refusal")
    if role in ("user", "assistant"):
        del rest["role"]
    if content.rest:
        rest["blocks"] = content.rest
    if unread_calls:
        detail = f"{len(unread_calls)} calls that cannot be read; as data"
        builder.report(line, "unknown_block", detail)
    if unread_calls or beside:
        rest["tool_calls"] = unread_calls + beside
    messages = messages_of(role, replace(content, blocks=tuple(blocks)))
    return [ForeignMessage(message=message, rest=None if index else rest or None)
            for index, message in enumerate(messages)]  # fmt: skip


def _read_call(call: Any, new_id: str) -> ToolCall | None:
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
        id=text_in(call, "id") or new_id, name=name, arguments=write_arguments(arguments)
    )


def _says_more(call: Object) -> bool:
    """Return whether a call has content that our call type lacks."""
    if call.get("type", "function") != "function":
        return True
    function = object_in(call, "function")
    return bool(without(call, "id", "type", "function") or without(function, "name", "arguments"))


def read_answer_body(body: Object, builder: SessionBuilder, line: int) -> AnswerBody | None:
    """Read the answer in a response body; None if there is none."""
    model, usage = text_in(body, "model"), object_in(body, "usage")
    choices = [choice for choice in list_in(body, "choices") if isinstance(choice, dict)]
    if choices:
        message = {"role": "assistant", **object_in(choices[0], "message")}
        answer = _read_message(message, builder, line, "openai")[-1]
        params = without(body, "model", "usage", "choices")
        others = [choice for choice in body["choices"] if choice is not choices[0]]
        params |= {"choices": [without(choices[0], "message"), *others], "usage": body.get("usage")}
    elif isinstance(body.get("output"), list):
        items = [item for item in body["output"] if isinstance(item, dict)]
        answer, params = read_answer(items, builder, line), without(body, "model", "output")
    elif isinstance(body.get("content"), list) and body.get("error") is None:
        message = {"role": "assistant", "content": body["content"]}
        answer = _read_message(message, builder, line, "anthropic")[-1]
        target, params = target_of("anthropic", model), without(body, "model", "content")
        return AnswerBody(message=answer, usage=read_usage(usage), model=target, params=params)
    else:
        return None
    target, counts = _target(model), read_openai_usage(usage)
    return AnswerBody(message=answer, usage=counts, model=target, params=params)


def message_identity(foreign: ForeignMessage) -> str:
    """Return an identity by which logged messages are compared. Thinking is left out, as clients
    drop it when they send an answer back; so are surrounding blanks and the order of a call's
    arguments."""
    message = foreign.message
    words = "".join(block.text for block in message.blocks if isinstance(block, Text)).strip()
    # An unknown role also distinguishes messages.
    role = foreign.rest.get("role") if isinstance(foreign.rest, dict) else None
    facts: list[Any] = [message.role, role, words]
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
