"""Refuses requests that OpenAI's chat completions refuse, with the same status, sentence and codes.

Law: a body that passes can be rendered and answered. Servers that are only wire-compatible are less
strict: they ignore unknown fields, and need no key.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from lamina.core.values.settings import Target
from lamina.emulators.faults import FaultKind


class OpenAIRefusal(Exception):
    """A 400 in the vendor's words."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


def refuse_unless(ok: object, message: str, param: str | None, code: str | None = None) -> None:
    if not ok:
        raise OpenAIRefusal(message, param, code)


FAULT_REFUSALS: dict[FaultKind, tuple[int, str, str, str | None]] = {
    "429": (
        429, "Rate limit reached for {model} in organization org-emulated on requests per min "
        "(RPM): Limit 500, Used 500, Requested 1. Please try again in {ms}ms.", "requests",
        "rate_limit_exceeded",
    ),
    "throttle": (
        429, "Request too large for {model} in organization org-emulated on tokens per min (TPM): "
        "Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run "
        "successfully.", "tokens", "rate_limit_exceeded",
    ),
    "500": (
        500, "The server had an error while processing your request. Sorry about that!",
        "server_error", None,
    ),
    "503": (
        503, "The engine is currently overloaded, please try again later", "service_unavailable",
        None,
    ),
    "529": (529, "The server is overloaded, please try again later", "server_error", None),
    "401": (
        401, "Incorrect API key provided: {key}. You can find your API key at "
        "https://platform.openai.com/account/api-keys.", "invalid_request_error", "invalid_api_key",
    ),
}  # fmt: skip


JSON = Mapping[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 128
_LONGEST_KEY = 64
_FIELDS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p",
    "max_completion_tokens", "max_tokens", "reasoning_effort", "verbosity", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "response_format", "stream",
    "stream_options", "n", "stop", "seed", "user", "metadata", "store", "service_tier", "logprobs",
    "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty", "modalities",
    "prediction", "safety_identifier", "audio", "web_search_options", "moderation", "functions",
    "function_call",
}  # fmt: skip
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BREAKPOINT = "prompt_cache_breakpoint"


def check_body(body: Any, target: Target, *, lax: bool = False) -> None:
    """Refuse requests that the API refuses.

    Raises:
        OpenAIRefusal: with the API's message.
    """
    refuse_unless(isinstance(body, dict), "Invalid body: expected an object.", None)
    messages = body.get("messages")
    refuse_unless(
        messages is not None, "Missing required parameter: 'messages'.", "messages",
        "missing_required_parameter",
    )  # fmt: skip
    refuse_unless(
        isinstance(messages, list) and messages,
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        "messages",
        "empty_array",
    )
    if not lax:
        _check_arguments(body, target)
    names = _check_tools(body)
    _check_choice(body, names)
    _check_messages(messages, explicit=target.cache.explicit or lax)


