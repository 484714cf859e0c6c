"""Encodes requests and decodes replies for Gemini's generateContent wire, and plans an explicit
cache if one pays.

Laws: content that the model signed is sent back unchanged. A signature is on the part it signs: a
thought, a call, or a text, after which we keep it as a thought without words. If a model requires
signed calls, the first call in each group made by another model states that it is not signed.
Implicit caching needs nothing but stable bytes; for an explicit cache the request says how to
identify it, and our client does the rest. Its plan depends on the request alone, and its key on the
cached content and its owner: the session, the model, and the digests of tools, L1 and library.
"""

from base64 import b64decode, b64encode
from copy import deepcopy
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.providers.wires.wire_messages import (
    describe_tool,
    is_minted,
    join_text,
    merge_roles,
    mint_call_id,
    order_results,
    parse_arguments,
    read_reply,
    split_prompt,
    unreadable_reply,
    write_arguments,
)
from lamina.core.codec import digest_texts, mend_text
from lamina.core.values.message import Block, Image, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.prompt import Content, Prompt, Segment, total_tokens
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, WireRequest

# The request key that contains the plan; our client removes it.
PLAN_FIELD = "explicit_cache"
TTL_S = 3600


def plan_cache(request: WireRequest) -> dict[str, Any] | None:
    """Plan an explicit cache for this request; None if it does not pay.

    It pays if the front reaches the model's minimum; if the front is at least as large as the rest,
    which implicit caching covers as well, and caching it would save more even if it hit only every
    other time; and if the session has had as many answers as it takes to earn the cache back, since
    the best guess is that as many will follow.
    """
    prompt, target = request.prompt, request.target
    front = total_tokens(prompt.front)
    if not request.explicit_cache or not request.cache_key or not front:
        return None
    if front < max(target.cache.minimum, prompt.tokens - front):
        return None
    break_even = requests_to_break_even(target, prompt.tokens)
    if break_even is None or _count_answers(prompt, break_even) < break_even:
        return None
    running = prompt.front[len(prompt.front) - 1].running
    key = digest_texts((request.cache_key, target.model, running))
    return {"session": request.cache_key, "key": key, "tokens": front}


def requests_to_break_even(target: Target, prompt_tokens: int = 0) -> int | None:
    """Return how many requests of this length pay for a cache within its lifetime: the savings of
    each, against filling the cache once and storing it to the end. None if they never do, or prices
    are unknown."""
    if target.prices is None:
        return None
    tier = target.prices.tier_for(prompt_tokens)
    cost = tier.input + target.prices.storage * TTL_S / 3600
    saving = tier.input - tier.read
    return ceil(cost / saving) if saving > 0 else None


def _count_answers(prompt: Prompt, enough: int) -> int:
    """Count the messages written by the model, up to `enough`."""
    messages: set[str] = set()
    for segment in prompt.since(len(prompt.front)):
        if segment.role == "assistant":
            messages.add(segment.message)
            if len(messages) >= enough:
                break
    return len(messages)


# Models before the third generation accept a number of tokens instead of a level.
_BUDGETS = {"minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576}
# Google's own value for a call that Gemini did not make: without any signature the call is refused
# while its results are part of the current turn.
SKIPPED_SIGNATURE = b64encode(b"skip_thought_signature_validator").decode()


def encode(request: WireRequest) -> dict[str, Any]:
    """Return keyword arguments for `client.models.generate_content`. Bytes are base64 strings,
    which the SDK also accepts, so that the request is plain JSON. If an explicit cache pays, and a
    setting requests one, there is one more key, `explicit_cache`, which our own client removes."""
    tools, system, messages = split_prompt(request.prompt)
    body: dict[str, Any] = {
        "model": request.target.model,
        "contents": [
            {
                "role": "model" if message.role == "assistant" else "user",
                "parts": _parts(message.segments, request),
            }
            for message in order_results(merge_roles(messages))
        ],
    }
    options = request.options
    config: dict[str, Any] = {}
    if system:
        config["system_instruction"] = join_text(system)
    if tools:
        declarations = [describe_tool(tool, "parameters_json_schema") for tool in tools]
        config["tools"] = [{"function_declarations": declarations}]
        config["automatic_function_calling"] = {"disable": True}
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if options.top_p is not None:
        config["top_p"] = options.top_p
    if options.max_tokens is not None:
        config["max_output_tokens"] = options.max_tokens
    if request.effort is not None:
        config["thinking_config"] = _thinking(request.effort, request.target.model)
    if options.schema is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = deepcopy(options.schema)
    if config:
        body["config"] = config
    if plan := plan_cache(request):
        body[PLAN_FIELD] = plan
    return body


def _thinking(level: str, model: str) -> dict[str, Any]:
    if _is_new(model):
        return {"thinking_level": level, "include_thoughts": True}
    budget = _BUDGETS.get(level.lower())
    thoughts: dict[str, Any] = {"include_thoughts": True}
    return thoughts if budget is None else {"thinking_budget": budget} | thoughts


def _is_new(model: str) -> bool:
    """Return whether a model is of the third generation or later."""
    return not model.startswith(("gemini-1", "gemini-2"))


def _parts(segments: tuple[Segment, ...], request: WireRequest) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    # Of parallel calls only the first is signed.
    wants_signature = _is_new(request.target.model)
    for segment in segments:
        match request.shown(segment.content):
            case Text(text=text):
                parts.append({"text": text})
            case Thinking(text="", signature=signature) if parts and set(parts[-1]) == {"text"}:
                parts[-1]["thought_signature"] = signature
            case ToolCall(signature=signature) as call if wants_signature:
                parts.append(
                    _part(replace(call, signature=signature or SKIPPED_SIGNATURE), request)
                )
                wants_signature = False
            case content:
                parts.append(_part(content, request))
    return parts


def _part(content: Content, request: WireRequest) -> dict[str, Any]:
    match content:
        case Image(picture=picture):
            data = b64encode(request.blobs[picture.digest]).decode()
            return {"inline_data": {"mime_type": picture.media_type, "data": data}}
        case ToolCall(id=call, name=name, arguments=arguments, signature=signature):
            function_call = {"name": name, "args": parse_arguments(arguments)} | _id(call)
            part: dict[str, Any] = {"function_call": function_call}
            return part | {"thought_signature": signature} if signature else part
        case ToolResult(call_id=call, name=name, text=text, is_error=is_error):
            response = {"error" if is_error else "output": text}
            return {"function_response": {"name": name, "response": response} | _id(call)}
        case Thinking(text="", signature=signature):
            return {"text": "", "thought_signature": signature}
        case Thinking(text=text, signature=signature):
            return {"text": text, "thought": True, "thought_signature": signature}
        case other:
            raise AssertionError(f"{type(other).__name__} does not stand in a message")


def _id(call: str) -> dict[str, Any]:
    return {} if is_minted(call) else {"id": call}


# -- replies -------------------------------------------------------------------------------------


class _Call(Struct):
    name: str
    id: str | None = None
    args: dict[str, Any] | None = None


class _Part(Struct):
    text: str | None = None
    thought: bool | None = None
    # Bytes from the SDK, base64 over REST.
    thought_signature: Any = None
    function_call: _Call | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct):
    content: _Content | None = None
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_token_count: int | None = None
    # If the SDK continued by itself (`CONTINUATION`), the counts are sums over its requests; this
    # one is for the first.
    initial_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Feedback(Struct):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Response(Struct):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    response_id: str | None = None
    model_version: str | None = None
    usage_metadata: _Usage | None = None


