"""Reads message content written by pi, Anthropic and OpenAI into blocks.

Laws: one reader handles all three, since no term has conflicting meanings. Unknown fields and
blocks are kept in `rest` by the block's index; an unknown block is also reported.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.adapters.formats.json_lines import Object, count_in, object_in, text_in, without
from lamina.adapters.formats.session_builder import SessionBuilder
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

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_PROVIDERS = {"google": "gemini", "gemini": "gemini", "anthropic": "anthropic", "openai": "openai"}


class ForeignMessage(Struct, frozen=True, kw_only=True):
    """A message, and its fields that our type lacks (None if there are none)."""

    message: Message
    rest: Any = None


class MessageContent(Struct, frozen=True, kw_only=True):
    blocks: tuple[Block, ...] = ()
    results: tuple[ToolResult, ...] = ()
    rest: dict[str, Any] = {}


def read_content(
    content: Any, builder: SessionBuilder, line: int | None, provider: str = ""
) -> MessageContent:
    """Read the blocks of a message's content: a string, a list of parts, or one part."""
    if content is None:
        return MessageContent()
    if isinstance(content, str):
        return MessageContent(blocks=(Text(content),))
    blocks: list[Block] = []
    results: list[ToolResult] = []
    rest: dict[str, Any] = {}
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        if isinstance(part, str):
            blocks.append(Text(part))
            continue
        block, leftover = _read_part(part, index, builder, line, provider)
        if block is None:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            builder.report(line, "unknown_block", f"block {index} is {kind!r}; kept as data")
        elif isinstance(block, ToolResult):
            results.append(block)
        else:
            blocks.append(block)
        if leftover:
            rest[str(index)] = leftover
    return MessageContent(blocks=tuple(blocks), results=tuple(results), rest=rest)


def _read_part(
    part: Any, index: int, builder: SessionBuilder, line: int | None, provider: str
) -> tuple[Block | None, Any]:
    """Read the block in a part, and the fields that the block lacks."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return Text(part["text"]), without(part, "type", "text")
    match kind:
        case "refusal" if isinstance(part.get("refusal"), str):
            return Text(part["refusal"]), {"type": "refusal"}
        case "thinking":
            signature = text_in(part, "signature", "thinkingSignature")
            block = Thinking(text=text_in(part, "thinking"), signature=signature, provider=provider)
            return block, without(part, "type", "thinking", "signature", "thinkingSignature")
        case "redacted_thinking":
            block = Thinking(redacted=text_in(part, "data"), provider=provider)
            return block, without(part, "type", "data")
        case "toolCall" | "tool_use" if text_in(part, "name"):
            call = ToolCall(
                id=text_in(part, "id") or builder.mint_call(index),
                name=part["name"],
                arguments=write_arguments(part.get("arguments", part.get("input"))),
                signature=text_in(part, "thoughtSignature"),
            )
            names = ("type", "id", "name", "arguments", "input", "thoughtSignature")
            return call, without(part, *names)
        case "tool_result":
            result = read_result(part, "tool_use_id", "", "is_error", builder, line)
            rest = without(part, "type", "tool_use_id", "content", "is_error")
            return result, rest | content_beyond_text(part.get("content"))
        case "image" | "image_url" | "input_image":
            image = _image(part, builder, line)
            # If the image cannot be read, the whole part is kept: it may be a link.
            return image, _beside_image(part) if image else part
        case _:
            return None, part


def _beside_image(part: Object) -> Object:
    """Return a part without its base64 data."""
    rest = without(part, "type", "source", "data", "mimeType", "media_type", "image_url")
    source = without(object_in(part, "source"), "data", "media_type")
    if source.get("type") == "base64":
        del source["type"]
    media_type = text_in(object_in(part, "source") or part, "media_type", "mimeType")
    if media_type and not media_type.startswith("image/"):
        rest["media_type"] = media_type
    inner = without(object_in(part, "image_url"), "url")
    return rest | ({"source": source} if source else {}) | ({"image_url": inner} if inner else {})


def _image(part: Object, builder: SessionBuilder, line: int | None) -> Image | None:
    source = object_in(part, "source")
    if source or "data" in part:
        fields = source or part
        media_type = text_in(fields, "media_type", "mimeType")
        return builder.add_picture(fields.get("data"), media_type, line)
    url = text_in(object_in(part, "image_url"), "url") or text_in(part, "image_url")
    return read_data_url(url, builder, line)


def read_data_url(url: str, builder: SessionBuilder, line: int | None) -> Image | None:
    """Read the image in a `data:` URL; other URLs are not fetched."""
    header, comma, body = url.partition(",")
    if not (comma and header.startswith("data:") and header.endswith(";base64")):
        builder.report(line, "image", "it is a link, and links are not fetched")
        return None
    return builder.add_picture(body, header[len("data:") :].partition(";")[0], line)


def read_result(
    value: Object, call: str, name: str, error: str, builder: SessionBuilder, line: int | None
) -> ToolResult:
    """Read a result with its content in `content`; the other arguments are the names of its
    fields."""
    text, is_error = result_text(value.get("content"), builder, line), value.get(error) is True
    call_id = text_in(value, call)
    return ToolResult(call_id=call_id, name=text_in(value, name), text=text, is_error=is_error)


def result_text(content: Any, builder: SessionBuilder, line: int | None) -> str:
    """Return the text of a tool result. Images are stored as bytes and replaced by text."""
    if isinstance(content, str):
        return content
    inner = read_content(content, builder, line)
    texts: list[str] = []
    for block in inner.blocks:
        if isinstance(block, Text):
            texts.append(block.text)
        elif isinstance(block, Image):
            builder.report(line, "image", "a tool's image is kept as a blob, not in the result")
            picture = block.picture
            texts.append(f"[image {picture.media_type}, sha256 {picture.digest}, not shown]")
    # Unknown parts still belong to the result.
    texts += [_dump(part) for part in inner.rest.values() if isinstance(part, dict)
              and part.get("type") not in (None, *_TEXTS, "image")]  # fmt: skip
    return "\n".join(texts)


def content_beyond_text(content: Any) -> Object:
    """Return a result's content, unless it is all text and thus already in the result."""
    parts = content if isinstance(content, list) else [content]
    plain = all(
        part is None or isinstance(part, str)
        or (isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] in _TEXTS
            and isinstance(part["text"], str))
        for part in parts
    )  # fmt: skip
    # Images are already blobs; their base64 is not stored again.
    return {} if plain else {"content": [part for part in parts if not _is_image(part)]}


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "image_url", "input_image")


