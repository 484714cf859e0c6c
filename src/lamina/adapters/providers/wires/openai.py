"""Encodes requests and decodes replies for OpenAI's chat completions wire, also used by vLLM,
llama.cpp, Ollama and LiteLLM.

Laws: a marker changes nothing but itself, so that cached content is unchanged in the next request.
Where caches are written only at markers, there are at most four: at the ends of the content shared
with other sessions and of the whole front (before anything was shared, of L1 and of L2), at the end
of what the previous request left in the cache, and at the point where the next one continues; and
if one is left, where the shared part of L1 ends, or where the library ended before it grew. Other
servers get nothing specific to OpenAI.
"""

from base64 import b64encode
from collections.abc import Iterable
from copy import deepcopy
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

from msgspec import Struct

from lamina.adapters.providers.wires.wire_messages import (
    WireMessage,
    describe_tool,
    is_blank,
    join_text,
    mint_call_id,
    read_reply,
    single_text,
    split_prompt,
    unreadable_reply,
    write_arguments,
)
from lamina.core.codec import mend_text
from lamina.core.values.message import Block, Image, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.prompt import Segment
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, WireRequest

_MARK = {"mode": "explicit"}
# The only available lifetime; stated, as sessions rely on it.
_CACHE_OPTIONS = {"mode": "explicit", "ttl": "30m"}
_MAX_MARKERS = 4
# Our counts are estimates if there are tools or pictures.
_NEARLY = 0.9
_LONGEST_KEY = 64
_SCHEMA_NAME = "answer"


def encode(request: WireRequest) -> dict[str, Any]:
    """Return keyword arguments for `client.chat.completions.create`."""
    tools, system, messages = split_prompt(request.prompt)
    own = request.target.provider == "openai"
    marks = _marks(request) if own and request.target.cache.explicit else None
    wire: list[dict[str, Any]] = []
    if system:
        wire.append({"role": "system", "content": _system(system, marks)})
    for message in messages:
        wire.extend(_encode_message(message, request, marks))
    body: dict[str, Any] = {"model": request.target.model, "messages": wire}
    if tools:
        body["tools"] = [
            {"type": "function", "function": describe_tool(tool, "parameters")} for tool in tools
        ]
        if request.allowed_tools is not None and request.target.bars_tools:
            tool_names = {tool.name for tool in tools}
            body["tool_choice"] = _choice([n for n in request.allowed_tools if n in tool_names])
    _encode_options(body, request, own=own)
    if own and (key := request.routing_key or request.cache_key):
        body["prompt_cache_key"] = _short_key(key)
    if marks is not None:
        # Otherwise content that the next request drops would be written, too, at a price.
        body["prompt_cache_options"] = dict(_CACHE_OPTIONS)
    return body


def _encode_options(body: dict[str, Any], request: WireRequest, *, own: bool) -> None:
    options = request.options
    if options.temperature is not None and request.target.takes_sampling:
        body["temperature"] = options.temperature
    if options.top_p is not None and request.target.takes_sampling:
        body["top_p"] = options.top_p
    if options.max_tokens is not None:
        body["max_completion_tokens" if own else "max_tokens"] = options.max_tokens
    if request.effort is not None:
        body["reasoning_effort"] = request.effort
    if options.schema is not None:
        form = {
            "name": _SCHEMA_NAME,
            "schema": deepcopy(options.schema),
            "strict": _is_strict(options.schema),
        }
        body["response_format"] = {"type": "json_schema", "json_schema": form}


def _choice(names: list[str]) -> Any:
    """Return a restriction of the tools, which themselves stay unchanged at the front."""
    if not names:
        return "none"
    entries = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": entries}}


