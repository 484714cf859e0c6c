"""Replies as vendors write them."""

from collections.abc import Sequence
from typing import Any

Call = tuple[str, str] | tuple[str, str, str]


def openai_reply(
    text: str | None = "ok",
    *,
    input: int | None = None,
    cached: int | None = None,
    calls: Sequence[Call] = (),
    stop: str | None = "stop",
) -> dict[str, Any]:
    """A chat completion. `calls` are ids and names, perhaps with arguments; without `input` there
    is no usage at all, and without `cached` no word of the cache."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": call,
                "type": "function",
                "function": {"name": name, "arguments": "".join(arguments) or "{}"},
            }
            for call, name, *arguments in calls
        ]
        stop = "tool_calls"
    reply: dict[str, Any] = {"choices": [{"message": message, "finish_reason": stop}]}
    if input is not None:
        reply["usage"] = {"prompt_tokens": input, "completion_tokens": 5}
        if cached is not None:
            reply["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
    return reply


def anthropic_reply(text: str, *, thinking: str = "") -> dict[str, Any]:
    """A message with signed thinking in front, if there is any."""
    thought = {"type": "thinking", "thinking": thinking, "signature": "sig"}
    return {
        "content": [*([thought] if thinking else []), {"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "model": "thinker",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