def write_arguments(arguments: Any) -> str:
    """Return a call's arguments as JSON text, as the model wrote it if the file has that."""
    if isinstance(arguments, str):
        return arguments or "{}"
    return _dump(arguments if arguments is not None else {})


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- messages, usage, targets and tools ------------------------------------------------------------


def messages_of(role: str, content: MessageContent) -> list[Message]:
    """Return one or two messages: results come first, since earlier calls wait for them."""
    messages = [Message(role="tool", blocks=content.results)] if content.results else []
    if content.blocks or not content.results:
        is_answer = role == "assistant"
        messages.append(Message(role="assistant" if is_answer else "user", blocks=content.blocks))
    return messages


def read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Read Anthropic's and pi's usage figures, whose input excludes cached tokens."""
    if not usage:
        return None
    cached_tokens = count_in(usage, "cache_read_input_tokens", "cacheRead")
    written_tokens = count_in(usage, "cache_creation_input_tokens", "cacheWrite")
    return Usage(
        input=count_in(usage, "input_tokens", "input") + cached_tokens + written_tokens,
        cached=cached_tokens,
        written=written_tokens,
        written_long=min(
            written_tokens,
            count_in(object_in(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
        ),
        output=count_in(usage, "output_tokens", "output"),
        cache_reported="cache_read_input_tokens" in usage or "cacheRead" in usage,
    )


def read_openai_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Read usage figures from OpenAI's APIs and Codex, whose input includes cached tokens."""
    if not usage:
        return None
    details = object_in(usage, "prompt_tokens_details") or object_in(usage, "input_tokens_details")
    counts = details or usage
    return Usage(
        input=count_in(usage, "prompt_tokens", "input_tokens"),
        cached=count_in(counts, "cached_tokens", "cached_input_tokens"),
        written=count_in(details, "cache_write_tokens"),
        output=count_in(usage, "completion_tokens", "output_tokens"),
        cache_reported="cached_tokens" in counts or "cached_input_tokens" in counts,
    )


def provider_of(name: str) -> str:
    """Return our name for a provider, or its own if unknown."""
    return _PROVIDERS.get(name, name)


def target_of(provider: str, model: str) -> str:
    """Return `provider:model` in our names; an unknown provider counts as OpenAI-compatible."""
    if not model.strip():
        return ""
    return f"{_PROVIDERS.get(provider, 'compatible')}:{model}"


def read_tools(tools: Any) -> tuple[tuple[ToolDefinition, ...], list[Any]]:
    """Read tool definitions; also return those that are unreadable or have a duplicate name."""
    definitions: dict[str, ToolDefinition] = {}
    others: list[Any] = []
    for tool in tools if isinstance(tools, list) else [tools] if tools else []:
        body = object_in(tool, "function") or tool if isinstance(tool, dict) else {}
        name = text_in(body, "name")
        schemas = ("parameters", "input_schema", "inputSchema")
        schema = next((body[key] for key in schemas if isinstance(body.get(key), dict)), None)
        if not name or name in definitions or schema is None:
            others.append(tool)
            continue
        definitions[name] = ToolDefinition(
            name=name, description=text_in(body, "description"), parameters=schema
        )
        beside = without(body, "name", "description", "type") if body is tool else (
            without(tool, "type") | without(body, "name", "description")
        )  # fmt: skip
        if beside.keys() - {"function", *schemas} or tool.get("type", "function") != "function":
            others.append({**beside, "name": name, "type": tool.get("type")})
    return tuple(definitions.values()), others


def join_texts(content: Any) -> str:
    """Return the text in a message's content, ignoring everything else."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(
        part if isinstance(part, str) else text_in(part, "text")
        for part in parts
        if isinstance(part, str | dict)
    )
