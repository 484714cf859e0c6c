"""Gemini's generateContent wire. Implicit caching needs nothing but stable bytes."""

from base64 import b64decode, b64encode
from typing import Any

from lamina.codec import mend_text
from lamina.errors import ReplyError
from lamina.providers.wire import (
    as_dict,
    joined_text,
    merge_roles,
    parse_arguments,
    split_prompt,
)
from lamina.values.message import Block, Image, Text, Thinking, ToolCall, ToolResult
from lamina.values.prompt import Content, Segment
from lamina.values.usage import Usage
from lamina.values.wire import Reply, WireRequest


def encode(request: WireRequest) -> dict[str, Any]:
    """Keyword arguments for `client.models.generate_content`."""
    tools, system, messages = split_prompt(request.prompt)
    body: dict[str, Any] = {
        "model": request.target.model,
        "contents": [
            {
                "role": "model" if message.role == "assistant" else "user",
                "parts": _parts(message.segments, request),
            }
            for message in merge_roles(messages, as_user=True)
        ],
    }
    config: dict[str, Any] = {}
    if system:
        config["system_instruction"] = joined_text(system)
    if tools:
        config["tools"] = [
            {
                "function_declarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters_json_schema": tool.parameters
                        or {"type": "object", "properties": {}},
                    }
                    for tool in tools
                ]
            }
        ]
        config["automatic_function_calling"] = {"disable": True}
    if request.options.temperature is not None:
        config["temperature"] = request.options.temperature
    if request.options.max_tokens is not None:
        config["max_output_tokens"] = request.options.max_tokens
    if config:
        body["config"] = config
    return body


def _parts(segments: tuple[Segment, ...], request: WireRequest) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for segment in segments:
        part = _part(segment.content, request)
        if "text" in part and parts and set(parts[-1]) == {"text"} and not _signed(segment.content):
            parts[-1]["text"] += part["text"]
        else:
            parts.append(part)
    return parts


def _signed(content: Content) -> bool:
    return isinstance(content, Thinking)


def _part(content: Content, request: WireRequest) -> dict[str, Any]:
    match content:
        case Text(text=text):
            return {"text": text}
        case Image(picture=picture):
            data = b64encode(request.blobs[picture.digest]).decode()
            return {"inline_data": {"mime_type": picture.media_type, "data": data}}
        case ToolCall(id=call, name=name, arguments=arguments, signature=signature):
            part: dict[str, Any] = {
                "function_call": {"name": name, "args": parse_arguments(arguments)}
            }
            if not call.startswith("call-"):
                part["function_call"]["id"] = call
            if signature:
                part["thought_signature"] = b64decode(signature)
            return part
        case ToolResult(call_id=call, name=name, text=text, is_error=is_error):
            response = {"error" if is_error else "output": text}
            answer: dict[str, Any] = {"name": name, "response": response}
            if not call.startswith("call-"):
                answer["id"] = call
            return {"function_response": answer}
        case Thinking(text=text, signature=signature):
            return {"text": text, "thought": True, "thought_signature": b64decode(signature)}
        case other:
            raise AssertionError(f"{type(other).__name__} does not stand in a message")


def decode(reply: object) -> Reply:
    """What a generateContent response says.

    Raises:
        ReplyError: it has no candidate.
    """
    data = _snake(as_dict(reply))
    try:
        candidate = data["candidates"][0]
    except (KeyError, IndexError, TypeError) as error:
        feedback = data.get("prompt_feedback")
        raise ReplyError(f"a Gemini response without candidates: {feedback!r}") from error
    blocks: list[Block] = []
    parts = (candidate.get("content") or {}).get("parts") or ()
    for index, part in enumerate(parts):
        signature = _signature(part.get("thought_signature"))
        if call := part.get("function_call"):
            from json import dumps

            # Gemini often sends no id; ours only has to be unique within the answer and stable.
            call_id = call.get("id") or f"call-{index}-{call['name']}"
            arguments = dumps(call.get("args") or {}, ensure_ascii=False, separators=(",", ":"))
            blocks.append(
                ToolCall(
                    id=call_id,
                    name=call["name"],
                    arguments=mend_text(arguments),
                    signature=signature,
                )
            )
        elif part.get("thought"):
            text = mend_text(part.get("text") or "")
            blocks.append(Thinking(text=text, signature=signature, provider="gemini"))
        elif part.get("text") is not None:
            blocks.append(Text(mend_text(part["text"])))
    stop = str(candidate.get("finish_reason") or "")
    return Reply(
        blocks=tuple(blocks) or (Text(""),),
        usage=_usage(data.get("usage_metadata")),
        stop=stop,
        model=data.get("model_version") or "",
        complete=bool(stop),
    )


def _signature(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.replace("-", "+").replace("_", "/") if isinstance(value, str) else ""


def _usage(usage: dict[str, Any] | None) -> Usage:
    if not usage:
        return Usage(cache_reported=False)
    return Usage(
        input=usage.get("prompt_token_count") or 0,
        cached=usage.get("cached_content_token_count") or 0,
        output=(usage.get("candidates_token_count") or 0)
        + (usage.get("thoughts_token_count") or 0),
    )


def _snake(value: Any) -> Any:
    """REST replies are in camel case, the SDK's in snake case; arguments and schemas stay as is."""
    if isinstance(value, list):
        return [_snake(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        _snake_key(key): each if key in ("args", "response") else _snake(each)
        for key, each in value.items()
    }


def _snake_key(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)
