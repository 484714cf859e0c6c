"""Gemini's requests, read as strictly as the API does.

Law: what the API refuses is refused in its own words, and nothing else is.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class GeminiRefusal(Exception):
    """An error in the API's own form."""

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
    """Of a cache that is there, only its end can be changed."""

    ttl: str | None = None
    expire_time: str | None = None


class CountBody(_Wire):
    contents: list[GeminiContent] = []
    generate_content_request: GenerateBody | None = None


# What is the caller's own and keeps its keys.
_OPAQUE = {
    "args", "response", "parameters", "parametersJsonSchema", "responseSchema",
    "responseJsonSchema",
}  # fmt: skip
_UNKNOWN = re.compile(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")


def read_body(raw: object, shape: type[T]) -> T:
    """A JSON body in its shape; keys may be in snake case, too, as in every API of Google's.

    Raises:
        Refused: it has a field that the API does not know, or a wrong type somewhere.
    """
    try:
        return msgspec.convert(_camel(raw), shape)
    except msgspec.ValidationError as error:
        if unknown := _UNKNOWN.search(str(error)):
            place = f" at '{unknown[2]}'" if unknown[2] else ""
            said = f'Unknown name "{unknown[1]}"{place}: Cannot find field.'
        else:
            said = f"{error}"
        raise invalid_argument(f"Invalid JSON payload received. {said}") from error


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {_camel_key(key): each for key, each in value.items()}
    return {key: each if key in _OPAQUE else _camel(each) for key, each in named.items()}


def _camel_key(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


# -- what the API checks -------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}\Z")
_LEVELS = ("minimal", "low", "medium", "high")
_MEDIA = ("image/", "audio/", "video/", "application/pdf", "text/")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
SIGNATURE_PREFIX = "bGFtaW5h"  # how every signature of the emulator begins
# What the API takes for the signature of a call that another model made.
SKIPPED_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


def check_generate(body: GenerateBody, model: str) -> None:
    """Refuses what generateContent refuses."""
    if body.cached_content and (body.system_instruction or body.tools or body.tool_config):
        raise invalid_argument(
            "CachedContent can not be used with GenerateContent request setting "
            "system_instruction, tools or tool_config.\n\nProposed fix: move those values to "
            "CachedContent from GenerateContent request."
        )
    check_front(body)
    if not body.contents:
        raise invalid_argument("* GenerateContentRequest.contents: contents is not specified\n")
    check_contents(body.contents, model)
    if body.contents[-1].role == "model":
        raise invalid_argument(
            "Please ensure that the last turn of the request is of the role user."
        )
    _check_config(body.generation_config or GenerationConfig(), model)
    if (config := body.tool_config) and (calling := config.function_calling_config):
        _check_calling(calling, body.tools)


def check_front(body: GenerateBody | CacheBody) -> None:
    """Refuses tools and a system instruction that cannot be."""
    seen: set[str] = set()
    for tool in body.tools:
        for declared in tool.function_declarations:
            _check_declaration(declared, seen)
    system = body.system_instruction
    if system is not None and not all((part.text or "").strip() for part in system.parts):
        raise invalid_argument(
            "* GenerateContentRequest.system_instruction.parts: must hold text\n"
        )


def _check_declaration(declared: FunctionDeclaration, seen: set[str]) -> None:
    where = "* GenerateContentRequest.tools[0].function_declarations"
    if not _NAME.match(declared.name):
        raise invalid_argument(
            f"{where}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an "
            f"underscore, with a maximum length of 128.\n"
        )
    if declared.name in seen:
        raise invalid_argument(f"Duplicate function declaration found: {declared.name}")
    seen.add(declared.name)
    if declared.parameters is not None and declared.parameters_json_schema is not None:
        raise invalid_argument(
            f"{where}: only one of parameters and parameters_json_schema can be set\n"
        )
    schema = declared.parameters_json_schema
    if schema is not None and schema.get("type") != "object":
        raise invalid_argument(f"{where}.parameters_json_schema: should be of type OBJECT\n")


def check_contents(contents: Sequence[GeminiContent], model: str) -> None:
    """Refuses turns that do not alternate, parts that are none, and calls without results."""
    called: list[tuple[str, str | None]] = []
    for index, content in enumerate(contents):
        role = content.role or "user"
        if role not in ("user", "model"):
            raise invalid_argument("Please use a valid role: user, model.")
        if role != ("model" if index % 2 else "user"):
            raise invalid_argument(
                "Please ensure that multiturn requests alternate between user and model, and that "
                "a function call turn comes immediately after a user turn."
            )
        if not content.parts:
            raise invalid_argument(
                f"* GenerateContentRequest.contents[{index}].parts: is not specified\n"
            )
        for at, part in enumerate(content.parts):
            _check_part(role, part, f"contents[{index}].parts[{at}]")
        answered = [(r.name, r.id) for p in content.parts if (r := p.function_response)]
        if answered != called:
            raise invalid_argument(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        called = [(c.name, c.id) for p in content.parts if (c := p.function_call)]
    if called and contents[-1].role == "model":
        raise invalid_argument(
            "Please ensure that function response turn comes after a function call turn."
        )
    if signs_calls(model):
        _check_signed(contents)


def signs_calls(model: str) -> bool:
    """Whether a model is of the third generation or later: those sign their calls and name them."""
    return not model.startswith(("gemini-1", "gemini-2"))


def _check_part(role: str, part: GeminiPart, where: str) -> None:
    data = [
        name
        for name in ("text", "inline_data", "function_call", "function_response")
        if getattr(part, name) is not None
    ]
    if len(data) != 1:
        raise invalid_argument(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must "
            f"have one initialized field\n"
        )
    signature = part.thought_signature
    if signature is not None:
        if role != "model" or not _is_base64(signature):
            raise invalid_argument("Thought signature is not valid")
        written = signature.replace("_", "/").replace("-", "+")
        skipped = written == SKIPPED_SIGNATURE and data == ["function_call"]
        if not skipped and not written.startswith(SIGNATURE_PREFIX):
            raise invalid_argument("Corrupted thought signature.")
    if data == ["text"] and not (part.text or "").strip() and signature is None:
        raise invalid_argument(f"* GenerateContentRequest.{where}.text: must not be empty\n")
    if (blob := part.inline_data) is not None:
        if not blob.mime_type.startswith(
            ("image/", "audio/", "video/", "application/pdf", "text/")
        ):
            raise invalid_argument(f"Unsupported MIME type: {blob.mime_type}")
        if not blob.data or not _is_base64(blob.data):
            raise invalid_argument(
                f"Invalid value at '{where}.inline_data.data' (TYPE_BYTES), Base64"
            )
    if (data == ["function_call"] and role != "model") or (
        data == ["function_response"] and role != "user"
    ):
        raise invalid_argument(f"{data[0]} does not belong to the role {role}")


def _check_signed(contents: Sequence[GeminiContent]) -> None:
    """The first call of every step of the turn under way carries a signature."""
    for index in range(len(contents) - 1, -1, -1):
        parts = contents[index].parts
        if contents[index].role == "user":
            if not any(part.function_response for part in parts):
                return
            continue
        calls = [part for part in parts if part.function_call]
        if calls and not calls[0].thought_signature:
            call = calls[0].function_call
            raise invalid_argument(
                f"Function call is missing a thought_signature in functionCall parts. This is "
                f"required for tools to work correctly. Additional data, function call "
                f"`default_api:{call.name if call else ''}`, position {index}."
            )


def _check_config(config: GenerationConfig, model: str) -> None:
    if config.temperature is not None and not 0 <= config.temperature <= 2:
        raise invalid_argument(
            f"* GenerateContentRequest.generation_config.temperature: must be in the range "
            f"[0.0, 2.0], not {config.temperature}\n"
        )
    if config.max_output_tokens is not None and config.max_output_tokens < 1:
        raise invalid_argument("max_output_tokens must be positive.")
    thinking = config.thinking_config
    if thinking is not None and thinking.thinking_level is not None:
        if not signs_calls(model):
            raise invalid_argument("Thinking level is not supported for this model.")
        if thinking.thinking_level.lower() not in _LEVELS:
            raise invalid_argument(
                f"Invalid value at 'thinking_level': {thinking.thinking_level!r}"
            )
        if thinking.thinking_budget is not None:
            raise invalid_argument("You can only set one of thinking_budget and thinking_level.")
    has_schema = config.response_json_schema is not None or config.response_schema is not None
    if has_schema and config.response_mime_type != "application/json":
        raise invalid_argument(
            "Response schema is only supported with response_mime_type application/json"
        )


def _check_calling(calling: FunctionCallingConfig, tools: Sequence[GeminiTool]) -> None:
    if calling.mode is not None and calling.mode not in _MODES:
        raise invalid_argument(
            f"Invalid value at 'tool_config.function_calling_config.mode': {calling.mode}"
        )
    declared = {declaration.name for tool in tools for declaration in tool.function_declarations}
    unknown = [name for name in calling.allowed_function_names or () if name not in declared]
    if unknown:
        raise invalid_argument(f"allowed_function_names: {unknown[0]} is not a declared function")


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z")


def _is_base64(text: str) -> bool:
    return bool(_BASE64.match(text)) and len(text.rstrip("=")) % 4 != 1


def texts_of(contents: Sequence[GeminiContent]) -> Iterator[tuple[str, str]]:
    """Who said what."""
    for content in contents:
        results = [part.function_response for part in content.parts if part.function_response]
        if results:
            said = "\n".join(str(result.response) for result in results)
            yield "tool", said
        spoken = "".join(part.text or "" for part in content.parts if not part.thought)
        if spoken or not results:
            yield ("assistant" if content.role == "model" else "user"), spoken
