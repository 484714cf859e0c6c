"""Messages of pi to ours, by role.

Law: a role that pi shows to the model becomes a message, in the words pi uses where it has to find
some; fields without a place of ours are in `left`.
"""

from typing import Any

from msgspec import Struct

from lamina.formats.content import (
    content_beyond_text,
    provider_of,
    read_content,
    read_usage,
    result_text,
    target_of,
)
from lamina.formats.json_lines import Object, object_in, text_in, without
from lamina.formats.session_builder import SessionBuilder
from lamina.values.message import Block, Message, Text, ToolResult
from lamina.values.usage import Usage

_USAGE = ("input", "output", "cacheRead", "cacheWrite")


class PiMessage(Struct, frozen=True, kw_only=True):
    message: Message
    usage: Usage | None = None
    model: str = ""
    interrupted: bool = False
    left: dict[str, Any] = {}
    # Why the model does not see it, if it does not.
    hidden: str = ""


def read_message(value: Object, builder: SessionBuilder, line: int) -> PiMessage | None:
    """A message of pi; None if its role is not known."""
    match value.get("role"):
        case "user":
            blocks, left = _content(value, builder, line)
            return PiMessage(message=Message(role="user", blocks=blocks), left=left)
        case "assistant":
            return _answer(value, builder, line)
        case "toolResult":
            return _result(value, builder, line)
        case "bashExecution":
            return _bash(value)
        case "custom" | "hookMessage":
            blocks, left = _content(value, builder, line)
            return PiMessage(message=Message(role="user", blocks=blocks), left=left)
        case "branchSummary" | "compactionSummary":
            left = without(value, "summary")
            return PiMessage(message=_said(text_in(value, "summary")), left=left)
        case _:
            return None


def _said(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),))


def _content(
    value: Object, builder: SessionBuilder, line: int, provider: str = ""
) -> tuple[tuple[Block, ...], dict[str, Any]]:
    content = read_content(value.get("content"), builder, line, provider)
    left = without(value, "content")
    if value.get("role") in ("user", "assistant", "custom"):
        left.pop("role", None)
    if content.rest:
        left["blocks"] = content.rest
    if content.results:
        builder.report(line, "unknown_block", "a tool result inside a message; kept as data")
        left["content"] = value.get("content")
    return content.blocks, left


def _answer(value: Object, builder: SessionBuilder, line: int) -> PiMessage:
    provider, model = text_in(value, "provider"), text_in(value, "model")
    blocks, left = _content(value, builder, line, provider_of(provider))
    target = target_of(provider, model)
    if target == f"{provider}:{model}":
        left = without(left, "provider", "model")
    usage = object_in(value, "usage")
    if usage:
        left = without(left, "usage")
        beside = {k: v for k, v in usage.items() if k not in _USAGE or not isinstance(v, int)}
        if beside:
            left["usage"] = beside
    return PiMessage(
        message=Message(role="assistant", blocks=blocks),
        usage=read_usage(usage),
        model=target,
        interrupted=value.get("stopReason") in ("aborted", "error"),
        left=left,
    )


def _result(value: Object, builder: SessionBuilder, line: int) -> PiMessage:
    result = ToolResult(
        call_id=text_in(value, "toolCallId"),
        name=text_in(value, "toolName"),
        text=result_text(value.get("content"), builder, line),
        is_error=value.get("isError") is True,
    )
    left = without(value, "role", "toolCallId", "toolName", "content", "isError")
    left |= content_beyond_text(value.get("content"))
    return PiMessage(message=Message(role="tool", blocks=(result,)), left=left)


def _bash(value: Object) -> PiMessage:
    output = text_in(value, "output")
    text = f"Ran `{text_in(value, 'command')}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = value.get("exitCode")
    if value.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        text += f"\n\nCommand exited with code {code}"
    hidden = "bashExecution" if value.get("excludeFromContext") is True else ""
    return PiMessage(message=_said(text), left=dict(value), hidden=hidden)
