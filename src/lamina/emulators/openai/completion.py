"""Renders an answer as a chat completion, in one piece or in chunks."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from lamina.core.values.usage import Usage
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall
from lamina.emulators.openai.cache import OpenAICacheUse

JSON = dict[str, Any]
# How many characters of a call's arguments are sent at a time.
_SLICE = 12
DONE_EVENT = b"data: [DONE]\n\n"


class CompletionStyle(Struct, frozen=True, kw_only=True):
    """Differences between servers with the same wire. OpenAI does not show a model's thinking."""

    thinks_aloud: bool = False
    tells_usage: bool = True
    tells_writes: bool = False
    gives_ids: bool = True
    object_arguments: bool = False


class OpenAICompletion(Struct, frozen=True, kw_only=True):
    """The answer to one request. `pieces` is the part of the text within the request's limit."""

    number: int
    created: int
    model: str
    answer: EmulatedAnswer
    pieces: tuple[str, ...]
    finish: str
    cache_use: OpenAICacheUse
    output: int
    thoughts: int
    style: CompletionStyle = CompletionStyle()

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.number:08d}"

    @property
    def usage(self) -> Usage:
        return Usage(
            input=self.cache_use.tokens,
            cached=self.cache_use.cached,
            written=self.cache_use.written,
            output=self.output,
        )

    def body(self, *, has_ended: bool = True) -> JSON:
        """Return the answer in one piece."""
        message: JSON = {"role": "assistant", "content": "".join(self.pieces) or None}
        message |= {"refusal": None, "annotations": []}
        if self.style.thinks_aloud and self.answer.thinking:
            message["reasoning_content"] = self.answer.thinking
        if self.answer.calls:
            message["tool_calls"] = [
                self._call(index, call) for index, call in enumerate(self.answer.calls)
            ]
        elif message["content"] is None:
            message["content"] = ""
        choice = {"index": 0, "message": message, "logprobs": None}
        choice["finish_reason"] = self.finish if has_ended else None
        body = self._head("chat.completion") | {"choices": [choice]}
        return body | {"usage": self._usage()} if self.style.tells_usage else body

    def chunks(self, *, with_usage: bool) -> Iterator[bytes]:
        """Yield the answer as it is streamed, up to the terminator."""
        silent = {"usage": None} if with_usage else {}

        def chunk(delta: JSON, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return encode_event(
                self._head("chat.completion.chunk") | {"choices": [choice]} | silent
            )

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        if self.style.thinks_aloud:
            for piece in EmulatedAnswer(text=self.answer.thinking).pieces():
                yield chunk({"reasoning_content": piece})
        for piece in self.pieces:
            yield chunk({"content": piece})
        for index, call in enumerate(self.answer.calls):
            for part in self._call_parts(index, call):
                yield chunk({"tool_calls": [part]})
        yield chunk({}, self.finish)
        if with_usage and self.style.tells_usage:
            head = self._head("chat.completion.chunk")
            yield encode_event(head | {"choices": [], "usage": self._usage()})

    def _head(self, kind: str) -> JSON:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "service_tier": "default",
            "system_fingerprint": "fp_emulated",
        }

    def _call(self, index: int, call: EmulatedCall) -> JSON:
        arguments: Any = call.arguments
        if not self.style.object_arguments:
            arguments = msgspec.json.encode(call.arguments).decode()
        body: JSON = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
        return {"id": f"call_{self.number}_{index}"} | body if self.style.gives_ids else body

    def _call_parts(self, index: int, call: EmulatedCall) -> Iterator[JSON]:
        whole = self._call(index, call)
        arguments = whole["function"]["arguments"]
        if not isinstance(arguments, str):
            yield {"index": index} | whole
            return
        yield {"index": index} | whole | {"function": {"name": call.name, "arguments": ""}}
        for start in range(0, len(arguments), _SLICE):
            yield {"index": index, "function": {"arguments": arguments[start : start + _SLICE]}}

    def _usage(self) -> JSON:
        cache_use = self.cache_use
        details: JSON = {"cached_tokens": cache_use.cached, "audio_tokens": 0}
        if self.style.tells_writes:
            details["cache_write_tokens"] = cache_use.written
        return {
            "prompt_tokens": cache_use.tokens,
            "completion_tokens": self.output,
            "total_tokens": cache_use.tokens + self.output,
            "prompt_tokens_details": details,
            "completion_tokens_details": {"reasoning_tokens": self.thoughts, "audio_tokens": 0},
        }


def encode_event(data: JSON) -> bytes:
    """Return one server-sent event."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"
