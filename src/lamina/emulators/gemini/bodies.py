"""Reads Gemini requests as strictly as the API does, and refuses them with the API's statuses,
messages and waiting times.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request

from lamina.core.values.settings import Target
from lamina.emulators.faults import FaultKind


class GeminiRefusal(Exception):
    """An error in the API's own format."""

    def __init__(
        self, code: int, status: str, message: str, details: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = list(details)

    def body(self) -> dict[str, Any]:
        error = {"code": self.code, "message": str(self), "status": self.status}
        return {"error": error | ({"details": self.details} if self.details else {})}


def invalid_argument(message: str) -> GeminiRefusal:
    return GeminiRefusal(400, "INVALID_ARGUMENT", message)


_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. "
    "* Quota exceeded for metric: generativelanguage.googleapis.com/"
)
# Gemini has no 529; a refused key is an invalid argument there.
_FAULT_REFUSALS: dict[str, tuple[int, str, str]] = {
    "429": (429, "RESOURCE_EXHAUSTED", f"{_QUOTA}generate_requests_per_model, limit: 150"),
    "throttle": (
        429,
        "RESOURCE_EXHAUSTED",
        f"{_QUOTA}generate_content_paid_tier_input_token_count, limit: 1000000: too many tokens",
    ),
    "500": (500, "INTERNAL", "An internal error has occurred. Please retry."),
    "503": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "529": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "401": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
}


def refusal_for_fault(fault: FaultKind, retry_after: float, target: Target) -> GeminiRefusal:
    """Return a fault as the API reports it."""
    if fault == "overflow":
        return GeminiRefusal(
            400,
            "INVALID_ARGUMENT",
            f"The input token count ({target.window + 1}) exceeds the maximum number of tokens "
            f"allowed ({target.window}).",
        )
    code, status, message = _FAULT_REFUSALS[fault]
    details: list[dict[str, Any]] = []
    if code == 429:
        # Google's APIs put the waiting time here, not in a header.
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{retry_after:g}s"})
    if fault == "401":
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        details.append({"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
    return GeminiRefusal(code, status, message, details)


def key_of(request: Request) -> str:
    return request.headers.get("x-goog-api-key") or request.query_params.get("key") or ""


def owner_of(request: Request) -> str:
    """Return the caller, identified by a digest of the key."""
    return sha256(key_of(request).encode()).hexdigest()


async def read_json_body(request: Request) -> object:
    """Return a request's JSON body.

    Raises:
        GeminiRefusal: the body is not JSON.
    """
    try:
        return cast(object, msgspec.json.decode(await request.body()))
    except msgspec.DecodeError as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from error


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
    """A cache update: only the expiry can be changed."""

    ttl: str | None = None
    expire_time: str | None = None


class CountBody(_Wire):
    contents: list[GeminiContent] = []
    generate_content_request: GenerateBody | None = None


# The content of these fields is the caller's own and keeps its keys.
_OPAQUE = {
    "args", "response", "parameters", "parametersJsonSchema", "responseSchema",
    "responseJsonSchema",
}  # fmt: skip
_UNKNOWN = re.compile(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")


def read_body(raw: object, shape: type[T]) -> T:
    """Convert a JSON body to a type; keys may also be in snake case, as in all of Google's APIs.

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
    """Yield the messages, with their roles."""
    for content in contents:
        results = [part.function_response for part in content.parts if part.function_response]
        if results:
            yield "tool", "\n".join(str(result.response) for result in results)
        text = "".join(part.text or "" for part in content.parts if not part.thought)
        if text or not results:
            yield ("assistant" if content.role == "model" else "user"), text
