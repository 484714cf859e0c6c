"""Splits request bodies into parts in wire order, for every wire format found in logs.

Laws: a part's `data` contains the bytes at its `place`: a string as UTF-8, everything else as
compact JSON with keys in the order of the body. Markers are not part of the cached content. A
string and a single block with that string are equal on every wire.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lamina.adapters.formats.json_lines import list_in, object_in, text_in
from lamina.doctor.observed_request import PartLayer, PromptPart, RecordedPrompt

# Parameters that affect caching, in addition to the prompt; the others affect only answers.
_PARAMETERS = (
    "tool_choice", "thinking", "output_config", "reasoning_effort", "reasoning", "service_tier",
    "speed", "response_format", "verbosity", "parallel_tool_calls", "prompt_cache_key", "text",
    "toolConfig", "tool_config", "cachedContent", "cached_content",
)  # fmt: skip
_MARKERS = ("cache_control", "prompt_cache_breakpoint", "cachePoint")
_KINDS = {
    "text": "text", "input_text": "text", "output_text": "text",
    "image": "image", "image_url": "image", "input_image": "image",
    "thinking": "thinking", "redacted_thinking": "thinking", "reasoning": "thinking",
    "tool_use": "call", "function_call": "call", "tool_result": "result",
    "function_call_output": "result",
}  # fmt: skip


def read_prompt(body: Mapping[str, Any]) -> RecordedPrompt:
    """Split an OpenAI, Anthropic or Gemini body into parts."""
    if "contents" in body:
        parts = [*_gemini_parts(body)]
    elif "input" in body and "messages" not in body:
        parts = [*_response_parts(body)]
    else:
        parts = [*_message_parts(body)]
    generation = object_in(body, "generationConfig") or object_in(body, "generation_config")
    named = {name: body[name] for name in _PARAMETERS if body.get(name) is not None}
    for name in ("thinkingConfig", "thinking_config"):
        if generation.get(name) is not None:
            named[name] = generation[name]
    has_markers = "system" in body or any(part.marked for part in parts) or "cache_control" in body
    has_markers = has_markers and "contents" not in body
    if "cache_control" in body and parts:
        parts[-1] = msgspec.structs.replace(parts[-1], marked=True)
    return RecordedPrompt(
        parts=tuple(parts),
        parameters=tuple((name, _show(value)) for name, value in named.items()),
        has_markers=has_markers,
    )


def _show(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode("utf-8", "replace")


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return repr(value).encode("utf-8", "backslashreplace")


def _bare(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in _MARKERS}


def _is_marked(block: Mapping[str, Any]) -> bool:
    return any(block.get(name) for name in _MARKERS)


def _tools(tools: list[Any]) -> Iterator[PromptPart]:
    for index, tool in enumerate(tools):
        declarations = list_in(tool, "functionDeclarations") if isinstance(tool, dict) else []
        name = "functionDeclarations"
        if isinstance(tool, dict) and not declarations:
            name = "function_declarations"
            declarations = list_in(tool, name)
        if declarations:
            for place, declaration in enumerate(declarations):
                where = f"tools[{index}].{name}[{place}]"
                yield PromptPart(layer="tools", place=where, kind="tool", data=_encode(declaration))
            continue
        bare = _bare(tool) if isinstance(tool, dict) else tool
        marked = isinstance(tool, dict) and _is_marked(tool)
        yield PromptPart(
            layer="tools", place=f"tools[{index}]", kind="tool", data=_encode(bare), marked=marked
        )


def _text_part(
    layer: PartLayer, place: str, text: str, role: str, message: int, *, marked: bool = False
) -> PromptPart:
    return PromptPart(
        layer=layer, place=place, kind="text", role=role, message=message,
        data=text.encode("utf-8", "surrogatepass"), marked=marked,
    )  # fmt: skip


def _content(
    content: Any, layer: PartLayer, place: str, role: str, message: int
) -> Iterator[PromptPart]:
    """Yield the parts of a message's content: a string, or a list of blocks."""
    if isinstance(content, str):
        yield _text_part(layer, place, content, role, message)
        return
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    for index, block in enumerate(blocks):
        where = f"{place}[{index}]" if isinstance(content, list) else place
        if isinstance(block, str):
            yield _text_part(layer, where, block, role, message)
            continue
        if not isinstance(block, dict):
            yield PromptPart(
                layer=layer, place=where, kind="data", role=role, message=message,
                data=_encode(block),
            )  # fmt: skip
            continue
        marked = _is_marked(block)
        kind = _KINDS.get(str(block.get("type")), "data")
        if kind == "text" and isinstance(block.get("text"), str):
            where = f"{where}.text"
            yield _text_part(layer, where, block["text"], role, message, marked=marked)
            continue
        yield PromptPart(
            layer=layer, place=where, kind=kind, role=role, message=message,
            data=_encode(_bare(block)), marked=marked,
        )  # fmt: skip


