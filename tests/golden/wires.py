"""A target on every wire, and replies as their vendors write them.

The targets are our own, so that a new price or window in the book of models moves no golden byte;
the encoders are the real ones. Tokens are words.
"""

from collections.abc import Sequence
from json import dumps
from typing import Any

from msgspec.structs import replace
from tests.fakes.book import FakeCounter
from tests.golden.draw import Draw

from lamina.adapters.providers.model_book import load_book
from lamina.core.ports import TokenCounter, Wire
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.prices import FREE, flat_prices
from lamina.core.values.settings import CacheRules, Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.turn import Turn
from lamina.errors import UnknownTarget

CHAT = Target(
    provider="openai",
    model="gpt-4o",
    wire="openai",
    window=12_000,
    max_output=1_000,
    max_tools=6,
    cache=CacheRules(minimum=64, step=16, lifetime_s=300.0),
    prices=flat_prices(2.5, 10.0, read=0.5),
)
BREAKPOINTS = replace(
    CHAT,
    model="gpt-5.6",
    restricts_tools=True,
    cache=CacheRules(minimum=32, lifetime_s=1_800.0, explicit=True),
    prices=flat_prices(2.5, 10.0, read=0.1, write=1.25),
)
ANTHROPIC = Target(
    provider="anthropic",
    model="claude-sonnet-5",
    wire="anthropic",
    window=12_000,
    max_output=1_000,
    cache=CacheRules(minimum=32, lifetime_s=300.0, explicit=True, long_lifetime_s=3_600.0),
    token_factor=1.25,
    prices=flat_prices(3.0, 15.0, read=0.1, write=1.25, write_long=2.0),
)
GEMINI = Target(
    provider="gemini",
    model="gemini-3-flash",
    wire="gemini",
    window=12_000,
    max_output=1_000,
    restricts_tools=True,
    cache=CacheRules(minimum=16, lifetime_s=600.0),
    prices=flat_prices(0.5, 3.0, read=0.1, storage=0.3),
)
COMPATIBLE = replace(
    CHAT,
    provider="compatible",
    model="qwen3",
    cache=CacheRules(lifetime_s=None),
    prices=flat_prices(2.5, 10.0, read=0.1),
    max_tools=0,
    base_url="http://127.0.0.1:8000/v1",
)
EMBEDDED = Target(
    provider="embedded",
    model="smollm2",
    wire="llamacpp",
    window=8_000,
    max_output=500,
    cache=CacheRules(lifetime_s=None, keeps_answers=True),
    exact_tokens=True,
    prices=FREE,
)
# Binds thinking to what stood before it. Nobody draws it: what was drawn stays as it is.
BOUND = replace(ANTHROPIC, model="claude-opus-5-5", binds_thinking=True)
TARGETS = (CHAT, BREAKPOINTS, ANTHROPIC, GEMINI, COMPATIBLE, EMBEDDED)


class WireBook:
    """Knows these targets; counts words."""

    def __init__(self, targets: Sequence[Target] = TARGETS) -> None:
        self._targets = {target.name: target for target in targets}
        self._words = FakeCounter()

    def find(self, name: str) -> Target:
        if name not in self._targets:
            raise UnknownTarget(name, tuple(self._targets))
        return self._targets[name]

    def counter(self, target: Target) -> TokenCounter:
        return self._words

    def wire(self, target: Target) -> Wire:
        return load_book().wire(target)


Calls = list[tuple[str, str, dict[str, Any]]]


