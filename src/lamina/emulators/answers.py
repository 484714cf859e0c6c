"""Sources of an emulator's answers: an echo, a script, or the embedded model."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from lamina.core.ports import Provider
from lamina.core.schemas import check_arguments
from lamina.core.values.piece import TextPiece
from lamina.emulators.schema_instance import make_instance
from lamina.errors import UsageError

# Who wrote a message.
EmulatedRole = Literal["system", "user", "assistant", "tool"]


class EmulatedRequest(Struct, frozen=True, kw_only=True):
    """What an answer needs of a request: the messages, the tools that may be called with their
    schemas, and what the answer has to be. `called` are the tools that were called since the
    question; with `must_call` one has to be called; `schema` is that of a text which has to be
    JSON."""

    messages: tuple[tuple[EmulatedRole, str], ...]
    tools: Mapping[str, dict[str, Any]] = {}
    called: tuple[str, ...] = ()
    must_call: bool = False
    schema: dict[str, Any] | None = None
    max_tokens: int = 256

    @property
    def question(self) -> str:
        return next((text for role, text in reversed(self.messages) if role == "user"), "")


class EmulatedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}


class EmulatedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer: thinking, text and calls in that order, and what follows `then` in the same
    message, where a vendor's answers can go on (Anthropic's; the others leave it out). `display`
    says what comes back of its thinking, as Anthropic puts it. `pieces` splits its text at spaces
    for streaming."""

    text: str = ""
    thinking: str = ""
    calls: tuple[EmulatedCall, ...] = ()
    display: Literal["summarized", "omitted", "redacted"] = "summarized"
    then: "EmulatedAnswer | None" = None

    def parts(self) -> list["EmulatedAnswer"]:
        return [self, *(self.then.parts() if self.then else ())]

    def pieces(self) -> list[str]:
        words = self.text.split(" ")
        return [word if at == 0 else f" {word}" for at, word in enumerate(words) if word or at]


class AnswerSource(Protocol):
    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer: ...


async def ask(source: AnswerSource, request: EmulatedRequest) -> EmulatedAnswer:
    """The answer of a source, held to what the request requires of it, as vendors hold models."""
    answer = await source.answer(request)
    if any(part.calls for part in answer.parts()):
        return answer
    if request.must_call and request.tools:
        # One after the other; the last one is where frameworks put the tool that ends a run.
        names = list(request.tools)
        name = next((name for name in names if name not in request.called), names[-1])
        arguments = make_instance({"type": "object"} | request.tools[name], answer.text)
        call = EmulatedCall(name=name, arguments=arguments)
        return EmulatedAnswer(thinking=answer.thinking, calls=(call,))
    if request.schema is None or _is_instance(answer.text, request.schema):
        return answer
    instance = make_instance(request.schema, answer.text)
    return EmulatedAnswer(thinking=answer.thinking, text=msgspec.json.encode(instance).decode())


def _is_instance(text: str, schema: dict[str, Any]) -> bool:
    try:
        return check_arguments(schema, msgspec.json.decode(text)) is None
    except msgspec.DecodeError:
        return False


class EchoAnswers:
    """Repeats the question, shortened."""

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:
        question = " ".join(request.question.split())
        excerpt = question if len(question) <= 200 else f"{question[:199]}…"
        return EmulatedAnswer(text=f"You said: {excerpt}")


class ScriptedAnswers:
    """Answers in order; after the last one it starts over."""

    def __init__(self, answers: Iterable[EmulatedAnswer | str]) -> None:
        self._answers = [
            EmulatedAnswer(text=answer) if isinstance(answer, str) else answer for answer in answers
        ]
        self._next = 0
        if not self._answers:
            raise UsageError("a script of answers needs at least one")

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:  # noqa: ARG002
        answer = self._answers[self._next % len(self._answers)]
        self._next += 1
        return answer


def read_answers(path: Path) -> ScriptedAnswers:
    """Answers from a JSON list of texts or `{text, thinking, calls}`.

    Raises:
        UsageError: the file is not such a list.
    """
    try:
        return ScriptedAnswers(
            msgspec.json.decode(path.read_bytes(), type=list[str | EmulatedAnswer])
        )
    except OSError as error:
        raise UsageError(
            f"cannot read the answers {str(path)!r}: {error.strerror}; they come from 'echo', "
            f"'model', or a JSON file"
        ) from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{str(path)!r} is not a list of answers: {error}") from error


class ModelAnswers:
    """Asks a model, without tools."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:
        pieces: AsyncIterator[Any] = self._provider.stream(self._body(request))
        texts = [piece.text async for piece in pieces if isinstance(piece, TextPiece)]
        return EmulatedAnswer(text="".join(texts))

    def _body(self, request: EmulatedRequest) -> Mapping[str, Any]:
        roles = {"system": "system", "assistant": "assistant"}
        messages: Sequence[dict[str, str]] = [
            {"role": roles.get(role, "user"), "content": text} for role, text in request.messages
        ]
        return {"messages": messages, "max_tokens": request.max_tokens, "temperature": 0.0}