def _message_parts(body: Mapping[str, Any]) -> Iterator[PromptPart]:
    """Yield the parts of Anthropic messages and OpenAI chats."""
    yield from _tools(list_in(body, "tools"))
    yield from _content(body.get("system"), "system", "system", "system", -1)
    for index, message in enumerate(list_in(body, "messages")):
        if not isinstance(message, dict):
            continue
        role = text_in(message, "role")
        place = f"messages[{index}]"
        is_front = role in ("system", "developer") and index == 0
        layer: PartLayer = "system" if is_front else "messages"
        number = -1 if is_front else index
        for name in ("reasoning_content", "reasoning"):
            if isinstance(message.get(name), str):
                yield PromptPart(
                    layer=layer, place=f"{place}.{name}", kind="thinking", role=role,
                    message=number, data=message[name].encode("utf-8", "surrogatepass"),
                )  # fmt: skip
        parts = [*_content(message.get("content"), layer, f"{place}.content", role, number)]
        if role == "tool":
            parts = [msgspec.structs.replace(part, kind="result") for part in parts]
        if parts and _is_marked(message):
            parts[-1] = msgspec.structs.replace(parts[-1], marked=True)
        yield from parts
        for at, call in enumerate(list_in(message, "tool_calls")):
            yield from _call(call, f"{place}.tool_calls[{at}]", role, number)


def _call(call: Any, place: str, role: str, message: int) -> Iterator[PromptPart]:
    """Yield the parts of a call: its name and, byte for byte, its arguments."""
    function = object_in(call, "function") if isinstance(call, dict) else {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield PromptPart(
            layer="messages", place=place, kind="call", role=role, message=message,
            data=_encode(call),
        )  # fmt: skip
        return
    yield _text_part("messages", f"{place}.function.name", text_in(function, "name"), role, message)
    yield PromptPart(
        layer="messages", place=f"{place}.function.arguments", kind="call", role=role,
        message=message, data=arguments.encode("utf-8", "surrogatepass"),
    )  # fmt: skip


def _response_parts(body: Mapping[str, Any]) -> Iterator[PromptPart]:
    """Yield the parts of OpenAI responses: instructions, and input items."""
    yield from _tools(list_in(body, "tools"))
    if isinstance(body.get("instructions"), str):
        yield _text_part("system", "instructions", body["instructions"], "system", -1)
    items = body.get("input")
    for index, item in enumerate(items if isinstance(items, list) else [items]):
        place = f"input[{index}]" if isinstance(items, list) else "input"
        if isinstance(item, str):
            yield _text_part("messages", place, item, "user", index)
            continue
        if not isinstance(item, dict):
            continue
        role = text_in(item, "role")
        if "content" in item and item.get("type", "message") == "message":
            is_front = role in ("system", "developer") and index == 0
            layer: PartLayer = "system" if is_front else "messages"
            yield from _content(
                item["content"], layer, f"{place}.content", role, -1 if is_front else index
            )
            continue
        kind = _KINDS.get(str(item.get("type")), "data")
        if kind == "call" and isinstance(item.get("arguments"), str):
            yield PromptPart(
                layer="messages", place=f"{place}.arguments", kind="call", role="assistant",
                message=index, data=item["arguments"].encode("utf-8", "surrogatepass"),
            )  # fmt: skip
            continue
        yield PromptPart(
            layer="messages", place=place, kind=kind, role=role, message=index,
            data=_encode(_bare(item)),
        )  # fmt: skip


def _gemini_parts(body: Mapping[str, Any]) -> Iterator[PromptPart]:
    yield from _tools(list_in(body, "tools"))
    name = "systemInstruction" if "systemInstruction" in body else "system_instruction"
    system = body.get(name)
    if isinstance(system, str):
        yield _text_part("system", name, system, "system", -1)
    elif isinstance(system, dict):
        yield from _gemini_content(system, name, "system", "system", -1)
    for index, content in enumerate(list_in(body, "contents")):
        if isinstance(content, dict):
            role = text_in(content, "role")
            yield from _gemini_content(content, f"contents[{index}]", "messages", role, index)


def _gemini_content(
    content: Mapping[str, Any], place: str, layer: PartLayer, role: str, message: int
) -> Iterator[PromptPart]:
    for index, part in enumerate(list_in(content, "parts")):
        where = f"{place}.parts[{index}]"
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            kind = "thinking" if part.get("thought") is True else "text"
            yield PromptPart(
                layer=layer, place=f"{where}.text", kind=kind, role=role, message=message,
                data=part["text"].encode("utf-8", "surrogatepass"),
            )  # fmt: skip
            continue
        keys = part.keys()
        kind = "data"
        if keys & {"inlineData", "inline_data", "fileData", "file_data"}:
            kind = "image"
        elif keys & {"functionCall", "function_call"}:
            kind = "call"
        elif keys & {"functionResponse", "function_response"}:
            kind = "result"
        yield PromptPart(
            layer=layer, place=where, kind=kind, role=role, message=message, data=_encode(part)
        )
