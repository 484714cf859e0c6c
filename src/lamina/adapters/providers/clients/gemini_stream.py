"""Reads an answer from Gemini, chunk by chunk.

Law: the result is the response that would have come in one piece.
"""

from typing import Any

from lamina.adapters.providers.wires.tool_calls import write_arguments
from lamina.core.values.piece import CallPiece, Piece, TextPiece, ThinkingPiece


class GeminiStreamReader:
    """`has_content` once something has arrived; `finish` is set once it has ended."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._calls = 0
        self._usage: dict[str, int] = {}
        # Output tokens of earlier responses of the same answer.
        self._output = 0
        self._first_prompt: dict[str, int] | None = None
        self._feedback: Any = None
        self._id = ""
        self._model = ""
        self.chunks = 0
        self.finish = ""
        self.token: bytes | None = None

    @property
    def has_content(self) -> bool:
        return bool(self._parts)

    @property
    def is_blocked(self) -> bool:
        return self._feedback is not None and not self._parts

    def feed(self, chunk: Any) -> list[Piece]:
        self.chunks += 1
        self._id = self._id or chunk.response_id or ""
        self._model = self._model or chunk.model_version or ""
        self._feedback = chunk.prompt_feedback or self._feedback
        if (usage := chunk.usage_metadata) is not None:
            names = ("prompt", "cached_content", "candidates", "thoughts")
            counts = {f"{n}_token_count": getattr(usage, f"{n}_token_count") for n in names}
            self._usage |= {name: count for name, count in counts.items() if count is not None}
        pieces: list[Piece] = []
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                pieces += self._take(part)
            self.token = candidate.continuation_token or self.token
            if candidate.finish_reason is not None:
                self.finish = str(getattr(candidate.finish_reason, "value", ""))
        return pieces

    def _take(self, part: Any) -> list[Piece]:
        signature = part.thought_signature
        if (call := part.function_call) is not None:
            function_call = {"name": call.name or "", "id": call.id, "args": call.args}
            self._parts.append({"function_call": function_call, "thought_signature": signature})
            index, self._calls = self._calls, self._calls + 1
            arguments = write_arguments(call.args)
            return [CallPiece(index=index, name=function_call["name"], arguments=arguments)]
        if part.text is None:
            return []
        thought = bool(part.thought)
        last = self._parts[-1] if self._parts else {}
        if "text" in last and last["thought"] == thought and not (
            signature or last["thought_signature"]
        ):  # fmt: skip
            # Only unsigned texts are joined.
            last["text"] += part.text
        elif part.text or signature:
            self._parts.append(
                {"text": part.text, "thought": thought, "thought_signature": signature}
            )
        if not part.text:
            return []
        return [ThinkingPiece(part.text) if thought else TextPiece(part.text)]

    def take_continuation_token(self) -> bytes:
        """The token to continue with, which is used only once."""
        token, self.token, self.finish = self.token, None, ""
        assert token is not None
        self._output += self._count_output()
        if self._first_prompt is None:
            names = ("prompt_token_count", "cached_content_token_count")
            self._first_prompt = {name: self._usage.get(name, 0) for name in names}
        self._usage = {}
        return token

    def _count_output(self) -> int:
        names = ("candidates_token_count", "thoughts_token_count")
        return sum(self._usage.get(name, 0) for name in names)

    def response(self) -> dict[str, Any]:
        """The response as it would have come in one piece."""
        whole: dict[str, Any] = {
            "candidates": [{"content": {"parts": self._parts}, "finish_reason": self.finish}],
            "response_id": self._id,
            "model_version": self._model,
        }
        if self._first_prompt is not None:
            output = {"candidates_token_count": self._output + self._count_output()}
            whole["usage_metadata"] = self._first_prompt | output
        elif self._usage:
            whole["usage_metadata"] = self._usage
        if self.is_blocked and not self.finish:
            reason = getattr(self._feedback.block_reason, "value", None)
            message = self._feedback.block_reason_message
            whole["candidates"] = []
            whole["prompt_feedback"] = {"block_reason": reason, "block_reason_message": message}
        return whole
