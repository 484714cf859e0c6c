"""Reads the blocks of a request to Anthropic in prefix order, with their digests and tokens."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from lamina.adapters.providers.tokens import counter_for
from lamina.core.values.settings import Target

JSON = Mapping[str, Any]
PrefixLayer = Literal["tools", "system", "messages"]
# A message's cost beyond its content.
MESSAGE_TOKENS = 3
# A picture of unknown size.
_PICTURE_TOKENS = 1_600
_PIXELS_PER_TOKEN = 750
# A document page, as text and as a picture.
_PAGE_TOKENS = 2_000


class PrefixBlock(Struct, frozen=True, kw_only=True):
    """A request's block. `running` and `until` are the digest and the tokens of everything up to
    its end; `position` counts runs of calls and of results once."""

    layer: PrefixLayer
    running: str
    until: int
    position: int
    ttl: str | None = None


def read_blocks(body: JSON, target: Target) -> Iterator[PrefixBlock]:
    """Yield a request's blocks in prefix order: tools, system, messages."""
    count = counter_for(target).count
    running = str(body.get("model", ""))
    until = position = 0
    layer_before, kind_before, role_before = "", "", ""
    automatic = _automatic(body)
    late = late_tools(body)
    for index, (layer, role, block) in enumerate(walk_body(body)):
        if layer == "messages" != layer_before:
            running = chain_digest(running, encode_parameters(body))
        kind = str(block.get("type", ""))
        in_run = kind in ("tool_use", "tool_result") and (kind, role) == (kind_before, role_before)
        position += not in_run
        running = chain_digest(running, f"{layer}\x1f{role}\x1f{encode_bare(block)}")
        definitions = [encode_bare(late[name]) for name in referenced_tools(block)]
        # Loaded tools are placed where a result names them.
        running = chain_digest(running, *definitions) if definitions else running
        until += _tokens(block, count) + sum(map(count, definitions))
        until += MESSAGE_TOKENS if role and role != role_before else 0
        ttl = _ttl(block)
        if automatic is not None and automatic[0] == index:
            ttl = ttl or automatic[1]
        yield PrefixBlock(layer=layer, running=running, until=until, position=position, ttl=ttl)
        layer_before, kind_before, role_before = layer, kind, role


def late_tools(body: JSON) -> dict[str, JSON]:
    """Return the tools whose definitions are not part of the prefix until a result names them."""
    tools = body.get("tools") or ()
    return {str(tool.get("name", "")): tool for tool in tools if tool.get("defer_loading")}


def referenced_tools(block: JSON) -> list[str]:
    """Return the tools that a result names."""
    if block.get("type") != "tool_result":
        return []
    inside = as_blocks(block.get("content") or ())
    return [str(part.get("tool_name")) for part in inside if part.get("type") == "tool_reference"]


def walk_body(body: JSON) -> Iterator[tuple[PrefixLayer, str, JSON]]:
    for tool in body.get("tools") or ():
        if not tool.get("defer_loading"):
            yield "tools", "", tool
    for block in as_blocks(body.get("system") or ()):
        yield "system", "", block
    for message in body.get("messages") or ():
        for block in as_blocks(message.get("content") or ()):
            yield "messages", str(message.get("role", "")), block


def as_blocks(content: Any) -> Iterator[JSON]:
    """Yield content as blocks; a string is short for a text block."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def _automatic(body: JSON) -> tuple[int, str] | None:
    """Return the place and lifetime of the marker that the body's top level requests: on the last
    block that can carry one."""
    control = body.get("cache_control")
    if not control:
        return None
    able = [
        index
        for index, (_, _, block) in enumerate(walk_body(body))
        if block.get("type") not in ("thinking", "redacted_thinking")
    ]
    return (able[-1], str(control.get("ttl", "5m"))) if able else None


def _ttl(block: JSON) -> str | None:
    control = block.get("cache_control")
    return str(control.get("ttl", "5m")) if control else None


def encode_bare(block: JSON) -> str:
    switches = ("cache_control", "defer_loading")
    fields = {key: value for key, value in block.items() if key not in switches}
    return msgspec.json.encode(fields).decode()


def chain_digest(*texts: str) -> str:
    return sha256("\x1e".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def encode_parameters(body: JSON) -> str:
    """Encode the parameters, other than messages, on which the cache of messages depends."""
    has_pictures = any(block.get("type") == "image" for _, _, block in walk_body(body))
    thinking = body.get("thinking")
    if isinstance(thinking, Mapping):
        # The handling of thinking that no longer fits is not part of the prompt.
        thinking = {key: value for key, value in thinking.items() if key != "block_binding"}
    parameters = [body.get("tool_choice"), thinking, has_pictures]
    return msgspec.json.encode(parameters).decode()


def _tokens(block: JSON, count: Any) -> int:
    match block.get("type"):
        case "text":
            return int(count(str(block.get("text", ""))))
        case "thinking":
            return int(count(str(block.get("thinking", ""))))
        case "image":
            return _picture_tokens(block.get("source") or {})
        case "document":
            return _document_tokens(block.get("source") or {}, count)
        case "tool_use":
            input_json = msgspec.json.encode(block.get("input")).decode()
            return int(count(str(block.get("name", ""))) + count(input_json))
        case "tool_reference":
            return 0  # its definition is counted instead
        case "tool_result":
            inside = as_blocks(block.get("content") or ())
            return sum(_tokens(mapping, count) for mapping in inside)
        case _:
            return int(count(encode_bare(block)))


def _document_tokens(source: JSON, count: Any) -> int:
    match source.get("type"):
        case "text":
            return int(count(str(source.get("data", ""))))
        case "content":
            return sum(_tokens(block, count) for block in as_blocks(source.get("content") or ()))
        case "base64":
            pages = b64decode(str(source.get("data", ""))).count(b"/Type /Page")
            return _PAGE_TOKENS * max(1, pages)
        case _:
            return _PAGE_TOKENS  # the linked content is not fetched


def _picture_tokens(source: JSON) -> int:
    try:
        head = b64decode(str(source.get("data", ""))[:64])
    except NotBase64:
        return _PICTURE_TOKENS
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        return _PICTURE_TOKENS
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return max(1, min(_PICTURE_TOKENS, width * height // _PIXELS_PER_TOKEN))
