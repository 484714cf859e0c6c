"""OpenAI's chat completions wire, also spoken by vLLM, llama.cpp, Ollama and LiteLLM."""

from base64 import b64encode
from typing import Any

from lamina.codec import mend_text
from lamina.errors import ReplyError
from lamina.providers.wire import WireMessage, as_dict, joined_text, split_prompt
from lamina.values.message import Block, Image, Text, Thinking, ToolCall, ToolResult
from lamina.values.usage import Usage
from lamina.values.wire import Reply, WireRequest


def encode(request: WireRequest) -> dict[str, Any]:
    """Keyword arguments for `client.chat.completions.create`."""
    tools, system, messages = split_prompt(request.prompt)
    wire: list[dict[str, Any]] = []
    if system:
        wire.append({"role": "system", "content": joined_text(system)})
    for message in messages:
        wire.extend(_encode_message(message, request))
    body: dict[str, Any] = {"model": request.target.model, "messages": wire}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters or {"type": "object", "properties": {}},
                },
            }
            for tool in tools
        ]
    options = request.options
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.max_tokens is not None:
        name = "max_completion_tokens" if request.target.provider == "openai" else "max_tokens"
        body[name] = options.max_tokens
    if options.reasoning is not None:
        body["reasoning_effort"] = options.reasoning
    if request.cache_key and request.target.provider == "openai":
        body["prompt_cache_key"] = request.cache_key
    return body


def _encode_message(message: WireMessage, request: WireRequest) -> list[dict[str, Any]]:
    contents = [segment.content for segment in message.segments]
    if message.role == "tool":
        return [
            {"role": "tool", "tool_call_id": content.call_id, "content": content.text}
            for content in contents
            if isinstance(content, ToolResult)
        ]
    if message.role == "assistant":
        wire: dict[str, Any] = {"role": "assistant", "content": joined_text(message.segments)}
        calls = [content for content in contents if isinstance(content, ToolCall)]
        if calls:
            wire["content"] = wire["content"] or None
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        return [wire]
    if not any(isinstance(content, Image) for content in contents):
        # One string: servers join several text parts in ways of their own.
        return [{"role": "user", "content": joined_text(message.segments)}]
    parts: list[dict[str, Any]] = []
    for content in contents:
        match content:
            case Text(text=text) if parts and parts[-1]["type"] == "text":
                parts[-1]["text"] += text
            case Text(text=text):
                parts.append({"type": "text", "text": text})
            case Image(picture=picture):
                data = b64encode(request.blobs[picture.digest]).decode()
                url = f"data:{picture.media_type};base64,{data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return [{"role": "user", "content": parts}]


def decode(reply: object) -> Reply:
    """What a chat completion says.

    Raises:
        ReplyError: it is not a chat completion.
    """
    data = as_dict(reply)
    try:
        choice = data["choices"][0]
        message = choice["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise ReplyError(f"not a chat completion, it has no choices: {sorted(data)!r}") from error
    blocks: list[Block] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        blocks.append(Thinking(text=mend_text(reasoning), provider="openai"))
    text = message.get("content") or message.get("refusal") or ""
    calls = message.get("tool_calls") or ()
    if text or not calls:
        blocks.append(Text(mend_text(text)))
    for call in calls:
        function = call["function"]
        blocks.append(
            ToolCall(
                id=call["id"],
                name=function["name"],
                arguments=mend_text(function.get("arguments") or "{}"),
            )
        )
    stop = choice.get("finish_reason") or ""
    return Reply(
        blocks=tuple(blocks),
        usage=_usage(data.get("usage")),
        stop=stop,
        model=data.get("model") or "",
        complete=bool(stop),
    )


def _usage(usage: dict[str, Any] | None) -> Usage:
    if not usage:
        return Usage(cache_reported=False)
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        input=usage.get("prompt_tokens") or 0,
        cached=details.get("cached_tokens") or 0,
        written=details.get("cache_write_tokens") or 0,
        output=usage.get("completion_tokens") or 0,
        cache_reported=details.get("cached_tokens") is not None,
    )
