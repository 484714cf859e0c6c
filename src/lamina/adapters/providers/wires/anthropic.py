"""Encodes requests and decodes replies for Anthropic's messages wire.

Laws: every segment is one block, wherever markers are, so that a cached block is unchanged in the
next request. There are at most four markers: at the ends of the content shared with other sessions,
of the whole front, of the history and of the current turn's additions, and if one is left, of the
shared part of L1. If the end of what the last request left in the cache is out of their reach, one
marks that place, if need be instead of the end of the history. Before anything was shared, the
first two are at the ends of L1 and of L2. All markers in a request ask for the same lifetime, as a
longer one must not follow a shorter one. Tools loaded by results are defined after the list,
deferred: they are not part of the prefix, and carry no marker. Listed tools are not loaded, and
without a list none are; the result then describes in words what was found. A model that binds its
thinking is always asked to drop a block that no longer fits, and to list the dropped blocks: a
block that we should have left out costs its reasoning, not the answer.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct

from lamina.adapters.providers.wires.wire_messages import (
    describe_tool,
    is_blank,
    merge_roles,
    mint_call_id,
    parse_arguments,
    read_reply,
    split_prompt,
    unreadable_reply,
    write_arguments,
)
from lamina.core.codec import mend_text
from lamina.core.values.message import (
    Block,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from lamina.core.values.prompt import Prompt, Segment, ToolReferences
from lamina.core.values.usage import InputTransformation, Usage
from lamina.core.values.wire import Reply, WireRequest

_MARKS = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
# How many blocks back from a marker the cache is searched, including the marker's own. Anthropic
# counts a run of calls or of results once; others who serve its models do not, and neither do we.
_LOOKBACK_BLOCKS = 20
_MAX_MARKERS = 4
# The API requires a limit; above this value the SDK insists on streaming for some models.
_MAX_TOKENS = 8_192
# The setting for bound thinking, and the beta that the API requires for it.
_DROP_BLOCK = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
_BINDING_BETA = "thinking-binding-controls-2026-08-01"
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


def encode(request: WireRequest) -> dict[str, Any]:
    """Return keyword arguments for `client.messages.create`."""
    tools, system, messages = split_prompt(request.prompt)
    marks = _marks(request)
    options = request.options
    body: dict[str, Any] = {
        "model": request.target.model,
        "max_tokens": options.max_tokens or min(_MAX_TOKENS, request.target.max_output),
    }
    late = _late_tools(request.prompt, tools)
    if tools:
        body["tools"] = [describe_tool(tool, "input_schema") for tool in tools]
        body["tools"] += [
            describe_tool(tool, "input_schema") | {"defer_loading": True} for tool in late.values()
        ]
    if system:
        body["system"] = [_part(segment, request, marks, late) for segment in system]
    body["messages"] = [
        {
            "role": message.role,
            "content": [_part(segment, request, marks, late) for segment in message.segments],
        }
        for message in merge_roles(messages)
    ]
    _trim_prefill(body["messages"])
    config: dict[str, Any] = {}
    if request.effort is not None:
        config["effort"] = request.effort
    if options.schema is not None:
        config["format"] = {"type": "json_schema", "schema": deepcopy(options.schema)}
    if config:
        body["output_config"] = config
    if request.target.binds_thinking:
        body["thinking"] = deepcopy(_DROP_BLOCK)
        body["extra_headers"] = {"anthropic-beta": _BINDING_BETA}
    # The SDK's `create` no longer has these arguments; older models still accept one of them.
    if request.target.takes_sampling:
        if options.temperature is not None:
            body["extra_body"] = {"temperature": options.temperature}
        elif options.top_p is not None:
            body["extra_body"] = {"top_p": options.top_p}
    if request.previous is not None:
        # Null only asks for an id with which the next request can be compared.
        body["diagnostics"] = {"previous_message_id": request.previous or None}
    return body


def _late_tools(prompt: Prompt, listed: Sequence[ToolDefinition]) -> dict[str, ToolDefinition]:
    """Return the tools that results load, by name, each as first loaded."""
    late: dict[str, ToolDefinition] = {}
    if listed:
        names = {tool.name for tool in listed}
        for segment in prompt.since(prompt.ends[0]):
            if isinstance(content := segment.content, ToolReferences):
                for tool in content.tools:
                    if tool.name not in names:
                        late.setdefault(tool.name, tool)
    return late


def _marks(request: WireRequest) -> set[int]:
    """Return the segments (by `id`) that carry a marker."""
    prompt = request.prompt
    front, run = len(prompt.front), prompt.cached_run()
    history = front + len(prompt.history)
    ends: dict[str, tuple[int, Segment]] = {}
    reach: tuple[int, Segment] | None = None
    tokens = blocks = 0
    least = request.target.cache.minimum
    for index, segment in enumerate(prompt):
        if index == run:
            break
        tokens += segment.tokens
        if is_blank(segment):
            continue  # not sent
        blocks += 1
        # Half the minimum, as our counts are estimates and an early marker costs nothing. Thinking
        # cannot be marked.
        if 2 * tokens >= least and not isinstance(segment.content, Thinking):
            place: str = segment.layer if index < front else "turn"
            place = "history" if front <= index < history else place
            if segment.shared and place == "L1":
                ends["head"] = (blocks, segment)
            place = "shared" if segment.shared and place != "tools" else place
            ends[place] = (blocks, segment)
            if index < request.held:
                reach = (blocks, segment)
    ends.pop("tools", None)  # L1 follows directly and covers them
    if "shared" in ends:
        # After the shared content, the last of these: there the front ends.
        behind = sorted({"L1", "L2"} & ends.keys(), key=lambda layer: ends[layer][0])
        for layer in behind[:-1]:
            ends.pop(layer)
        if ends.get("head") == ends["shared"] or len(ends) > _MAX_MARKERS:
            ends.pop("head", None)
    if reach is not None:
        near = min((end - reach[0] for end, _ in ends.values() if end >= reach[0]), default=0)
        if near >= _LOOKBACK_BLOCKS:
            ends["held"] = reach
            ends.pop("head", None)
            if len(ends) > _MAX_MARKERS:
                ends.pop("history")  # the new content ends after it, with the turn
    return {id(segment) for _, segment in ends.values()}


def _part(
    segment: Segment, request: WireRequest, marks: set[int], late: Mapping[str, ToolDefinition]
) -> dict[str, Any]:
    if isinstance(content := segment.content, ToolReferences):
        part = _references(content, late)
    else:
        part = _content(segment, request)
    if id(segment) in marks:
        part["cache_control"] = dict(_MARKS[request.cache_ttl])
    return part


def _content(segment: Segment, request: WireRequest) -> dict[str, Any]:
    match request.shown(segment.content):
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(picture=picture):
            data = b64encode(request.blobs[picture.digest]).decode()
            source = {"type": "base64", "media_type": picture.media_type, "data": data}
            return {"type": "image", "source": source}
        case ToolCall(id=call, name=name, arguments=arguments):
            fields = parse_arguments(arguments)
            return {"type": "tool_use", "id": _safe_id(call), "name": name, "input": fields}
        case ToolResult(call_id=call, text=text, is_error=is_error):
            return _result(_safe_id(call), text, is_error)
        case Thinking(redacted=thought_data) if thought_data:
            return {"type": "redacted_thinking", "data": thought_data}
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case other:
            raise AssertionError(f"{type(other).__name__} does not stand in a message")


def _references(content: ToolReferences, late: Mapping[str, ToolDefinition]) -> dict[str, Any]:
    """Return a result that loads tools. It names the tools and contains nothing else: the API
    documents no result that does both."""
    names = [tool.name for tool in content.tools if late.get(tool.name) == tool]
    result = _result(_safe_id(content.call_id), content.text, is_error=False)
    if names:
        result["content"] = [{"type": "tool_reference", "tool_name": name} for name in names]
    return result


def _result(call: str, text: str, is_error: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
    if text.strip():
        result["content"] = text
    elif is_error:
        result["content"] = "failed without a message"  # an error must have content
    return result | {"is_error": True} if is_error else result


def _safe_id(call: str) -> str:
    """Replace characters in other vendors' ids that Anthropic refuses."""
    return _NOT_IN_IDS.sub("_", call)


