"""What an answer needs of a request to Gemini."""

from collections.abc import Iterator, Sequence
from typing import Any

from lamina.emulators.answers import EmulatedRequest
from lamina.emulators.gemini.bodies import (
    FunctionDeclaration,
    GeminiContent,
    GenerateBody,
    GenerationConfig,
    texts_of,
)


def read_request(body: GenerateBody) -> EmulatedRequest:
    """What an answer to `body` has to say, and in which form."""
    messages: list[Any] = list(texts_of(body.contents))
    if (system := body.system_instruction) is not None:
        messages.insert(0, ("system", "".join(part.text or "" for part in system.parts)))
    config = body.generation_config or GenerationConfig()
    calling = body.tool_config.function_calling_config if body.tool_config else None
    mode = (calling.mode if calling else None) or "AUTO"
    names = calling.allowed_function_names if calling else None
    functions = [d for tool in body.tools for d in tool.function_declarations]
    return EmulatedRequest(
        messages=tuple(messages),
        tools={
            function.name: _parameters(function)
            for function in functions
            if mode != "NONE" and (names is None or function.name in names)
        },
        called=tuple(_called(body.contents)),
        must_call=mode == "ANY",
        schema=_answer_schema(config),
        max_tokens=config.max_output_tokens or 256,
    )


def _called(contents: Sequence[GeminiContent]) -> Iterator[str]:
    """The tools that were called since the last question, latest first."""
    for content in reversed(contents):
        if content.role != "model" and not any(p.function_response for p in content.parts):
            return
        yield from (part.function_call.name for part in content.parts if part.function_call)


def _answer_schema(config: GenerationConfig) -> dict[str, Any] | None:
    if config.response_mime_type != "application/json":
        return None
    if config.response_json_schema is not None:
        return config.response_json_schema
    if config.response_schema is not None:
        return dict(_plain(config.response_schema))
    return {"type": "object", "properties": {"answer": {"type": "string"}}}


def _parameters(function: FunctionDeclaration) -> dict[str, Any]:
    return function.parameters_json_schema or dict(_plain(function.parameters or {}))


def _plain(schema: Any) -> Any:
    """A schema of Google's own form as a JSON Schema: the types in small letters."""
    if isinstance(schema, list):
        return [_plain(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inner.lower() if key == "type" and isinstance(inner, str) else _plain(inner)
        for key, inner in schema.items()
    }
