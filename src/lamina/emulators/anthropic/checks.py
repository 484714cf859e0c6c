"""What Anthropic's API refuses, and in which words.

Law: a request that passes here is one that the API takes; what it would not say, this does not
require.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from lamina.core.values.settings import Target
from lamina.emulators.anthropic.block_checks import check_block, check_control
from lamina.emulators.anthropic.blocks import as_blocks, late_tools, referenced_tools
from lamina.emulators.anthropic.bound_thinking import check_controls
from lamina.emulators.anthropic.refusals import refuse_unless

JSON = Mapping[str, Any]
MAX_MARKERS = 4
_ORDER = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that "
    "blocks are processed in the following order: `tools`, `system`, `messages`."
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# Tools that Anthropic defines, and mostly runs; each version has fields of its own.
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
# What `count_tokens` takes.
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
    """Refuses what the API refuses.

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
    """What is deferred has no marker and stands beside a tool that is not, and what a result names
    is defined."""
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
    """Every call has its result at the beginning of the next message."""
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
    """Neighbours with the same role as one message, as the API takes them."""
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
    """Where the markers are, in the order of the prefix, and their lifetimes; the automatic one
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
