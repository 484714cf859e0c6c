"""Provides an emulator's answers: an echo, a script, or the embedded model; also values that fit a
JSON Schema.

Law: the same schema and words produce the same value. It is the smallest valid one: required fields
only, the first alternative, the low end of a range; its strings are the given words.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from lamina.core.ports import Provider
from lamina.core.schemas import check_arguments
from lamina.core.values.wire import TextPiece
from lamina.errors import UsageError

Schema = Mapping[str, Any]
# An example of each string format.
_FORMATS = {
    "date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z",
    "duration": "P1D", "email": "somebody@example.com", "hostname": "example.com",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip
# How deep a self-referencing schema is followed before optional parts are left out.
_DEEPEST = 8


def make_instance(schema: Any, words: str) -> Any:
    """Return a value that is valid by `schema`, with `words` as its strings."""
    return _Maker(schema if isinstance(schema, Mapping) else {}, words).make(schema, 0)


class _Maker:
    def __init__(self, root: Schema, words: str) -> None:
        self._root = root
        self._words = words

    def make(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping):
            return self._words  # `true`: anything
        schema = self._resolve(schema)
        for name in ("const", "default"):
            if name in schema:
                return schema[name]
        if schema.get("enum"):
            return schema["enum"][0]
        for name in ("anyOf", "oneOf"):
            if choices := schema.get(name):
                rest = {key: value for key, value in schema.items() if key != name}
                return self.make(_merge(rest, self._resolve(self._simplest(choices, depth))), depth)
        match _kind(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                count = max(int(schema.get("minItems", 0)), 1 if depth < _DEEPEST else 0)
                fixed = list(schema.get("prefixItems", ()))
                count = min(max(count, len(fixed)), int(schema.get("maxItems", count + len(fixed))))
                shapes = [*fixed, *[schema.get("items", {})] * count][:count]
                return [self.make(shape, depth + 1) for shape in shapes]
            case "string":
                return self._string(schema)
            case "integer" | "number" as kind:
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._words

    def _resolve(self, schema: Schema) -> Schema:
        """Return the schema with its references and `allOf` parts merged in."""
        for _ in range(_DEEPEST):
            if not isinstance(schema.get("$ref"), str):
                break
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _merge(self._find(schema["$ref"]), rest)
        for part in schema.get("allOf", ()):
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            schema = _merge(rest, self._resolve(part))
        return schema

    def _find(self, reference: str) -> Schema:
        found: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            name = name.replace("~1", "/").replace("~0", "~")
            found = found.get(name, {}) if name and isinstance(found, Mapping) else found
        return found if isinstance(found, Mapping) else {}

    def _simplest(self, choices: Any, depth: int) -> Any:
        """Return the first choice; at great depth, one without nested values."""
        if depth < _DEEPEST:
            return choices[0]
        plain = [choice for choice in choices if _kind(self._resolve(choice)) != "object"]
        return (plain or choices)[0]

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self.make(shape, depth + 1)
            for name, shape in schema.get("properties", {}).items()
            if name in required or depth < 2
        }

    def _string(self, schema: Schema) -> str:
        text = _FORMATS.get(str(schema.get("format")), self._words)
        text = text.ljust(int(schema.get("minLength", 0)), ".")
        return text[: int(schema.get("maxLength", len(text)))]


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else ""
    # Google's own schemas have the types in capitals.
    return str(kind).lower()


def _number(schema: Schema, *, whole: bool) -> float | int:
    step = schema.get("multipleOf")
    least = schema.get("minimum", 0)
    if "exclusiveMinimum" in schema:
        least = max(least, schema["exclusiveMinimum"] + (step or 1))
    most = schema.get("maximum", least)
    if "exclusiveMaximum" in schema:
        most = min(most, schema["exclusiveMaximum"] - (step or 1))
    if "minimum" not in schema and "exclusiveMinimum" not in schema:
        least = min(least, most)
    if least > most:
        # A value between two exclusive limits.
        between = (schema.get("exclusiveMinimum", 0) + schema.get("exclusiveMaximum", 0)) / 2
        least = schema.get("maximum", between)
    if step:
        least = -(-least // step) * step
    number: float | int = -(-least // 1) if whole else least
    return number


def _merge(schema: Schema, other: Schema) -> dict[str, Any]:
    merged = {**schema, **other}
    if "properties" in schema and "properties" in other:
        merged["properties"] = {**schema["properties"], **other["properties"]}
    if "required" in schema and "required" in other:
        merged["required"] = [*schema["required"], *other["required"]]
    return merged


# The author of a message.
EmulatedRole = Literal["system", "user", "assistant", "tool"]


class EmulatedRequest(Struct, frozen=True, kw_only=True):
    """The parts of a request that an answer depends on: the messages, the callable tools with their
    schemas, and the requirements on the answer. `called` contains the tools called since the
    question; with `must_call` one must be called; `schema` is that of an answer that must be
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
    """An answer: thinking, text and calls in that order; `then` continues it in the same message,
    if the vendor supports that (Anthropic; others leave it out). `display` is Anthropic's setting
    for showing the thinking. `pieces` splits its text at spaces for streaming."""

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
    """Return a source's answer, adjusted to meet the request's requirements, which vendors enforce
    on their models."""
    answer = await source.answer(request)
    if any(part.calls for part in answer.parts()):
        return answer
    if request.must_call and request.tools:
        # Called one after the other; the last is where frameworks put the tool that ends a run.
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
    """Returns answers in order, and starts over after the last one."""

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
    """Read answers from a JSON list of strings or `{text, thinking, calls}`.

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
