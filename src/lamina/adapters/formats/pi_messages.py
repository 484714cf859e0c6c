"""Messages of pi to ours, by role.

Law: a role that pi shows to the model becomes a message, in pi's own words where it writes some;
fields without a place of ours are in `rest`.
"""

from typing import Any

from msgspec import Struct

from lamina.adapters.formats.content import (
    content_beyond_text,
    provider_of,
    read_content,
    read_result,
    read_usage,
    target_of,
)
from lamina.adapters.formats.json_fields import Object, object_in, text_in, without
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.message import Block, Message, Text
from lamina.core.values.usage import Usage

_USAGE = ("input", "output", "cacheRead", "cacheWrite")


class PiMessage(Struct, frozen=True, kw_only=True):
    message: Message
    usage: Usage | None = None
    model: str = ""
    is_interrupted: bool = False
    rest: dict[str, Any] = {}
    # What it is kept as if the model does not see it.
    hidden_kind: str = ""


def read_message(value: Object, builder: SessionBuilder, line: int) -> PiMessage | None:
    """A message of pi; None if its role is not known."""
    match value.get("role"):
        case "assistant":
            return _answer(value, builder, line)
        case "toolResult":
            return _result(value, builder, line)
        case "bashExecution":
            return _bash(value)
        case "user" | "custom" | "hookMessage":
            blocks, rest = _content(value, builder, line)
            custom_type, shown = text_in(value, "customType"), value.get("display") is not False
            message = Message(role="user", blocks=blocks, custom_type=custom_type, shown=shown)
            return PiMessage(message=message, rest=rest)
        case "branchSummary" | "compactionSummary":
            rest = without(value, "summary")
            return PiMessage(message=_user_message(text_in(value, "summary")), rest=rest)
        case _:
            return None


def _user_message(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),))


def _content(
    value: Object, builder: SessionBuilder, line: int, provider: str = ""
) -> tuple[tuple[Block, ...], dict[str, Any]]:
    content = read_content(value.get("content"), builder, line, provider)
    rest = without(value, "content")
    if value.get("role") in ("user", "assistant", "custom"):
        rest.pop("role", None)
    if content.rest:
        rest["blocks"] = content.rest
    if content.results:
        builder.report(line, "unknown_block", "a tool result inside a message; kept as data")
        rest["content"] = value.get("content")
    return content.blocks, rest


def _answer(value: Object, builder: SessionBuilder, line: int) -> PiMessage:
    provider, model = text_in(value, "provider"), text_in(value, "model")
    blocks, rest = _content(value, builder, line, provider_of(provider))
    target = target_of(provider, model)
    if target == f"{provider}:{model}":
        rest = without(rest, "provider", "model")
    usage = object_in(value, "usage")
    if usage:
        rest = without(rest, "usage")
        if beside := {k: v for k, v in usage.items() if k not in _USAGE or not isinstance(v, int)}:
            rest["usage"] = beside
    return PiMessage(
        message=Message(role="assistant", blocks=blocks),
        usage=read_usage(usage),
        model=target,
        is_interrupted=value.get("stopReason") in ("aborted", "error"),
        rest=rest,
    )


def _result(value: Object, builder: SessionBuilder, line: int) -> PiMessage:
    result = read_result(value, "toolCallId", "toolName", "isError", builder, line)
    rest = without(value, "role", "toolCallId", "toolName", "content", "isError")
    rest |= content_beyond_text(value.get("content"))
    return PiMessage(message=Message(role="tool", blocks=(result,)), rest=rest)


def _bash(value: Object) -> PiMessage:
    output = text_in(value, "output")
    text = f"Ran `{text_in(value, 'command')}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = value.get("exitCode")
    if value.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        text += f"\n\nCommand exited with code {code}"
    hidden_kind = "bashExecution" if value.get("excludeFromContext") is True else ""
    return PiMessage(message=_user_message(text), rest=dict(value), hidden_kind=hidden_kind)
