"""Renders an answer in Anthropic's format: a message, or a stream of events."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lamina.core.values.settings import Target
from lamina.emulators.answers import EmulatedAnswer
from lamina.emulators.anthropic.bound_thinking import ThinkingCheck, ThinkingControls, sign_answer
from lamina.emulators.anthropic.cache import AnthropicCacheUse

JSON = dict[str, Any]
# How much of a call's arguments is sent at a time.
_JSON_PIECE = 16


class AnthropicMessage(Struct, frozen=True, kw_only=True):
    """An answer with its usage figures. `transformations` are reported if a request asks for
    them."""

    number: int
    model: str
    content: tuple[JSON, ...]
    stop: str
    output: int
    cache_use: AnthropicCacheUse
    diagnostics: Mapping[str, Any] | None = None
    transformations: tuple[JSON, ...] | None = None

    @property
    def id(self) -> str:
        return f"msg_{self.number:024x}"

    def body(self) -> JSON:
        return self._head(list(self.content), self.stop, self.output)

    def _head(self, content: list[JSON], stop: str | None, output: int) -> JSON:
        cache_use = self.cache_use
        transformations = self.transformations
        return (
            {} if transformations is None else {"input_transformations": list(transformations)}
        ) | {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "diagnostics": self.diagnostics,
            "usage": {
                "input_tokens": cache_use.fresh,
                "cache_creation_input_tokens": cache_use.written,
                "cache_read_input_tokens": cache_use.read,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": cache_use.written - cache_use.written_long,
                    "ephemeral_1h_input_tokens": cache_use.written_long,
                },
                "output_tokens": output,
                "service_tier": "standard",
            },
        }

    def events(self) -> Iterator[bytes]:
        """Yield the stream, one event at a time."""
        yield _event("message_start", message=self._head([], None, 1))
        yield _event("ping")
        for index, block in enumerate(self.content):
            opening, deltas = _open(block)
            yield _event("content_block_start", index=index, content_block=opening)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        yield _event(
            "message_delta",
            delta={"stop_reason": self.stop, "stop_sequence": None},
            usage=self._delta_usage(),
        )
        yield _event("message_stop")

    def _delta_usage(self) -> JSON:
        """Return all usage figures, as at the end of the message."""
        whole = self._head([], None, self.output)["usage"]
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return {name: whole[name] for name in (*names, "output_tokens")}


def compose_message(
    answer: EmulatedAnswer,
    *,
    number: int,
    body: Mapping[str, Any],
    target: Target,
    controls: ThinkingControls,
    check: ThinkingCheck,
    cache_use: AnthropicCacheUse,
    diagnostics: Mapping[str, Any] | None,
    count: Callable[[str], int],
) -> AnthropicMessage:
    """Return the message for `answer`, truncated at the request's limit."""
    parts = answer.parts()
    content: list[JSON] = []
    stop = "tool_use" if any(part.calls for part in parts) else "end_turn"
    tokens_left = int(body["max_tokens"])
    calls = itertools.count()
    for part in parts:
        tokens_left -= count(part.thinking)
        content += _thinking(part)
        pieces: list[str] = []
        for piece in part.pieces():
            tokens_left -= max(1, count(piece))
            if tokens_left < 0:
                stop = "max_tokens"
                break
            pieces.append(piece)
        if pieces:
            content.append({"type": "text", "text": "".join(pieces)})
        if stop == "max_tokens":
            content = [block for block in content if block["type"] != "tool_use"]
            break
        for call in part.calls:
            call_id = f"toolu_{number:020x}{next(calls):04x}"
            content.append(
                {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
            )
    output = sum(count(_block_text(block)) for block in content)
    return AnthropicMessage(
        number=number,
        model=body["model"],
        content=tuple(sign_answer(content, body, target, controls.account)),
        stop=stop,
        output=max(1, output),
        cache_use=cache_use,
        diagnostics=diagnostics,
        transformations=tuple(check.transformations()) if controls.has_beta else None,
    )


def _thinking(part: EmulatedAnswer) -> list[JSON]:
    """Return the thinking blocks of an answer's part, still unsigned."""
    if not part.thinking:
        return []
    match part.display:
        case "summarized":
            return [{"type": "thinking", "thinking": part.thinking, "signature": ""}]
        case "omitted":
            return [{"type": "thinking", "thinking": "", "signature": ""}]
        case "redacted":
            return [{"type": "redacted_thinking", "data": ""}]


def _open(block: JSON) -> tuple[JSON, Iterator[JSON]]:
    """Return a streamed block's beginning, and the events that follow."""
    match block["type"]:
        case "thinking":
            return block | {"thinking": "", "signature": ""}, _thought(block)
        case "redacted_thinking":
            return block, iter(())
        case "tool_use":
            return block | {"input": {}}, _arguments(block)
        case _:
            pieces = EmulatedAnswer(text=block["text"]).pieces()
            return block | {"text": ""}, ({"type": "text_delta", "text": p} for p in pieces)


def _block_text(block: JSON) -> str:
    return str(
        block.get("text") or block.get("thinking") or f"{block.get('name')}{block.get('input')}"
    )


def _thought(block: JSON) -> Iterator[JSON]:
    for piece in EmulatedAnswer(text=block["thinking"]).pieces():
        yield {"type": "thinking_delta", "thinking": piece}
    yield {"type": "signature_delta", "signature": block["signature"]}


def _arguments(block: JSON) -> Iterator[JSON]:
    arguments_json = msgspec.json.encode(block["input"]).decode()
    # The first one is empty, as in the real API.
    yield {"type": "input_json_delta", "partial_json": ""}
    for at in range(0, len(arguments_json), _JSON_PIECE):
        yield {"type": "input_json_delta", "partial_json": arguments_json[at : at + _JSON_PIECE]}


def _event(kind: str, **fields: Any) -> bytes:
    data = msgspec.json.encode({"type": kind, **fields}).decode()
    return f"event: {kind}\ndata: {data}\n\n".encode()
