"""Reads a chat completion, chunk by chunk.

Law: nothing that the chunks hold is lost, even if a server does not number calls, gives no ids or
sends arguments as objects.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lamina.adapters.providers.wires.tool_calls import write_arguments
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.piece import CallPiece, Piece, TextPiece, ThinkingPiece
from lamina.core.values.wire import Reply


class _Call(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = []


class OpenAIStreamReader:
    """An answer that is still arriving. `finish` is why it ended, once it has; `has_content` tells
    whether anything has arrived."""

    def __init__(self) -> None:
        self._id = ""
        self._model = ""
        self._usage: Any = None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[int, _Call] = {}
        self.finish = ""

    @property
    def has_content(self) -> bool:
        return bool(self._text or self._refusal or self._thought or self._calls)

    def feed(self, chunk: Any) -> Iterator[Piece]:
        """What a chunk adds. Any field may be missing, as the SDK does not check."""
        self._id = self._id or getattr(chunk, "id", None) or ""
        self._model = self._model or getattr(chunk, "model", None) or ""
        # Some servers send it with every chunk: the last one counts.
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in getattr(chunk, "choices", None) or ():
            if delta := getattr(choice, "delta", None):
                yield from self._take_delta(delta)
            self.finish = getattr(choice, "finish_reason", None) or self.finish

    def _take_delta(self, delta: Any) -> Iterator[Piece]:
        # DeepSeek, vLLM and llama.cpp use the former, OpenRouter and Ollama the latter.
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and thought:
            self._thought.append(thought)
            yield ThinkingPiece(thought)
        for name, texts in (("content", self._text), ("refusal", self._refusal)):
            text = getattr(delta, name, None)
            if isinstance(text, str) and text:
                texts.append(text)
                yield TextPiece(text)
        for call in getattr(delta, "tool_calls", None) or ():
            if piece := self._take_call(call):
                yield piece

    def _take_call(self, delta: Any) -> CallPiece | None:
        function = getattr(delta, "function", None)
        name = getattr(function, "name", None) or ""
        call_id = getattr(delta, "id", None) or ""
        index = getattr(delta, "index", None)
        if not isinstance(index, int):
            # Servers that do not number calls send one after the other.
            index = len(self._calls) - (bool(self._calls) and not (name or call_id))
        call = self._calls.setdefault(index, _Call())
        is_new = not call.name
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = getattr(function, "arguments", None)
        if arguments is not None and not isinstance(arguments, str):
            arguments = write_arguments(arguments)
        if arguments:
            call.arguments.append(arguments)
        if not (arguments or (is_new and name)):
            return None
        return CallPiece(index=index, name=name if is_new else "", arguments=arguments or "")

    def completion(self) -> dict[str, Any]:
        """The completion as it would have come in one piece."""
        message: dict[str, Any] = {
            "content": "".join(self._text) or None,
            "refusal": "".join(self._refusal) or None,
            "reasoning_content": "".join(self._thought) or None,
            "tool_calls": [
                {
                    "id": call.id or None,
                    "function": {"name": call.name, "arguments": "".join(call.arguments)},
                }
                for _, call in sorted(self._calls.items())
            ],
        }
        return {
            "id": self._id,
            "model": self._model,
            "choices": [{"message": message, "finish_reason": self.finish}],
            "usage": self._usage,
        }

    def feed_reply(self, reply: Reply) -> Iterator[Piece]:
        """The pieces of an answer that came in one go."""
        calls = 0
        for block in reply.blocks:
            match block:
                case Text(text=text) if text:
                    yield TextPiece(text)
                case Thinking(text=text) if text:
                    yield ThinkingPiece(text)
                case ToolCall(name=name, arguments=arguments):
                    yield CallPiece(index=calls, name=name, arguments=arguments)
                    calls += 1
                case _:
                    pass
