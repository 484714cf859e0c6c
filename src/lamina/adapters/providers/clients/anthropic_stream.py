"""Reads an answer from Anthropic, event by event.

Law: the result is the message that the API would have sent in one piece.
"""

from collections.abc import Iterator
from typing import Any

from lamina.adapters.providers.wires.tool_calls import parse_arguments
from lamina.core.values.piece import CallPiece, Piece, TextPiece, ThinkingPiece

_CHANGES = "input_transformations"
_HEAD_FIELDS = ("id", "model", "diagnostics", _CHANGES)


class AnthropicStreamReader:
    """An answer that is still arriving."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._argument_parts: dict[int, list[str]] = {}
        self._stop: str | None = None
        self.has_content = False
        self.has_ended = False

    def feed(self, event: Any) -> Iterator[Piece]:
        match event.type:
            case "message_start":
                fields = event.message.to_dict()
                self._usage = fields.get("usage") or {}
                self._head = {name: fields.get(name) for name in _HEAD_FIELDS}
            case "content_block_start":
                block = event.content_block.to_dict()
                self._blocks[event.index] = block
                self._argument_parts[event.index] = []
                yield from self._opening(event.index, block)
            case "content_block_delta":
                yield from self._add(event.index, event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                # Totals; those that did not change are left out.
                fields = event.usage.to_dict() if event.usage else {}
                self._usage |= {name: value for name, value in fields.items() if value is not None}
                # Said again where another model took over in the middle.
                if (changes := event.to_dict().get(_CHANGES)) is not None:
                    self._head[_CHANGES] = changes
            case "message_stop":
                self.has_ended = True
            case _:
                pass

    def _opening(self, index: int, block: dict[str, Any]) -> Iterator[Piece]:
        """What a block holds from the start; with some other servers, all of it."""
        match block["type"]:
            case "text" if block.get("text"):
                yield self._mark_content(TextPiece(block["text"]))
            case "thinking" if block.get("thinking"):
                yield self._mark_content(ThinkingPiece(block["thinking"]))
            case "tool_use":
                yield self._mark_content(CallPiece(index=index, name=block.get("name") or ""))
            case _:
                pass

    def _add(self, index: int, delta: Any) -> Iterator[Piece]:
        block = self._blocks.get(index)
        if block is None:
            return
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + delta.text
                yield self._mark_content(TextPiece(delta.text))
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.thinking
                yield self._mark_content(ThinkingPiece(delta.thinking))
            case "signature_delta":
                block["signature"] = delta.signature
            case "input_json_delta" if delta.partial_json:
                self._argument_parts[index].append(delta.partial_json)
                yield self._mark_content(CallPiece(index=index, arguments=delta.partial_json))
            case _:
                pass

    def _mark_content(self, piece: Piece) -> Piece:
        self.has_content = True
        return piece

    def message(self) -> dict[str, Any]:
        """The message as the API would have sent it in one piece."""
        content = []
        for index, block in sorted(self._blocks.items()):
            if arguments := "".join(self._argument_parts[index]):
                block = block | {"input": parse_arguments(arguments)}
            content.append(block)
        return self._head | {"content": content, "stop_reason": self._stop, "usage": self._usage}
