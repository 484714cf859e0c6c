"""Refuses requests and blocks that Anthropic's API refuses, using the API's wording.

Laws: a request that passes here is one that the API accepts; nothing more is required than the API
requires. Thinking that this server signed must come back unchanged. Another server's signature
cannot be judged here, and is accepted if it could be one at all.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from lamina.core.values.settings import Target
from lamina.emulators.anthropic.blocks import as_blocks, late_tools, referenced_tools
from lamina.emulators.anthropic.bound_thinking import check_controls, is_own, read_signature
from lamina.emulators.anthropic.refusals import AnthropicRefusal, refuse_unless

JSON = Mapping[str, Any]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# The minimum length of a signature.
_SHORTEST_SIGNATURE = 64
# Results of tools that Anthropic runs itself.
_VENDOR_RESULTS = (
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
    "tool_search_tool_result", "advisor_tool_result",
)  # fmt: skip
_FIELDS: dict[str, set[str]] = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control"},
    "tool_use": {"id", "name", "input", "cache_control", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "search_result": {"source", "title", "content", "citations", "cache_control"},
    "container_upload": {"file_id", "cache_control"},
    "tool_reference": {"tool_name", "cache_control"},
    "server_tool_use": {"id", "name", "input", "cache_control", "caller"},
    "mcp_tool_use": {"id", "name", "server_name", "input", "cache_control"},
    **{kind: {"tool_use_id", "content", "cache_control", "caller"} for kind in _VENDOR_RESULTS},
    "mcp_tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
}
_ROLE_BLOCKS = {
    "system": {"text"},
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {
        "text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use",
        "mcp_tool_result", "container_upload", *_VENDOR_RESULTS,
    },
    "tool_result": {"text", "image", "document", "search_result", "tool_reference"},
}  # fmt: skip
_MEDIA = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_DOCUMENTS = {
    "base64": "application/pdf", "text": "text/plain", "content": None, "url": None, "file": None,
}  # fmt: skip


def check_block(block: JSON, role: str, at: str) -> None:
    """Refuse a block that does not belong to `role`, or that the API would not accept."""
    refuse_unless(isinstance(block, dict), f"{at}: Input should be a valid dictionary")
    kind = block.get("type")
    refuse_unless(
        kind in _ROLE_BLOCKS[role],
        f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
        + ", ".join(repr(tag) for tag in sorted(_ROLE_BLOCKS[role])),
    )
    extra = sorted(set(block) - _FIELDS[str(kind)] - {"type"})
    refuse_unless(not extra, f"{at}.{kind}.{''.join(extra[:1])}: Extra inputs are not permitted")
    check_control(block, at)
    match kind:
        case "text":
            _check_text(block, at)
        case "image":
            _check_picture(block.get("source") or {}, at)
        case "tool_use":
            ids = f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            refuse_unless(_NAME.fullmatch(str(block.get("id", ""))), ids)
            refuse_unless(
                isinstance(block.get("input"), dict),
                f"{at}.tool_use.input: Input should be a valid dictionary",
            )
        case "tool_result":
            content = block.get("content")
            refuse_unless(
                content or not block.get("is_error"),
                f"{at}.tool_result: content cannot be empty if `is_error` is true",
            )
            for place, inside in enumerate(as_blocks(content or ())):
                check_block(inside, "tool_result", f"{at}.tool_result.content.{place}")
        case "thinking":
            _check_thinking(block, at)
        case "redacted_thinking":
            refuse_unless(
                not is_own(str(block.get("data", ""))) or read_signature(block),
                f"{at}: Invalid `data` in `redacted_thinking` block",
            )
        case "document":
            _check_document(block.get("source") or {}, at)
        case _:
            pass


def _check_text(block: JSON, at: str) -> None:
    text = block.get("text")
    refuse_unless(isinstance(text, str), f"{at}.text.text: Field required")
    if not text:
        refuse_unless(
            "cache_control" not in block,
            f"{at}.text: cache_control cannot be set for empty text blocks",
        )
        raise AnthropicRefusal("messages: text content blocks must be non-empty")
    refuse_unless(
        str(text).strip(), "messages: text content blocks must contain non-whitespace text"
    )


def _check_thinking(block: JSON, at: str) -> None:
    signature = block.get("signature")
    refuse_unless(signature, f"{at}.thinking.signature: Field required")
    signature = str(signature)
    refuse_unless(
        read_signature(block)
        if is_own(signature)
        else len(signature) >= _SHORTEST_SIGNATURE and _is_base64(signature),
        f"{at}: Invalid `signature` in `thinking` block",
    )


def _check_document(source: JSON, at: str) -> None:
    kind = source.get("type")
    refuse_unless(
        kind in _DOCUMENTS,
        f"{at}.document.source: Input tag '{kind}' found using 'type' does not match any of the "
        f"expected tags: {', '.join(map(repr, sorted(_DOCUMENTS)))}",
    )
    media = _DOCUMENTS[str(kind)]
    refuse_unless(
        media is None or source.get("media_type") == media,
        f"{at}.document.source.{kind}.media_type: Input should be '{media}'",
    )
    if kind == "base64":
        data = _read_base64(source.get("data"), f"{at}.document.source")
        refuse_unless(data.startswith(b"%PDF"), f"{at}.document.source: The PDF is not valid.")


def _check_picture(source: JSON, at: str) -> None:
    if source.get("type") in ("url", "file"):
        return
    refuse_unless(
        source.get("type") == "base64",
        f"{at}.image.source: Input tag '{source.get('type')}' found using 'type' does not match "
        f"any of the expected tags: 'base64', 'file', 'url'",
    )
    media = str(source.get("media_type"))
    refuse_unless(
        media in _MEDIA,
        f"{at}.image.source.base64.media_type: Input should be "
        + ", ".join(repr(media_type) for media_type in _MEDIA),
    )
    data = _read_base64(source.get("data"), f"{at}.image.source")
    refuse_unless(data.startswith(_MEDIA[media]), "Could not process image")


def _read_base64(data: Any, at: str) -> bytes:
    try:
        return b64decode(str(data or ""), validate=True)
    except NotBase64:
        raise AnthropicRefusal(f"{at}.base64.data: Invalid base64 data") from None


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except NotBase64:
        return False
    return True


def check_control(block: JSON, at: str) -> None:
    """Refuse an invalid marker."""
    control = block.get("cache_control")
    if control is None:
        return
    refuse_unless(
        isinstance(control, dict) and control.get("type") == "ephemeral",
        f"{at}.cache_control.type: Input should be 'ephemeral'",
    )
    extra = sorted(set(control) - {"type", "ttl"})
    refuse_unless(
        not extra, f"{at}.cache_control.{''.join(extra[:1])}: Extra inputs are not permitted"
    )
    refuse_unless(
        control.get("ttl", "5m") in ("5m", "1h"),
        f"{at}.cache_control.ttl: Input should be '5m' or '1h'",
    )


MAX_MARKERS = 4
_ORDER = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that "
    "blocks are processed in the following order: `tools`, `system`, `messages`."
)
# Tools that Anthropic defines, and mostly runs; each version has its own fields.
_VENDOR_TOOL = re.compile(
    r"(web_search|web_fetch|code_execution|bash|text_editor|memory|computer|advisor"
    r"|tool_search_tool_(bm25|regex)|(browser|computer)_toolset)_\d{8}|mcp_toolset"
)
_TOP_FIELDS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "cache_control",
    "diagnostics", "output_config", "temperature", "top_p", "top_k", "stop_sequences", "stream",
    "thinking", "metadata", "service_tier", "container", "inference_geo", "speed",
    "context_management", "mcp_servers", "thread",
}  # fmt: skip
# The parameters that `count_tokens` accepts.
COUNTED_FIELDS = {
    "model", "messages", "system", "tools", "tool_choice", "cache_control", "output_config",
    "thinking", "speed", "context_management", "mcp_servers",
}  # fmt: skip
_TOOL_FIELDS = {
    "name", "description", "input_schema", "cache_control", "type", "strict", "defer_loading",
    "allowed_callers", "eager_input_streaming", "input_examples",
}  # fmt: skip
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CHOICES = ("auto", "any", "tool", "none")


def check_body(
    body: JSON, target: Target, *, counting: bool = False, has_binding_beta: bool = False
) -> None:
    """Refuse a request that the API refuses.

    Raises:
        AnthropicRefusal: with the API's words.
    """
    for name in ("model", "messages") if counting else ("model", "max_tokens", "messages"):
        refuse_unless(name in body, f"{name}: Field required")
    for name in body:
        known_fields = COUNTED_FIELDS if counting else _TOP_FIELDS
        refuse_unless(name in known_fields, f"{name}: Extra inputs are not permitted")
    if not counting:
        _check_limits(body, target)
    names = _check_tools(body.get("tools") or ())
    _check_choice(body.get("tool_choice"), names)
    for index, block in enumerate(as_blocks(body.get("system") or ())):
        check_block(block, "system", f"system.{index}")
    messages = body["messages"]
    refuse_unless(isinstance(messages, list), "messages: Input should be a valid list")
    refuse_unless(messages, "messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(index, message, last=index == len(messages) - 1)
    refuse_unless(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    _check_late_tools(body, target)
    _check_pairs(messages)
    _check_prefill(messages[-1])
    _check_markers(body)
    check_controls(body, target, has_beta=has_binding_beta)


def _check_limits(body: JSON, target: Target) -> None:
    limit = body["max_tokens"]
    refuse_unless(
        isinstance(limit, int) and limit >= 0, "max_tokens: Input should be a valid integer"
    )
    refuse_unless(
        limit <= target.max_output,
        f"max_tokens: {limit} > {target.max_output}, which is the maximum allowed number of output "
        f"tokens for {target.model}",
    )
    heat = body.get("temperature")
    refuse_unless(heat is None or 0 <= heat <= 1, "temperature: range: 0..1")
    config = body.get("output_config") or {}
    for name in config:
        refuse_unless(
            name in ("effort", "format"), f"output_config.{name}: Extra inputs are not permitted"
        )
    effort = config.get("effort")
    refuse_unless(
        effort is None or effort in _EFFORTS,
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    )
    refuse_unless(
        effort is None or target.taken_effort(effort) is not None,
        "This model does not support the effort parameter.",
    )
    form = config.get("format")
    if form is not None:
        refuse_unless(
            form.get("type") == "json_schema" and isinstance(form.get("schema"), dict),
            "output_config.format.schema: Field required",
        )
    diagnostics = body.get("diagnostics")
    refuse_unless(
        diagnostics is None or set(diagnostics) <= {"previous_message_id"},
        "diagnostics: Extra inputs are not permitted",
    )


def _check_tools(tools: Sequence[JSON]) -> set[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        at = f"tools.{index}.custom"
        if tool.get("type", "custom") != "custom":
            _check_vendor_tool(tool, f"tools.{index}")
            names.add(str(tool.get("name", "")))
            continue
        extra = sorted(set(tool) - _TOOL_FIELDS)
        refuse_unless(not extra, f"{at}.{''.join(extra[:1])}: Extra inputs are not permitted")
        name = tool.get("name")
        refuse_unless(
            isinstance(name, str) and _NAME.fullmatch(name),
            f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
        )
        refuse_unless(name not in names, "tools: Tool names must be unique.")
        names.add(str(name))
        schema = tool.get("input_schema")
        refuse_unless(isinstance(schema, dict), f"{at}.input_schema: Field required")
        assert isinstance(schema, dict)
        refuse_unless(
            schema.get("type") == "object", f"{at}.input_schema.type: Input should be 'object'"
        )
        check_control(tool, at)
    return names


def _check_late_tools(body: JSON, target: Target) -> None:
    """Check that deferred tools have no marker, that some tool is not deferred, and that the tools
    that results name are defined."""
    tools = body.get("tools") or ()
    late = late_tools(body)
    refuse_unless(
        not late or target.loads_tools, f"tools: defer_loading is not supported on {target.model}"
    )
    refuse_unless(
        not late or any(not tool.get("defer_loading") for tool in tools),
        "At least one tool must have defer_loading=false. All tools cannot be deferred.",
    )
    for name, tool in late.items():
        refuse_unless(
            not tool.get("cache_control"),
            f"Tool '{name}' cannot have both defer_loading=true and cache_control set. Tools with "
            f"defer_loading cannot use prompt caching.",
        )
    for message in body["messages"]:
        for block in as_blocks(message["content"]):
            for name in referenced_tools(block):
                refuse_unless(name in late, f"Tool reference '{name}' not found in available tools")


def _check_vendor_tool(tool: JSON, at: str) -> None:
    kind = str(tool["type"])
    refuse_unless(
        _VENDOR_TOOL.fullmatch(kind),
        f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
    )
    refuse_unless("toolset" in kind or tool.get("name"), f"{at}.{kind}.name: Field required")
    check_control(tool, at)


def _check_choice(choice: Any, names: set[str]) -> None:
    if choice is None:
        return
    refuse_unless(
        choice.get("type") in _CHOICES, "tool_choice: Input tag is not one of the expected"
    )
    refuse_unless(names or choice["type"] == "none", "tool_choice may only be specified with tools")
    if choice["type"] == "tool":
        refuse_unless(
            choice.get("name") in names, f"Tool '{choice.get('name')}' not found in tools"
        )


def _check_message(index: int, message: JSON, *, last: bool) -> None:
    at = f"messages.{index}"
    refuse_unless(isinstance(message, dict), f"{at}: Input should be a valid dictionary")
    role = message.get("role")
    refuse_unless(
        role in ("user", "assistant"), f"{at}.role: Input should be 'user' or 'assistant'"
    )
    extra = sorted(set(message) - {"role", "content"})
    refuse_unless(not extra, f"{at}.{''.join(extra[:1])}: Extra inputs are not permitted")
    content = message.get("content")
    refuse_unless(content is not None, f"{at}.content: Field required")
    empty_end = last and role == "assistant"
    refuse_unless(
        content or empty_end,
        f"{at}: all messages must have non-empty content except for the optional final assistant "
        f"message",
    )
    for place, block in enumerate(as_blocks(content)):
        check_block(block, str(role), f"{at}.content.{place}")


def _check_pairs(messages: Sequence[JSON]) -> None:
    """Check that every call has its result at the beginning of the next message."""
    past_ids: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(_merge_messages(messages)):
        blocks = list(as_blocks(message["content"]))
        results = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
        unknown_ids = [result for result in results if result not in waiting]
        refuse_unless(
            not unknown_ids,
            f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{', '.join(unknown_ids)}. Each `tool_result` block must have a corresponding "
            f"`tool_use` block in the previous message.",
        )
        missing = [call_id for call_id in waiting if call_id not in results]
        refuse_unless(
            not missing,
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            f"corresponding `tool_result` block in the next message.",
        )
        refuse_unless(
            len(set(results)) == len(results),
            f"messages.{index}: each tool_use must have a single result. Found multiple "
            f"`tool_result` blocks",
        )
        heads = [block["type"] for block in blocks[: len(results)]]
        refuse_unless(
            all(kind == "tool_result" for kind in heads),
            f"messages.{index}: `tool_result` blocks must come first in the content",
        )
        waiting = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        twice = len(set(waiting)) < len(waiting) or bool(past_ids & set(waiting))
        refuse_unless(not twice, f"messages.{index}: `tool_use` ids must be unique")
        past_ids |= set(waiting)
    refuse_unless(
        not waiting,
        f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks "
        f"immediately after: {', '.join(waiting)}. Each `tool_use` block must have a corresponding "
        f"`tool_result` block in the next message.",
    )


def _merge_messages(messages: Sequence[JSON]) -> Iterator[JSON]:
    """Merge neighbours with the same role into one message, as the API does."""
    for role, group in groupby(messages, lambda message: message["role"]):
        contents = (as_blocks(message["content"]) for message in group)
        yield {"role": role, "content": list(chain.from_iterable(contents))}


def _check_prefill(message: JSON) -> None:
    blocks = list(as_blocks(message["content"]))
    if message["role"] == "assistant" and blocks and blocks[-1]["type"] == "text":
        text = blocks[-1]["text"]
        refuse_unless(
            text == text.rstrip(),
            "messages: final assistant content cannot end with trailing whitespace",
        )


# -- markers -------------------------------------------------------------------------------------


def _check_markers(body: JSON) -> None:
    markers = list(_markers(body))
    refuse_unless(
        len(markers) <= MAX_MARKERS,
        f"A maximum of {MAX_MARKERS} blocks with cache_control may be provided. Found "
        f"{len(markers)}.",
    )
    short = False
    for at, ttl in markers:
        refuse_unless(not (short and ttl == "1h"), f"{at}.cache_control.ttl: {_ORDER}")
        short = short or ttl == "5m"


def _markers(body: JSON) -> Iterator[tuple[str, str]]:
    """Yield the positions of the markers, in prefix order, and their lifetimes; the automatic one
    comes last."""

    def mark(block: JSON, at: str) -> Iterator[tuple[str, str]]:
        if control := block.get("cache_control"):
            yield at, control.get("ttl", "5m")
        if block.get("type") == "tool_result":
            for place, inside in enumerate(as_blocks(block.get("content") or ())):
                yield from mark(inside, f"{at}.tool_result.content.{place}")

    for index, tool in enumerate(body.get("tools") or ()):
        yield from mark(tool, f"tools.{index}")
    for index, block in enumerate(as_blocks(body.get("system") or ())):
        yield from mark(block, f"system.{index}")
    for index, message in enumerate(body["messages"]):
        for place, block in enumerate(as_blocks(message["content"])):
            yield from mark(block, f"messages.{index}.content.{place}")
    if control := body.get("cache_control"):
        check_control(body, "")
        yield "cache_control", control.get("ttl", "5m")