def _check_arguments(body: JSON, target: Target) -> None:
    for name in body:
        refuse_unless(name in _FIELDS, f"Unrecognized request argument supplied: {name}", None)
    if not body.get("stream"):
        refuse_unless(
            body.get("stream_options") is None,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    if target.restricts_tools or re.match(r"o\d", target.model):
        refuse_unless(
            "max_tokens" not in body,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    refuse_unless(
        limit is None or (isinstance(limit, int) and 1 <= limit <= target.max_output),
        f"max_tokens is too large: {limit}. This model supports at most {target.max_output} "
        f"completion tokens, whereas you provided {limit}.",
        "max_tokens",
        "invalid_value",
    )
    temperature = body.get("temperature")
    refuse_unless(
        temperature is None or 0 <= temperature <= 2,
        f"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got "
        f"{temperature} instead.",
        "temperature",
        "decimal_above_max_value",
    )
    refuse_unless(body.get("n") in (None, 1), "This server answers once: 'n' must be 1.", "n")
    key = body.get("prompt_cache_key") or ""
    refuse_unless(
        len(key) <= _LONGEST_KEY,
        f"Invalid 'prompt_cache_key': string too long. Expected a string with maximum length "
        f"{_LONGEST_KEY}, but got a string with length {len(key)} instead.",
        "prompt_cache_key",
        "string_above_max_length",
    )
    options = body.get("prompt_cache_options")
    if options is not None:
        _require_explicit(target.cache.explicit, "prompt_cache_options")
        refuse_unless(
            options.get("mode", "implicit") in ("implicit", "explicit")
            and options.get("ttl", "30m") == "30m",
            f"Invalid value: {json.dumps(options)}. Supported values are: mode 'implicit' and "
            f"'explicit', ttl '30m'.",
            "prompt_cache_options",
            "invalid_value",
        )
    _check_sampling(body, target)
    _check_effort(body.get("reasoning_effort"), target)
    _check_format(body.get("response_format"))
    if (body.get("response_format") or {}).get("type") == "json_object":
        refuse_unless(
            "json" in json.dumps(body["messages"]).lower(),
            "'messages' must contain the word 'json' in some form, to use 'response_format' of "
            "type 'json_object'.",
            "messages",
        )


def _check_sampling(body: JSON, target: Target) -> None:
    """Check the sampling settings, which differ for reasoning models."""
    for name in () if target.takes_sampling else ("temperature", "top_p"):
        refuse_unless(
            body.get(name) in (None, 1),
            f"Unsupported value: '{name}' does not support {body.get(name)} with this model. Only "
            f"the default (1) value is supported.",
            name,
            "unsupported_value",
        )


def _check_effort(effort: Any, target: Target) -> None:
    if effort is None:
        return
    # Reasoning models are those that accept no temperature.
    refuse_unless(
        not target.takes_sampling,
        "Unrecognized request argument supplied: reasoning_effort",
        None,
    )
    *others, last = map(repr, _EFFORTS)
    refuse_unless(
        effort in _EFFORTS,
        f"Invalid value: {effort!r}. Supported values are: {', '.join(others)}, and {last}.",
        "reasoning_effort",
        "invalid_value",
    )


def _require_explicit(is_supported: bool, name: str) -> None:
    refuse_unless(
        is_supported, f"Unsupported parameter: '{name}' is not supported with this model.", name,
        "unsupported_parameter",
    )  # fmt: skip


def _check_format(form: Any) -> None:
    if form is None or form.get("type") in ("text", "json_object"):
        return
    schema = form.get("json_schema") or {}
    refuse_unless(
        form.get("type") == "json_schema" and _NAME.fullmatch(str(schema.get("name", ""))),
        "Invalid 'response_format': expected a 'json_schema' with a name of a-z, A-Z, 0-9, _ or -.",
        "response_format",
        "invalid_value",
    )
    if schema.get("strict"):
        problem = find_schema_problem(schema.get("schema"))
        refuse_unless(
            not problem, f"Invalid schema for response_format '{schema['name']}': {problem}",
            "response_format",
        )  # fmt: skip


def find_schema_problem(schema: Any, where: str = "()") -> str:
    """Return why strict output does not accept a schema; empty if it does."""
    if isinstance(schema, list):
        return next(filter(None, (find_schema_problem(part, where) for part in schema)), "")
    if not isinstance(schema, dict):
        return ""
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return (
                f"In context={where}, 'additionalProperties' is required to be supplied and to be "
                f"false."
            )
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            return (
                f"In context={where}, 'required' is required to be supplied and to be an array "
                f"including every key in properties."
            )
    inner = (find_schema_problem(value, f"({name!r})") for name, value in schema.items())
    return next(filter(None, inner), "")


def _check_tools(body: JSON) -> list[str]:
    tools = body.get("tools")
    if tools is None:
        return []
    refuse_unless(
        isinstance(tools, list) and 1 <= len(tools) <= _MAX_TOOLS,
        f"Invalid 'tools': expected an array of 1 to {_MAX_TOOLS} tools.",
        "tools",
        "empty_array" if not tools else "array_above_max_length",
    )
    names = []
    for index, tool in enumerate(tools):
        place = f"tools[{index}]"
        function = tool.get("function") if tool.get("type") == "function" else None
        refuse_unless(
            isinstance(function, dict), f"Missing required parameter: '{place}.function'.", place,
            "missing_required_parameter",
        )  # fmt: skip
        assert isinstance(function, dict)
        name = str(function.get("name", ""))
        refuse_unless(
            _NAME.fullmatch(name),
            f"Invalid '{place}.function.name': string does not match pattern. Expected a string "
            f"that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            f"{place}.function.name",
            "invalid_value",
        )
        schema = function.get("parameters", {"type": "object", "properties": {}})
        kind = schema.get("type")
        refuse_unless(
            kind == "object" and isinstance(schema.get("properties"), dict),
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: "
            f'"object"\' with properties, got \'type: "{kind}"\'.',
            f"{place}.function.parameters",
            "invalid_function_parameters",
        )
        names.append(name)
    return names


def _check_choice(body: JSON, names: list[str]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    refuse_unless(names, "'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    for name in allowed_tool_names(choice, names):
        refuse_unless(
            name in names, f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice"
        )


def allowed_tool_names(choice: Any, names: list[str]) -> list[str]:
    """Return the tools that may be called."""
    match choice:
        case "none":
            return []
        case {"type": "function", "function": {"name": name}}:
            return [str(name)]
        case {"type": "allowed_tools", "allowed_tools": {"tools": list(tools), "mode": mode}}:
            refuse_unless(
                mode in ("auto", "required") and tools,
                "Invalid 'tool_choice': allowed_tools needs a mode and at least one tool.",
                "tool_choice",
                "invalid_value",
            )
            return [str((tool.get("function") or {}).get("name")) for tool in tools]
        case None | "auto" | "required":
            return names
        case _:
            raise OpenAIRefusal(
                f"Invalid value for 'tool_choice': {json.dumps(choice)}.", "tool_choice",
                "invalid_value",
            )  # fmt: skip


def must_call(choice: Any) -> bool:
    """Return whether a tool choice allows no other answer than a call."""
    match choice:
        case "required" | {"type": "function"} | {"allowed_tools": {"mode": "required"}}:
            return True
        case _:
            return False


def _check_messages(messages: list[Any], *, explicit: bool) -> None:
    waiting: list[str] = []
    call_index = 0
    for index, message in enumerate(messages):
        place = f"messages.[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        refuse_unless(
            role in _ROLES,
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
            f"'function', 'tool', and 'developer'.",
            f"{place}.role",
            "invalid_value",
        )
        if role == "tool":
            call = message.get("tool_call_id")
            refuse_unless(
                call in waiting,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
                f"{place}.role",
            )
            waiting.remove(call)
        else:
            _require_answers(waiting, call_index)
        calls = message.get("tool_calls")
        if role == "assistant" and calls is not None:
            waiting, call_index = _check_calls(calls, place), index
        _check_content(message, str(role), place, explicit=explicit)
    _require_answers(waiting, call_index)


def _require_answers(waiting: list[str], call_index: int) -> None:
    refuse_unless(
        not waiting,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(waiting),
        f"messages.[{call_index + 1}].role",
    )


def _check_calls(calls: Any, place: str) -> list[str]:
    refuse_unless(
        isinstance(calls, list) and calls,
        f"Invalid '{place}.tool_calls': empty array. Expected an array with minimum length 1, but "
        f"got an empty array instead.",
        f"{place}.tool_calls",
        "empty_array",
    )
    for call in calls:
        function = call.get("function") or {}
        refuse_unless(
            call.get("id") and function.get("name"),
            f"Missing required parameter: '{place}.tool_calls'.",
            place,
            "missing_required_parameter",
        )
        refuse_unless(
            isinstance(function.get("arguments"), str),
            f"Invalid type for '{place}.tool_calls[0].function.arguments': expected a string, but "
            f"got an object instead.",
            place,
            "invalid_type",
        )
    ids = [call["id"] for call in calls]
    refuse_unless(len(set(ids)) == len(ids), f"Duplicate ids in '{place}.tool_calls'.", place)
    return ids


def _check_content(message: JSON, role: str, place: str, *, explicit: bool) -> None:
    content = message.get("content")
    where = f"{place}.content"
    if isinstance(content, str) or (content is None and message.get("tool_calls")):
        return
    refuse_unless(
        isinstance(content, list) and content,
        f"Invalid value for 'content': expected a string, got {json.dumps(content)}.",
        where,
    )
    assert isinstance(content, list)
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        refuse_unless(
            kind in _PARTS.get(role, ("text",)),
            f"Invalid value: '{kind}' in a message of role '{role}'.",
            where,
            "invalid_value",
        )
        if kind == "text":
            refuse_unless(
                isinstance(part.get("text"), str), "Expected a string.", where, "invalid_type"
            )
        if kind == "image_url":
            _check_picture((part.get("image_url") or {}).get("url"), where)
        if _BREAKPOINT in part:
            # An assistant's message cannot carry one.
            _require_explicit(explicit and role != "assistant", _BREAKPOINT)
            refuse_unless(
                part[_BREAKPOINT].get("mode") == "explicit", "Invalid value for 'mode'.", where,
                "invalid_value",
            )  # fmt: skip


def _check_picture(url: Any, where: str) -> None:
    refuse_unless(
        isinstance(url, str)
        and re.match(r"https?://|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$", url),
        "You uploaded an unsupported image. Please make sure your image has of one the following "
        "formats: ['png', 'jpeg', 'gif', 'webp'].",
        where,
        "invalid_image_format",
    )
