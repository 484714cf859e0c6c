"""Answers that were logged as a stream of server-sent events, put together again.

Law: the result has the form of an answer that the same API gives at once; a stream that was cut
gives what had arrived. Events that cannot be read are counted, not raised.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lamina.adapters.formats.json_fields import Object, list_in, object_in, text_in
from lamina.adapters.formats.json_lines import parse_json


class StreamedAnswer(Struct, frozen=True, kw_only=True):
    body: Object
    unread_events: int = 0


def read_stream(text: str) -> StreamedAnswer | None:
    """The answer of a stream; None if it is not one."""
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
        body = events[-1]  # an error is an event of its own
    return StreamedAnswer(body=body, unread_events=unread_events)


def _events(text: str) -> Iterator[str]:
    data: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("data:"):
            data.append(line[len("data:") :].strip())
        elif not line.strip() and data:
            # Some loggers drop the blank lines between events: then each line is one.
            yield from (payload for payload in data if payload and payload != "[DONE]")
            data = []


def _join_chat(events: list[Object]) -> Object:
    body: Object = {}
    message: Object = {"role": "assistant", "content": ""}
    calls: dict[int, Object] = {}
    reason: Any = None
    for event in events:
        body |= {key: part for key, part in event.items() if key != "choices" and part is not None}
        # Of several answers the first one, as in an answer given at once.
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
                pass  # pings, and the ends of what was begun
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
    """The last event of a stream repeats it all; of one that was cut, the items that were done."""
    body: Object = {}
    items: list[Any] = []
    for event in events:
        if response := object_in(event, "response"):
            body |= response
        if event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
    return body | {"output": list_in(body, "output") or items}