def _is_strict(schema: Any) -> bool:
    """Return whether a schema leaves nothing open: only then can it be enforced."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        property_names = set(schema.get("properties", ()))
        if schema.get("additionalProperties") is not False or property_names != set(
            schema.get("required", ())
        ):
            return False
    return all(map(_is_strict, schema.values()))


def _short_key(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else sha256(key.encode()).hexdigest()


# -- breakpoints ---------------------------------------------------------------------------------


def _marks(request: WireRequest) -> set[int]:
    """Return the segments (by `id`) whose end is marked. Cached content is found only if marked
    again, so two ends are marked: of the next request's prefix, and of what the previous request
    left in the cache. If the latter is unknown, it is before the assistant's latest message or
    where the history ends."""
    prompt = request.prompt
    front, run = len(prompt.front), prompt.cached_run()
    turn = front + len(prompt.history)
    visible = [(index, segment) for index, segment in enumerate(prompt) if not is_blank(segment)]
    fronts: list[Segment] = []
    stops: list[Segment] = []
    cached_end: Segment | None = None
    goes_on = False
    tokens = last = 0
    for (index, segment), (_, following) in pairwise([*visible, (len(prompt), None)]):
        assert segment is not None
        if index >= run:
            break
        goes_on = goes_on and not last < turn <= index
        last = index
        tokens += segment.tokens
        if tokens < _NEARLY * request.target.cache.minimum:
            continue
        if index < front:
            fronts.append(segment)
        elif segment.role == "assistant":
            goes_on = False
        elif _ends_message(segment, following):
            # A run of results and questions is sent together: it ends where its last element does.
            stops[-1 if goes_on else len(stops) :] = [segment]
            goes_on = True
        if index < request.held:
            # If the library has changed since, this is the last unchanged place.
            cached_end = stops[-1] if stops else segment if segment.layer == "L2" else None
    marks = [*_front_ends(fronts), *stops[-1:]]
    library = [segment for segment in fronts if segment.layer == "L2"]
    head = [segment for segment in fronts if segment.shared and segment.layer == "L1"][-1:]
    spares = ([cached_end] if cached_end else stops[-2:-1], head, library[-2:-1])
    for spare in spares:
        marks += spare if len({*map(id, marks)}) < _MAX_MARKERS else ()
    return {id(segment) for segment in marks}


def _front_ends(fronts: list[Segment]) -> list[Segment]:
    """Return the ends of the shared content and of the whole front; or else, of L1 and of L2. Tools
    cannot be marked, and L1 follows them directly."""
    fronts = [segment for segment in fronts if segment.layer != "tools"]
    if shared := [segment for segment in fronts if segment.shared]:
        return [shared[-1], *([] if fronts[-1].shared else fronts[-1:])]
    layers = ([segment for segment in fronts if segment.layer == name] for name in ("L1", "L2"))
    return [segment for layer in layers for segment in layer[-1:]]


def _ends_message(segment: Segment, following: Segment | None) -> bool:
    """Return whether a wire message ends here and can be marked. Each result is a message, but
    blank ones cannot be marked."""
    if isinstance(segment.content, ToolResult):
        return bool(segment.text.strip())
    if following is None:
        return True
    return (following.message, following.role) != (segment.message, segment.role)


def _system(segments: list[Segment], marks: set[int] | None) -> str | list[dict[str, Any]]:
    """Return one string; if markers are in use, a part for L1 (or for its shared and its personal
    portion), and one for every library item."""
    if marks is None:
        return join_text(segments)
    groups: list[list[Segment]] = []
    for (layer, _), run in groupby(segments, key=lambda segment: (segment.layer, segment.shared)):
        members = list(run)
        groups += [members] if layer == "L1" else [[segment] for segment in members]
    return [_part(join_text(group), group, marks) for group in groups]


# -- messages ------------------------------------------------------------------------------------


def _encode_message(
    message: WireMessage, request: WireRequest, marks: set[int] | None
) -> list[dict[str, Any]]:
    segments = message.segments
    if (text := single_text(segments)) is not None and message.role != "tool":
        content = text if message.role == "assistant" else _text_content(text, segments, marks)
        return [{"role": message.role, "content": content}]
    match message.role:
        case "tool":
            return [
                {
                    "role": "tool",
                    "tool_call_id": segment.content.call_id,
                    "content": _text_content(segment.content.text, (segment,), marks),
                }
                for segment in segments
                if isinstance(segment.content, ToolResult)
            ]
        case "assistant":
            return [_assistant(message)]
        case _:
            return [{"role": message.role, "content": _user(segments, request, marks)}]


def _assistant(message: WireMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": join_text(message.segments)}
    calls = [s.content for s in message.segments if isinstance(s.content, ToolCall)]
    if calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    return wire


def _user(
    segments: tuple[Segment, ...], request: WireRequest, marks: set[int] | None
) -> str | list[dict[str, Any]]:
    if not any(isinstance(segment.content, Image) for segment in segments):
        # One string: servers join parts in different ways.
        return _text_content(join_text(segments), segments, marks)
    parts: list[dict[str, Any]] = []
    for segment in segments:
        match request.shown(segment.content):
            case Text(text=text) if parts and parts[-1]["type"] == "text":
                parts[-1]["text"] += text
            case Text(text=text):
                parts.append({"type": "text", "text": text})
            case Image(picture=picture):
                data = b64encode(request.blobs[picture.digest]).decode()
                url = f"data:{picture.media_type};base64,{data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    if _is_marked(segments, marks):
        parts[-1]["prompt_cache_breakpoint"] = dict(_MARK)
    return parts


def _text_content(
    text: str, segments: Iterable[Segment], marks: set[int] | None
) -> str | list[dict[str, Any]]:
    """Return text content; if markers are in use, always as a part, so that marking it changes
    nothing else. A part must not be blank."""
    if marks is None or not text.strip():
        return text
    return [_part(text, segments, marks)]


def _part(text: str, segments: Iterable[Segment], marks: set[int]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": text}
    return part | {"prompt_cache_breakpoint": dict(_MARK)} if _is_marked(segments, marks) else part


def _is_marked(segments: Iterable[Segment], marks: set[int] | None) -> bool:
    return bool(marks) and any(id(segment) in (marks or ()) for segment in segments)


# -- replies -------------------------------------------------------------------------------------


class _Function(Struct):
    name: str
    # A string by the specification; some servers send an object.
    arguments: str | dict[str, Any] | None = None


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Message(Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    # DeepSeek, vLLM and llama.cpp use the former, OpenRouter and Ollama the latter.
    reasoning_content: str | None = None
    reasoning: Any = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Completion(Struct):
    choices: list[_Choice]
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


def decode(reply: object) -> Reply:
    """Decode a chat completion.

    Raises:
        ReplyError: `reply` is not a chat completion.
    """
    what = "a chat completion"
    completion = read_reply(reply, _Completion, what)
    if not completion.choices:
        raise unreadable_reply(reply, what, "it has no choices")
    choice = completion.choices[0]
    stop = mend_text(choice.finish_reason or "")
    return Reply(
        blocks=tuple(_blocks(choice.message, completion.id or "")),
        usage=_usage(completion.usage),
        stop=stop,
        model=mend_text(completion.model or ""),
        complete=bool(stop),
        id=mend_text(completion.id or ""),
    )


def _blocks(message: _Message, completion: str) -> list[Block]:
    blocks: list[Block] = []
    reasoning = message.reasoning_content or message.reasoning
    if isinstance(reasoning, str) and reasoning:
        blocks.append(Thinking(text=mend_text(reasoning), provider="openai"))
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content if part.type == "text")
    text = content or message.refusal or ""
    calls = message.tool_calls or []
    if text or not calls:
        blocks.append(Text(mend_text(text)))
    for index, call in enumerate(calls):
        name, arguments = call.function.name, call.function.arguments
        if not isinstance(arguments, str):
            arguments = write_arguments(arguments)
        blocks.append(
            ToolCall(
                id=mend_text(call.id or mint_call_id(index, completion, name, arguments)),
                name=mend_text(name),
                arguments=mend_text(arguments or "{}"),
            )
        )
    return blocks


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage(cache_reported=False)
    details = usage.prompt_tokens_details or _Details()
    return Usage(
        input=usage.prompt_tokens or 0,
        cached=details.cached_tokens or 0,
        written=details.cache_write_tokens or 0,
        output=usage.completion_tokens or 0,
        cache_reported=details.cached_tokens is not None,
    )
