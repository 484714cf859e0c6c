"""OpenAI's chat completions wire, also spoken by vLLM, llama.cpp, Ollama and LiteLLM."""

from base64 import b64encode
from typing import Any

from msgspec import Struct

from lamina.codec import mend_text
from lamina.providers.wire import (
    WireMessage,
    describe_tool,
    joined_text,
    mint_call_id,
    read_reply,
    split_prompt,
    unreadable,
    write_arguments,
)
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
            {"type": "function", "function": describe_tool(tool, "parameters")} for tool in tools
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
    if len(contents) == 1 and isinstance(contents[0], Text):
        return [{"role": message.role, "content": contents[0].text}]
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


# -- replies: what is read of a chat completion --------------------------------------------------


class _Function(Struct):
    name: str
    # A string by the book; some servers send the object itself.
    arguments: str | dict[str, Any] | None = None


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Message(Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    # DeepSeek, vLLM and llama.cpp say the former, OpenRouter and Ollama the latter.
    reasoning_content: str | None = None
    reasoning: Any = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Completion(Struct):
    choices: list[_Choice]
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


def decode(reply: object) -> Reply:
    """What a chat completion says.

    Raises:
        ReplyError: it is not a chat completion.
    """
    what = "a chat completion"
    completion = read_reply(reply, _Completion, what)
    if not completion.choices:
        raise unreadable(reply, what, "it has no choices")
    choice = completion.choices[0]
    stop = mend_text(choice.finish_reason or "")
    return Reply(
        blocks=tuple(_blocks(choice.message, completion.id or "")),
        usage=_usage(completion.usage),
        stop=stop,
        model=mend_text(completion.model or ""),
        complete=bool(stop),
    )


def _blocks(message: _Message, completion: str) -> list[Block]:
    blocks: list[Block] = []
    reasoning = message.reasoning_content or message.reasoning
    if isinstance(reasoning, str) and reasoning:
        blocks.append(Thinking(text=mend_text(reasoning), provider="openai"))
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content if part.type == "text")
    text = content or message.refusal or ""
    calls = message.tool_calls or []
    if text or not calls:
        blocks.append(Text(mend_text(text)))
    for index, call in enumerate(calls):
        name, arguments = call.function.name, call.function.arguments
        if not isinstance(arguments, str):
            arguments = write_arguments(arguments)
        blocks.append(
            ToolCall(
                id=mend_text(call.id or mint_call_id(index, completion, name, arguments)),
                name=mend_text(name),
                arguments=mend_text(arguments or "{}"),
            )
        )
    return blocks


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage(cache_reported=False)
    details = usage.prompt_tokens_details or _Details()
    return Usage(
        input=usage.prompt_tokens or 0,
        cached=details.cached_tokens or 0,
        written=details.cache_write_tokens or 0,
        output=usage.completion_tokens or 0,
        cache_reported=details.cached_tokens is not None,
    )