def decode(reply: object) -> Reply:
    """Decode a generateContent response.

    Raises:
        ReplyError: `reply` is not such a response, or the prompt was blocked.
    """
    what = "a Gemini response"
    response = read_reply(_snake(reply), _Response, what)
    if not response.candidates:
        feedback = response.prompt_feedback or _Feedback()
        reason = _plain(feedback.block_reason)
        why = f"the prompt was blocked: {reason} {feedback.block_reason_message or ''}".strip()
        raise unreadable_reply(reply, what, why if reason else "it has no candidates")
    candidate = response.candidates[0]
    stop = _plain(candidate.finish_reason)
    parts = (candidate.content.parts if candidate.content else None) or []
    # Responses over REST always have an id; for others the prompt's size must suffice.
    usage = response.usage_metadata or _Usage()
    blocks = _blocks(parts, response.response_id or str(usage.prompt_token_count))
    return Reply(
        blocks=tuple(blocks) or (Text(""),),
        usage=_usage(response.usage_metadata),
        stop=stop,
        model=mend_text(response.model_version or ""),
        complete=bool(stop),
        id=mend_text(response.response_id or ""),
    )


def _blocks(parts: list[_Part], response: str) -> list[Block]:
    blocks: list[Block] = []
    for index, part in enumerate(parts):
        signature = _signature(part.thought_signature)
        text = mend_text(part.text or "")
        before = blocks[-1] if blocks else None
        if call := part.function_call:
            arguments = write_arguments(call.args)
            # Gemini often sends no id.
            call_id = call.id or mint_call_id(index, response, call.name, arguments)
            blocks.append(
                ToolCall(
                    id=mend_text(call_id),
                    name=mend_text(call.name),
                    arguments=arguments,
                    signature=signature,
                )
            )
        elif part.thought and not text and isinstance(before, Thinking) and not before.signature:
            # A streamed thought is signed by the empty part after it.
            blocks[-1] = replace(before, signature=signature)
        elif part.thought:
            blocks.append(Thinking(text=text, signature=signature, provider="gemini"))
        elif part.text is not None:
            if text:
                blocks.append(Text(text))
            if signature:
                blocks.append(Thinking(signature=signature, provider="gemini"))
    return blocks


def _plain(value: str | None) -> str:
    """Return a string; the SDK's enums are strings that print differently."""
    return mend_text(str(getattr(value, "value", value) or ""))


def _signature(value: object) -> str:
    """Return standard base64, whatever the input's alphabet and padding; empty if it is not
    base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if not isinstance(value, str):
        return ""
    bare = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64encode(b64decode(bare + "=" * (-len(bare) % 4), validate=True)).decode()
    except ValueError:
        return ""


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage(cache_reported=False)
    prompt_sum = usage.prompt_token_count or 0
    prompt = usage.initial_prompt_token_count or prompt_sum
    cached_tokens = usage.cached_content_token_count or 0
    return Usage(
        input=prompt,
        cached=round(cached_tokens * prompt / prompt_sum) if prompt_sum else cached_tokens,
        output=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
    )


def _snake(value: Any) -> Any:
    """Convert keys to the SDK's snake case; REST uses camel case. Arguments are left unchanged."""
    if isinstance(value, list):
        return [_snake(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        _snake_key(key): inner if key in ("args", "response") else _snake(inner)
        for key, inner in value.items()
    }


def _snake_key(key: Any) -> Any:
    if not isinstance(key, str):
        return key
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)
