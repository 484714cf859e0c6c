"""Converts items of OpenAI's Responses API, in Codex files and logs, to messages.

Laws: consecutive items from the model are one message. Readable reasoning is kept but never sent
again: its encrypted format is of no use on another wire. A tool that the vendor ran itself has no
result to pair with its call, so the item is data.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lamina.adapters.formats.call_pairs import pair_calls
from lamina.adapters.formats.content import (
    ForeignMessage,
    content_beyond_text,
    read_content,
    result_text,
    write_arguments,
)
from lamina.adapters.formats.json_lines import Object, object_in, text_in, without
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.message import Block, Message, Text, Thinking, ToolCall, ToolResult

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
# Actions on the vendor's side.
_HOSTED = ("web_search_call", "image_generation_call", "file_search_call", "tool_search_call",
           "code_interpreter_call", "ghost_snapshot")  # fmt: skip
ITEM_TYPES = ("message", "reasoning", *_CALLS, *_OUTPUTS, *_HOSTED)

ResponseItemKind = Literal["answer", "output", "user", "other"]


def response_item_kind(item: Object) -> ResponseItemKind:
    """Return an item's kind; `other` if unknown."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind in _OUTPUTS:
        return "output"
    if kind == "reasoning" or kind in _CALLS or kind in _HOSTED:
        return "answer"
    if kind == "message":
        return "answer" if item.get("role") == "assistant" else "user"
    return "other"


def read_answer(items: Sequence[Object], builder: SessionBuilder, line: int) -> ForeignMessage:
    """Read consecutive items from the model as one message."""
    blocks: list[Block] = []
    rests: list[Any] = []
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        rest: Any = without(item, "type")
        if kind == "message":
            content = read_content(item.get("content"), builder, line, "openai")
            blocks += content.blocks
            rest = without(item, "type", "role", "content")
            if content.rest or content.results:
                rest["content"] = item.get("content")
        elif kind == "reasoning":
            summary = read_content(item.get("summary"), builder, line)
            inner = read_content(item.get("content"), builder, line)
            texts = [b.text for b in (*summary.blocks, *inner.blocks) if isinstance(b, Text)]
            blocks.append(Thinking(text="\n\n".join(texts), provider="openai"))
            rest = {k: v for k, v in item.items() if k not in ("type", "summary", "content")}
            rest |= content_beyond_text(item.get("summary")) if summary.rest else {}
        elif kind in _CALLS:
            blocks.append(_read_call(item, builder.mint_call(index)))
            rest = without(item, "type", "call_id", "name", "arguments", "input", "action")
        else:
            rest = item
        if rest:
            rests.append({"item": index, **rest})
    message = Message(role="assistant", blocks=tuple(blocks))
    return ForeignMessage(message=message, rest=rests or None)


def _read_call(item: Object, new_id: str) -> ToolCall:
    name = text_in(item, "name") or str(item.get("type")).removesuffix("_call")
    match item.get("type"):
        case "local_shell_call":
            arguments = write_arguments(item.get("action"))
        case "custom_tool_call":
            # Free text, which must be wrapped in JSON.
            arguments = write_arguments({"input": item.get("input")})
        case _:
            arguments = write_arguments(item.get("arguments"))
    return ToolCall(id=text_in(item, "call_id", "id") or new_id, name=name, arguments=arguments)


def read_output(item: Object, builder: SessionBuilder, line: int) -> ForeignMessage:
    """Read a call's result."""
    output = item.get("output")
    is_error = isinstance(output, dict) and output.get("success") is False
    content = output.get("content") if isinstance(output, dict) else output
    call_id, text = text_in(item, "call_id", "id"), result_text(content, builder, line)
    result = ToolResult(call_id=call_id, name="", text=text, is_error=is_error)
    rest = without(item, "type", "call_id", "output")
    if isinstance(output, dict):
        rest |= {"output": without(output, "content", "success")}
    rest |= content_beyond_text(content)
    message = Message(role="tool", blocks=(result,))
    return ForeignMessage(message=message, rest=[rest] if rest else None)


def read_user_message(item: Object, builder: SessionBuilder, line: int) -> ForeignMessage:
    """Read a user message; a message with another role is noted in `rest`."""
    content = read_content(item.get("content"), builder, line)
    rest = without(item, "type", "content")
    if rest.get("role") == "user":
        del rest["role"]
    if content.rest or content.results:
        rest["content"] = item.get("content")
    message = Message(role="user", blocks=content.blocks)
    return ForeignMessage(message=message, rest=[rest] if rest else None)


def read_items(items: Iterable[Any], builder: SessionBuilder, line: int) -> list[ForeignMessage]:
    """Read a list of items as messages; an unreadable item is in `rest` of an empty message."""
    messages: list[ForeignMessage] = []
    run: list[Object] = []

    def close() -> None:
        if run:
            messages.append(read_answer(run, builder, line))
            run.clear()

    for item in items:
        kind = response_item_kind(item) if isinstance(item, dict) else "other"
        if kind == "answer":
            run.append(item)
            continue
        close()
        if kind == "output":
            messages.append(read_output(item, builder, line))
        elif kind == "user":
            messages.append(read_user_message(item, builder, line))
        else:
            builder.report(line, "unknown_block", "an item of a list that is not known; as data")
            message = Message(role="user", blocks=())
            messages.append(ForeignMessage(message=message, rest=[item]))
    close()
    return messages


def read_history(items: Iterable[Any], builder: SessionBuilder, line: int) -> tuple[Message, ...]:
    """Read the messages that replace a history, with calls and results paired."""
    history = [item.message for item in read_items(items, builder, line)]
    messages, repairs = pair_calls([message for message in history if message.blocks])
    for detail in repairs:
        builder.report(line, "unpaired", detail)
    return messages


def base_instructions(meta: Object) -> str:
    """Return the session's initial system prompt."""
    return text_in(object_in(meta, "base_instructions"), "text") or text_in(meta, "instructions")
