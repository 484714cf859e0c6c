"""Refuses requests that Gemini's API refuses.

Law: requests that the API refuses are refused in its own words, and no others are.
"""

import re
from collections.abc import Sequence

from lamina.emulators.gemini.bodies import (
    CacheBody,
    FunctionCallingConfig,
    FunctionDeclaration,
    GeminiContent,
    GeminiPart,
    GeminiTool,
    GenerateBody,
    GenerationConfig,
    invalid_argument,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}\Z")
_LEVELS = ("minimal", "low", "medium", "high")
_MEDIA = ("image/", "audio/", "video/", "application/pdf", "text/")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
SIGNATURE_PREFIX = "bGFtaW5h"  # the beginning of every signature from the emulator
_SHORTEST_SIGNATURE = 64
# The value that the API accepts as the signature of a call made by another model.
SKIPPED_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


def check_generate(body: GenerateBody, model: str) -> None:
    """Refuse requests that generateContent refuses."""
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
    """Refuse invalid tools and system instructions."""
    past_names: set[str] = set()
    for tool in body.tools:
        for declaration in tool.function_declarations:
            _check_declaration(declaration, past_names)
    system = body.system_instruction
    if system is not None and not all((part.text or "").strip() for part in system.parts):
        raise invalid_argument(
            "* GenerateContentRequest.system_instruction.parts: must hold text\n"
        )


def _check_declaration(declaration: FunctionDeclaration, past_names: set[str]) -> None:
    where = "* GenerateContentRequest.tools[0].function_declarations"
    if not _NAME.match(declaration.name):
        raise invalid_argument(
            f"{where}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an "
            f"underscore, with a maximum length of 128.\n"
        )
    if declaration.name in past_names:
        raise invalid_argument(f"Duplicate function declaration found: {declaration.name}")
    past_names.add(declaration.name)
    if declaration.parameters is not None and declaration.parameters_json_schema is not None:
        raise invalid_argument(
            f"{where}: only one of parameters and parameters_json_schema can be set\n"
        )
    schema = declaration.parameters_json_schema
    if schema is not None and schema.get("type") != "object":
        raise invalid_argument(f"{where}.parameters_json_schema: should be of type OBJECT\n")


def check_contents(contents: Sequence[GeminiContent], model: str) -> None:
    """Refuse turns that do not alternate, invalid parts, and calls without results."""
    open_calls: list[tuple[str, str | None]] = []
    for content in contents:
        if (content.role or "user") not in ("user", "model"):
            raise invalid_argument("Please use a valid role: user, model.")
    contents = merge_turns(contents)
    for index, content in enumerate(contents):
        role = content.role or "user"
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
        results = [(r.name, r.id) for p in content.parts if (r := p.function_response)]
        if not _are_answers(results, open_calls):
            raise invalid_argument(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        open_calls = [(c.name, c.id) for p in content.parts if (c := p.function_call)]
    if open_calls and contents[-1].role == "model":
        raise invalid_argument(
            "Please ensure that function response turn comes after a function call turn."
        )
    if signs_calls(model):
        _check_signed(contents)


def _are_answers(
    results: Sequence[tuple[str, str | None]], calls: Sequence[tuple[str, str | None]]
) -> bool:
    """Return whether results answer calls, in their order; ids match them, if both sides have
    ids."""
    return len(results) == len(calls) and all(
        name == called and (own is None or call is None or own == call)
        for (name, own), (called, call) in zip(results, calls, strict=True)
    )


def merge_turns(contents: Sequence[GeminiContent]) -> list[GeminiContent]:
    """Merge neighbouring turns with the same role: streamed answers are sent back in pieces."""
    turns: list[GeminiContent] = []
    for content in contents:
        role = content.role or "user"
        if turns and content.parts and turns[-1].parts and turns[-1].role == role:
            turns[-1] = GeminiContent(role=role, parts=[*turns[-1].parts, *content.parts])
        else:
            turns.append(GeminiContent(role=role, parts=content.parts))
    return turns


def signs_calls(model: str) -> bool:
    """Return whether a model is of the third generation or later: those sign their calls and give
    them ids."""
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
        standard_signature = signature.replace("_", "/").replace("-", "+")
        is_skipped = standard_signature == SKIPPED_SIGNATURE and data == ["function_call"]
        # Another server's signatures cannot be judged here.
        is_own = standard_signature.startswith(SIGNATURE_PREFIX)
        if not (is_skipped or is_own or len(signature) >= _SHORTEST_SIGNATURE):
            raise invalid_argument("Corrupted thought signature.")
    if data == ["text"] and not (part.text or "").strip() and signature is None:
        raise invalid_argument(f"* GenerateContentRequest.{where}.text: must not be empty\n")
    if (blob := part.inline_data) is not None:
        if not blob.mime_type.startswith(_MEDIA):
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
    """Check that the first call of every step in the current turn is signed."""
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
    names = {declaration.name for tool in tools for declaration in tool.function_declarations}
    others = [name for name in calling.allowed_function_names or () if name not in names]
    if others:
        raise invalid_argument(f"allowed_function_names: {others[0]} is not a declared function")


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z")


def _is_base64(text: str) -> bool:
    return bool(_BASE64.match(text)) and len(text.rstrip("=")) % 4 != 1
