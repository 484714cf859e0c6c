"""Gemini's requests, read as strictly as the API does."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.emulators.gemini.refusals import invalid_argument

T = TypeVar("T")


class _Wire(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class GeminiBlob(_Wire):
    mime_type: str
    data: str


class FunctionCall(_Wire):
    name: str
    id: str | None = None
    args: dict[str, Any] | None = None


class FunctionResponse(_Wire):
    name: str
    response: dict[str, Any]
    id: str | None = None


class GeminiPart(_Wire):
    text: str | None = None
    inline_data: GeminiBlob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    thought: bool | None = None
    thought_signature: str | None = None


class GeminiContent(_Wire):
    parts: list[GeminiPart] = []
    role: str | None = None


class FunctionDeclaration(_Wire):
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    behavior: str | None = None


class GeminiTool(_Wire):
    function_declarations: list[FunctionDeclaration] = []
    google_search: dict[str, Any] | None = None
    code_execution: dict[str, Any] | None = None
    url_context: dict[str, Any] | None = None


class FunctionCallingConfig(_Wire):
    mode: str | None = None
    allowed_function_names: list[str] | None = None


class GeminiToolConfig(_Wire):
    function_calling_config: FunctionCallingConfig | None = None


class ThinkingConfig(_Wire):
    include_thoughts: bool | None = None
    thinking_budget: int | None = None
    thinking_level: str | None = None


class GenerationConfig(_Wire):
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    candidate_count: int | None = None
    max_output_tokens: int | None = None
    stop_sequences: list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    response_mime_type: str | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    response_modalities: list[str] | None = None
    media_resolution: str | None = None
    thinking_config: ThinkingConfig | None = None


class GenerateBody(_Wire):
    contents: list[GeminiContent] = []
    model: str | None = None
    system_instruction: GeminiContent | None = None
    tools: list[GeminiTool] = []
    tool_config: GeminiToolConfig | None = None
    generation_config: GenerationConfig | None = None
    safety_settings: list[dict[str, Any]] | None = None
    cached_content: str | None = None
    continuation_token: str | None = None
    service_tier: str | None = None
    store: bool | None = None


class CacheBody(_Wire):
    model: str | None = None
    contents: list[GeminiContent] = []
    system_instruction: GeminiContent | None = None
    tools: list[GeminiTool] = []
    tool_config: GeminiToolConfig | None = None
    display_name: str | None = None
    ttl: str | None = None
    expire_time: str | None = None


class CacheUpdateBody(_Wire):
    """Only the expiry of an existing cache can be changed."""

    ttl: str | None = None
    expire_time: str | None = None


class CountBody(_Wire):
    contents: list[GeminiContent] = []
    generate_content_request: GenerateBody | None = None


# The content of these is the caller's own and keeps its keys.
_OPAQUE = {
    "args", "response", "parameters", "parametersJsonSchema", "responseSchema",
    "responseJsonSchema",
}  # fmt: skip
_UNKNOWN = re.compile(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")


def read_body(raw: object, shape: type[T]) -> T:
    """A JSON body in its shape; keys may also be in snake case, as in all of Google's APIs.

    Raises:
        GeminiRefusal: it has an unknown field, or a wrong type somewhere.
    """
    try:
        return msgspec.convert(_camel(raw), shape)
    except msgspec.ValidationError as error:
        if match := _UNKNOWN.search(str(error)):
            place = f" at '{match[2]}'" if match[2] else ""
            problem = f'Unknown name "{match[1]}"{place}: Cannot find field.'
        else:
            problem = f"{error}"
        raise invalid_argument(f"Invalid JSON payload received. {problem}") from error


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    camel_fields = {_camel_key(key): inner for key, inner in value.items()}
    return {key: inner if key in _OPAQUE else _camel(inner) for key, inner in camel_fields.items()}


def _camel_key(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


def texts_of(contents: Sequence[GeminiContent]) -> Iterator[tuple[str, str]]:
    """The messages, with their roles."""
    for content in contents:
        results = [part.function_response for part in content.parts if part.function_response]
        if results:
            yield "tool", "\n".join(str(result.response) for result in results)
        text = "".join(part.text or "" for part in content.parts if not part.thought)
        if text or not results:
            yield ("assistant" if content.role == "model" else "user"), text