def draw_reply(draw: Draw, turn: Turn, text: str, calls: Calls, number: int) -> object:
    """What a vendor might reply to a request: an id, a name and arguments for each call."""
    target = WireBook().find(turn.context.target)
    tokens = turn.prompt.tokens
    if draw.chance(0.1):
        return _own_reply(draw, text, calls, tokens)
    counted = round(tokens * draw.pick((1.0, 1.0, 1.1, 1.4)))
    cached = draw.pick((None, 0, counted // 2, counted * 9 // 10))
    thinks = draw.chance(0.3)
    match target.wire:
        case "anthropic":
            return _anthropic(draw, text, calls, counted, cached or 0, number, thinks)
        case "gemini":
            return _gemini(draw, text, calls, counted, cached, number, thinks)
        case "llamacpp" if draw.chance(0.6):
            return _tool_form(draw, text, calls, counted, number)
        case _:
            return _openai(draw, text, calls, counted, cached, number, thinks)


def _tool_form(draw: Draw, text: str, calls: Calls, counted: int, number: int) -> dict[str, Any]:
    """What the embedded model says while there are tools: a JSON object, whole or cut off."""
    form: dict[str, Any] = {"answer": f"{text} \u2014 \U0001f6a2\n"}
    if calls:
        form = {"tool": calls[0][1], "arguments": calls[0][2]}
    said = dumps(form)
    if not calls and draw.chance(0.3):
        said = said[: -draw.number(1, 9)]
    reply = _openai(draw, said, [], counted, counted // 2, number, thinks=False)
    return reply | {"in_tool_form": True}


def _own_reply(draw: Draw, text: str, calls: Calls, tokens: int) -> Reply:
    """One in our own values, as a runner commits it."""
    blocks = [ToolCall(id=call, name=name) for call, name, _ in calls]
    said = (Text(text),) if text or not blocks else ()
    thought = (Thinking(text="hm"),) if draw.chance(0.2) else ()
    return Reply(
        blocks=(*thought, *said, *blocks),
        usage=Usage(input=tokens, cached=tokens // 3, output=4),
        stop="tool_calls" if calls else draw.pick(("stop", "length")),
        complete=bool(calls) or draw.chance(0.7),
    )


def _openai(
    draw: Draw, text: str, calls: Calls, counted: int, cached: int | None, number: int, thinks: bool
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thinks:
        message["reasoning_content"] = "Let me see."
    if calls:
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": given}}
            for call, name, given in calls
        ]
    stop = "tool_calls" if calls else draw.pick(("stop", "stop", "length", None))
    reply: dict[str, Any] = {"choices": [{"message": message, "finish_reason": stop}]}
    if draw.chance(0.8):
        details = {} if cached is None else {"cached_tokens": cached, "cache_write_tokens": 3}
        reply["usage"] = {
            "prompt_tokens": counted,
            "completion_tokens": 5,
            "prompt_tokens_details": details,
        }
        reply["id"] = f"chatcmpl-{number}"
    return reply


def _anthropic(
    draw: Draw, text: str, calls: Calls, counted: int, cached: int, number: int, thinks: bool
) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if thinks:
        content.append({"type": "thinking", "thinking": "Let me see.", "signature": f"sig{number}"})
    if thinks and draw.chance(0.3):
        content.append({"type": "redacted_thinking", "data": "c2VjcmV0"})
    if text:
        content.append({"type": "text", "text": text})
    content += [{"type": "tool_use", "id": c, "name": n, "input": given} for c, n, given in calls]
    reply: dict[str, Any] = {
        "id": f"msg_{number}",
        "model": "claude-sonnet-5",
        "content": content,
        "stop_reason": "tool_use" if calls else draw.pick(("end_turn", "end_turn", "max_tokens")),
        "usage": {
            "input_tokens": counted - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 7,
            "output_tokens": 5,
            "cache_creation": {"ephemeral_1h_input_tokens": 2},
        },
    }
    if draw.chance(0.2):
        missed = {"type": "messages_changed", "cache_missed_input_tokens": 9}
        reply["diagnostics"] = {"cache_miss_reason": missed}
    return reply


def _gemini(
    draw: Draw, text: str, calls: Calls, counted: int, cached: int | None, number: int, thinks: bool
) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if thinks:
        parts.append({"text": "Let me see.", "thought": True, "thoughtSignature": "c2lnbmVk"})
    if text:
        parts.append({"text": text})
    for call, name, given in calls:
        called: dict[str, Any] = {"name": name, "args": given}
        if draw.chance(0.5):
            called["id"] = call
        parts.append({"functionCall": called, "thoughtSignature": "Y2FsbGVk"})
    usage = {"promptTokenCount": counted, "candidatesTokenCount": 5}
    if cached is not None:
        usage["cachedContentTokenCount"] = cached
    return {
        "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": usage,
        "responseId": f"resp-{number}",
        "modelVersion": "gemini-3-flash",
    }
