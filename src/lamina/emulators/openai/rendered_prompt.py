"""The body of a chat completion as the tokens that a model reads, in order.

Law: two bodies have the same tokens as far as their rendered prompts agree. Markers, which tools
may be called and how the answer is sampled are not rendered.
"""

from array import array
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from json import dumps
from math import ceil
from typing import Any

from msgspec import Struct

from lamina.adapters.providers.tokens import token_ids

# Beyond any vocabulary: what frames messages, and what stands for bytes that are not text.
_START, _SEP, _END, _TOOL, _CALL = range(1 << 24, (1 << 24) + 5)
_OPAQUE = 1 << 25
_INSTRUCTIONS = ("system", "developer")
_KNOWN_TEXTS = 2_000

# What a picture costs: a base price, and more for every tile.
_PICTURE, _TILE, _TILE_SIDE = 85, 170, 512
_UNKNOWN_PICTURE = _PICTURE + 4 * _TILE


class OpenAIPromptPart(Struct, frozen=True):
    """The tools or a message: where it ends, and a digest of its own tokens."""

    name: str
    end: int
    digest: bytes


class RenderedPrompt(Struct, frozen=True, kw_only=True):
    """`marks` are the ends of content with a breakpoint, `endings` those of messages that may get
    an implicit one: the user's, the last of a run of tool results, the opening instructions."""

    ids: "array[int]"
    parts: tuple[OpenAIPromptPart, ...]
    marks: tuple[int, ...]
    endings: tuple[int, ...]

    def digests(self, seed: bytes, ends: list[int]) -> list[bytes]:
        """The digests of everything up to each of `ends`, which are in order."""
        running = blake2b(seed, digest_size=16)
        digests, start = [], 0
        for end in ends:
            running.update(self.ids[start:end].tobytes())
            digests.append(running.copy().digest())
            start = end
        return digests


def render_prompt(body: Mapping[str, Any], encoding: str) -> RenderedPrompt:
    """The prompt of a body, as a model of OpenAI's or of a compatible server reads it."""
    ids: array[int] = array("Q")
    parts: list[OpenAIPromptPart] = []
    marks: list[int] = []
    endings: list[int] = []

    def close(name: str, start: int) -> None:
        digest = blake2b(ids[start:].tobytes(), digest_size=16).digest()
        parts.append(OpenAIPromptPart(name, len(ids), digest))

    if tools := body.get("tools"):
        for tool in tools:
            ids.append(_TOOL)
            ids.extend(_text(encoding, dumps(tool.get("function", tool), ensure_ascii=False)))
        close("tools", 0)
    messages = body["messages"]
    opening = True
    for index, message in enumerate(messages):
        start, role = len(ids), str(message["role"])
        opening = opening and role in _INSTRUCTIONS
        ids.extend((_START, *_text(encoding, role), _SEP))
        if call := message.get("tool_call_id"):
            ids.append(_opaque(call))
        for part, is_marked in _parts(message.get("content")):
            ids.extend(_content(encoding, part))
            if is_marked:
                marks.append(len(ids))
        for call in message.get("tool_calls") or ():
            ids.append(_CALL)
            ids.append(_opaque(call["id"]))
            ids.extend(_text(encoding, call["function"]["name"]))
            ids.append(_SEP)
            ids.extend(_text(encoding, call["function"]["arguments"]))
        following = messages[index + 1]["role"] if index + 1 < len(messages) else ""
        if _may_end(role, following, is_opening=opening):
            endings.append(len(ids))
        ids.append(_END)
        close(f"message {index}, {role}", start)
    # The model continues from here.
    ids.extend((_START, *_text(encoding, "assistant"), _SEP))
    return RenderedPrompt(ids=ids, parts=tuple(parts), marks=tuple(marks), endings=tuple(endings))


def _may_end(role: str, following: str, *, is_opening: bool) -> bool:
    match role:
        case "user":
            return True
        case "tool":
            return following != "tool"
        case _:
            return is_opening and following not in _INSTRUCTIONS


def _parts(content: Any) -> Iterator[tuple[Any, bool]]:
    if isinstance(content, list):
        for part in content:
            yield part, "prompt_cache_breakpoint" in part
    elif content is not None:
        yield {"type": "text", "text": content}, False


def _content(encoding: str, part: Mapping[str, Any]) -> list[int]:
    match part["type"]:
        case "text":
            return _text(encoding, part["text"])
        case "image_url":
            url = part["image_url"]["url"]
            return [_opaque(url)] * picture_tokens(url)
        case _:
            return [_opaque(dumps(part))]


@lru_cache(maxsize=_KNOWN_TEXTS)
def _cached_text(encoding: str, text: str) -> tuple[int, ...]:
    return tuple(token_ids(encoding, text))


def _text(encoding: str, text: str) -> list[int]:
    # Every request of a conversation holds the same messages.
    return list(_cached_text(encoding, text))


def _opaque(data: str) -> int:
    return _OPAQUE + int.from_bytes(blake2b(data.encode(), digest_size=6).digest(), "big")


def picture_tokens(url: str) -> int:
    """What a picture costs, by its size if its header tells that."""
    head, _, data = url.partition(";base64,")
    try:
        start = b64decode(data[:48] if head == "data:image/png" else "")
    except (NotBase64, ValueError):
        start = b""
    if len(start) < 24:
        return _UNKNOWN_PICTURE
    sides = (int.from_bytes(start[at : at + 4], "big") for at in (16, 20))
    tiles = 1
    for side in sides:
        tiles *= max(1, ceil(min(side, 2_048) / _TILE_SIDE))
    return _PICTURE + _TILE * tiles
