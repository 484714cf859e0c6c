"""Anthropic's messages wire, with cache markers at the ends of L1, L2 and the cached messages."""

from base64 import b64encode
from typing import Any

from lamina.codec import mend_text
from lamina.errors import ReplyError
from lamina.providers.wire import (
    as_dict,
    merge_roles,
    parse_arguments,
    split_prompt,
)
from lamina.values.message import Block, Image, Text, Thinking, ToolCall, ToolResult
from lamina.values.prompt import Segment
from lamina.values.usage import Usage
from lamina.values.wire import Reply, WireRequest

_MARK = {"type": "ephemeral"}


def encode(request: WireRequest) -> dict[str, Any]:
    """Keyword arguments for `client.messages.create`."""
    tools, system, messages = split_prompt(request.prompt)
    marks = _marks(request)
    body: dict[str, Any] = {
        "model": request.target.model,
        "max_tokens": request.options.max_tokens or min(4_096, request.target.max_output),
    }
    if tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters or {"type": "object", "properties": {}},
            }
            for tool in tools
        ]
    if system:
        body["system"] = _merge_text([_part(segment, request, marks) for segment in system])
    body["messages"] = [
        {
            "role": message.role,
            "content": _merge_text([_part(s, request, marks) for s in message.segments]),
        }
        for message in merge_roles(messages, as_user=True)
    ]
    if request.options.temperature is not None:
        # The SDK's `create` has no such argument any more; the API still takes it.
        body["extra_body"] = {"temperature": request.options.temperature}
    return body


def _marks(request: WireRequest) -> set[int]:
    """Positions (by `id`) of the segments that carry a marker: the ends of L1, of L2 in the system
    message and of the last cached message, where enough tokens stand before them to be kept."""
    prompt, rules = request.prompt, request.target.cache
    ends: dict[str, tuple[Segment, int]] = {}
    tokens = 0
    for link in prompt.front:
        tokens = link.tokens
        ends[link.segment.layer] = (link.segment, tokens)
    if len(prompt.history):
        tokens += prompt.history[-1].tokens
        ends["history"] = (prompt.history[-1].segment, tokens)
    for segment in prompt.turn:
        if not segment.cached:
            break
        tokens += segment.tokens
        ends["history"] = (segment, tokens)
    ends.pop("tools", None)  # L1 follows at once and covers them
    return {id(segment) for segment, before in ends.values() if before >= rules.minimum}


def _part(segment: Segment, request: WireRequest, marks: set[int]) -> dict[str, Any]:
    part = _content(segment, request)
    if id(segment) in marks:
        part["cache_control"] = dict(_MARK)
    return part


def _content(segment: Segment, request: WireRequest) -> dict[str, Any]:
    match segment.content:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(picture=picture):
            data = b64encode(request.blobs[picture.digest]).decode()
            source = {"type": "base64", "media_type": picture.media_type, "data": data}
            return {"type": "image", "source": source}
        case ToolCall(id=call, name=name, arguments=arguments):
            parsed = parse_arguments(arguments)
            return {"type": "tool_use", "id": call, "name": name, "input": parsed}
        case ToolResult(call_id=call, text=text, is_error=is_error):
            result = {"type": "tool_result", "tool_use_id": call, "content": text}
            return result | {"is_error": True} if is_error else result
        case Thinking(redacted=redacted) if redacted:
            return {"type": "redacted_thinking", "data": redacted}
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case other:
            raise AssertionError(f"{type(other).__name__} does not stand in a message")


def _merge_text(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring texts as one block, up to a marker: blocks count towards the look-back of 20."""
    merged: list[dict[str, Any]] = []
    for part in parts:
        before = merged[-1] if merged else None
        if before and before["type"] == part["type"] == "text" and "cache_control" not in before:
            before["text"] += part["text"]
            if "cache_control" in part:
                before["cache_control"] = part["cache_control"]
        else:
            merged.append(part)
    return merged


def decode(reply: object) -> Reply:
    """What a message says.

    Raises:
        ReplyError: it is not a message.
    """
    data = as_dict(reply)
    content = data.get("content")
    if not isinstance(content, list):
        raise ReplyError(f"not an Anthropic message, it has no content: {sorted(data)!r}")
    blocks: list[Block] = []
    for part in content:
        match part.get("type"):
            case "text":
                blocks.append(Text(mend_text(part.get("text") or "")))
            case "tool_use":
                arguments = mend_text(_compact(part.get("input") or {}))
                blocks.append(ToolCall(id=part["id"], name=part["name"], arguments=arguments))
            case "thinking":
                blocks.append(
                    Thinking(
                        text=mend_text(part.get("thinking") or ""),
                        signature=part.get("signature") or "",
                        provider="anthropic",
                    )
                )
            case "redacted_thinking":
                blocks.append(Thinking(redacted=part.get("data") or "", provider="anthropic"))
            case _:
                pass
    stop = data.get("stop_reason") or ""
    return Reply(
        blocks=tuple(blocks) or (Text(""),),
        usage=_usage(data.get("usage")),
        stop=stop,
        model=data.get("model") or "",
        complete=bool(stop),
    )


def _compact(value: object) -> str:
    from json import dumps  # keeps the order in which the model wrote the keys

    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def _usage(usage: dict[str, Any] | None) -> Usage:
    if not usage:
        return Usage(cache_reported=False)
    cached = usage.get("cache_read_input_tokens")
    written = usage.get("cache_creation_input_tokens")
    return Usage(
        input=(usage.get("input_tokens") or 0) + (cached or 0) + (written or 0),
        cached=cached or 0,
        written=written or 0,
        output=usage.get("output_tokens") or 0,
        cache_reported=cached is not None,
    )
