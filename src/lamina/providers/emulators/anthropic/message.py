"""An answer in Anthropic's form: a message, or the events of a stream."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lamina.providers.emulators.answers import EmulatedAnswer
from lamina.providers.emulators.anthropic.block_checks import sign_thought
from lamina.providers.emulators.anthropic.cache import AnthropicCacheUse

JSON = dict[str, Any]
# How much of a call's arguments is sent at a time.
_JSON_PIECE = 16


class AnthropicMessage(Struct, frozen=True, kw_only=True):
    """An answer with its figures. `pieces` are the parts in which the text is sent."""

    number: int
    model: str
    content: tuple[JSON, ...]
    pieces: tuple[str, ...]
    stop: str
    output: int
    cache_use: AnthropicCacheUse
    diagnostics: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        return f"msg_{self.number:024x}"

    def body(self) -> JSON:
        return self._head(list(self.content), self.stop, self.output)

    def _head(self, content: list[JSON], stop: str | None, output: int) -> JSON:
        cache_use = self.cache_use
        return {
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
        """The stream, one event at a time."""
        yield _event("message_start", message=self._head([], None, 1))
        yield _event("ping")
        for index, block in enumerate(self.content):
            opening, deltas = self._open(block)
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
        """All figures of the message, as they stand at its end."""
        whole = self._head([], None, self.output)["usage"]
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return {name: whole[name] for name in (*names, "output_tokens")}

    def _open(self, block: JSON) -> tuple[JSON, Iterator[JSON]]:
        match block["type"]:
            case "thinking":
                return block | {"thinking": "", "signature": ""}, _thought(block)
            case "tool_use":
                return block | {"input": {}}, _arguments(block)
            case _:
                texts = ({"type": "text_delta", "text": piece} for piece in self.pieces)
                return block | {"text": ""}, texts


def compose_message(
    answer: EmulatedAnswer,
    *,
    number: int,
    body: Mapping[str, Any],
    cache_use: AnthropicCacheUse,
    diagnostics: Mapping[str, Any] | None,
    count: Callable[[str], int],
) -> AnthropicMessage:
    """The message for `answer`, as far as the request's limit allows."""
    content: list[JSON] = []
    stop = "tool_use" if answer.calls else "end_turn"
    tokens_left = int(body["max_tokens"]) - count(answer.thinking)
    if answer.thinking:
        thought = {
            "type": "thinking",
            "thinking": answer.thinking,
            "signature": sign_thought(answer.thinking, str(body["model"])),
        }
        content.append(thought)
    pieces: list[str] = []
    for piece in answer.pieces():
        tokens_left -= max(1, count(piece))
        if tokens_left < 0:
            stop = "max_tokens"
            break
        pieces.append(piece)
    text = "".join(pieces)
    if text:
        content.append({"type": "text", "text": text})
    for place, call in enumerate(answer.calls if stop == "tool_use" else ()):
        call_id = f"toolu_{number:020x}{place:04x}"
        content.append(
            {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
        )
    output = sum(count(_block_text(block)) for block in content)
    return AnthropicMessage(
        number=number,
        model=body["model"],
        content=tuple(content),
        pieces=tuple(pieces),
        stop=stop,
        output=max(1, output),
        cache_use=cache_use,
        diagnostics=diagnostics,
    )


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
    # The first one is empty, as the API's are.
    yield {"type": "input_json_delta", "partial_json": ""}
    for at in range(0, len(arguments_json), _JSON_PIECE):
        yield {"type": "input_json_delta", "partial_json": arguments_json[at : at + _JSON_PIECE]}


def _event(kind: str, **fields: Any) -> bytes:
    data = msgspec.json.encode({"type": kind, **fields}).decode()
    return f"event: {kind}\ndata: {data}\n\n".encode()