def _trim_prefill(messages: list[dict[str, Any]]) -> None:
    """Strip trailing white space: a request must not end with it in the assistant's text."""
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        if last["type"] == "text":
            last["text"] = last["text"].rstrip()


# -- replies -------------------------------------------------------------------------------------


class _Block(Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _CacheCreation(Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _CacheCreation | None = None


class _Reason(Struct):
    type: str
    cache_missed_input_tokens: int | None = None


class _Diagnostics(Struct):
    # Null while the provider is still comparing.
    cache_miss_reason: _Reason | None = None


class _Transformation(Struct):
    type: str = ""
    path: str | None = None
    reason: str | None = None


class _Message(Struct):
    content: list[_Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    diagnostics: _Diagnostics | None = None
    input_transformations: list[_Transformation] | None = None


def decode(reply: object) -> Reply:
    """Decode a message.

    Raises:
        ReplyError: `reply` is not a message.
    """
    what = "an Anthropic message"
    message = read_reply(reply, _Message, what)
    blocks: list[Block] = []
    for index, part in enumerate(message.content):
        match part.type:
            case "text":
                blocks.append(Text(mend_text(part.text or "")))
            case "tool_use":
                if not part.name:
                    raise unreadable_reply(reply, what, f"the call in block {index} has no name")
                arguments = write_arguments(part.input)
                call = part.id or mint_call_id(index, message.id or "", part.name, arguments)
                blocks.append(
                    ToolCall(id=mend_text(call), name=mend_text(part.name), arguments=arguments)
                )
            case "thinking":
                blocks.append(
                    Thinking(
                        text=mend_text(part.thinking or ""),
                        signature=mend_text(part.signature or ""),
                        provider="anthropic",
                    )
                )
            case "redacted_thinking":
                data = mend_text(part.data or "")
                blocks.append(Thinking(redacted=data, provider="anthropic"))
            case _:
                pass  # from tools that the vendor runs, which we never request
    stop = mend_text(message.stop_reason or "")
    return Reply(
        blocks=tuple(blocks) or (Text(""),),
        usage=_usage(message.usage),
        stop=stop,
        model=mend_text(message.model or ""),
        complete=bool(stop),
        id=mend_text(message.id or ""),
        missed=_miss_reason(message.diagnostics),
        transformations=tuple(
            InputTransformation(
                kind=mend_text(change.type),
                path=mend_text(change.path or ""),
                reason=mend_text(change.reason or ""),
            )
            for change in message.input_transformations or ()
        ),
    )


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage(cache_reported=False)
    read_tokens, written_tokens = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    split = usage.cache_creation
    return Usage(
        input=(usage.input_tokens or 0) + (read_tokens or 0) + (written_tokens or 0),
        cached=read_tokens or 0,
        written=written_tokens or 0,
        output=usage.output_tokens or 0,
        cache_reported=read_tokens is not None,
        written_long=(split.ephemeral_1h_input_tokens or 0) if split else 0,
    )


def _miss_reason(diagnostics: _Diagnostics | None) -> str:
    reason = diagnostics.cache_miss_reason if diagnostics else None
    if reason is None:
        return ""
    tokens = reason.cache_missed_input_tokens
    return mend_text(reason.type) + (f", about {tokens:,} tokens" if tokens else "")
