"""Imports GitHub Copilot CLI sessions: events `{type, data, id, timestamp, parentId}`.

Law: only events with a certain meaning become part of a context: user and model messages, calls and
their results, and model changes. Every other event is kept as data at its position.
"""

from typing import Any

from msgspec import Struct

from lamina.adapters.formats.content import read_content, result_text, target_of, write_arguments
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    LineRecord,
    Object,
    count_in,
    first_moment,
    list_in,
    object_in,
    parse_moment,
    text_in,
    without,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import CustomEntry, EntryBase, MessageEntry, ModelEntry
from lamina.core.values.message import Block, Message, ToolCall, ToolResult
from lamina.core.values.usage import Usage

SOURCE = "copilot_cli"


def looks_like_copilot_cli(value: Object) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and "." in kind and isinstance(value.get("data"), dict) and (
        "id" in value or "parentId" in value
    )  # fmt: skip


def import_copilot_cli(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in a Copilot CLI event file."""
    start = next((line for line in file.lines if line.value.get("type") == "session.start"), None)
    data = object_in(start.value, "data") if start else {}
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(data.get("startTime")) or first_moment(file.lines),
        workspace=text_in(object_in(data, "context"), "cwd") or text_in(data, "cwd"),
        extra=_header_extra(start.value if start else {}, data),
        line=start.number if start else None,
        problems=file.problems,
    )
    if start and (own := text_in(start.value, "id")):
        builder.add_alias(own, builder.root)
    if target := target_of("", text_in(data, "selectedModel", "model")):
        builder.put(builder.root, ModelEntry, at=None, inline=True, target=target)
    records = [record for record in file.records if record is not start]

    def add(line: JsonLine, is_cut: bool) -> str:
        return _add(builder, line, is_cut)

    return builder.add_in_order(records, _ids, add)


def _header_extra(value: Object, data: Object) -> Object:
    around = without(value, "type", "timestamp", *(("data",) if data else ()))
    return {**data, "event": around} if around else data


def _ids(record: LineRecord) -> tuple[str | None, str | None]:
    value = record.value if isinstance(record, JsonLine) else {}
    parent = value.get("parentId")
    parent_id = parent if parent is None or isinstance(parent, str) else repr(parent)
    return text_in(value, "id") or None, parent_id or None


def _add(builder: SessionBuilder, line: JsonLine, is_cut: bool) -> str:
    value, number = line.value, line.number
    own, parent = _ids(line)
    if (duplicate := builder.find_duplicate(own, number, value)) is not None:
        return duplicate
    if own is None and parent is None:
        place = builder.tail(builder.last)
    else:
        place = builder.find_parent(own, parent, number, is_cut=is_cut)
    kind, fields = _read_event(builder, value, object_in(value, "data"), number)
    rest = without(value, "type", "parentId", "timestamp") | fields.pop("rest", {})
    if kind is CustomEntry or isinstance(value.get("data"), dict):
        rest.pop("data", None)
    return builder.put(
        place, kind, at=line.at, line=number, raw=value, foreign_id=own, rest=rest, **fields
    )


def _read_event(
    builder: SessionBuilder, value: Object, data: Object, line: int
) -> tuple[type[EntryBase], dict[str, Any]]:
    match value.get("type"):
        case "user.message":
            content = read_content(data.get("content"), builder, line)
            message = Message(role="user", blocks=content.blocks)
            rest = without(data, "content")
            if content.rest or content.results:
                rest["content"] = data.get("content")
            return MessageEntry, {"message": message, "rest": rest}
        case "assistant.message":
            return MessageEntry, _answer(builder, data, line)
        case "tool.execution_complete" if text_in(data, "toolCallId"):
            return MessageEntry, _result(builder, data, line)
        case "session.model_change" if text_in(data, "newModel"):
            if target := target_of("", data["newModel"]):
                return ModelEntry, {"target": target, "rest": data}
        case _:
            pass
    return CustomEntry, {"kind": f"{SOURCE}.{value.get('type')}", "data": value.get("data")}


def _answer(builder: SessionBuilder, data: Object, line: int) -> dict[str, Any]:
    content = read_content(data.get("content"), builder, line)
    blocks: list[Block] = list(content.blocks)
    requests = list_in(data, "toolRequests")
    unread_calls = [request for request in requests if not _is_call(request)]
    for index, request in enumerate(requests):
        if _is_call(request):
            call = text_in(request, "toolCallId") or builder.mint_call(index)
            arguments = write_arguments(request.get("arguments"))
            blocks.append(ToolCall(id=call, name=request["name"], arguments=arguments))
    rest = without(data, "content", "toolRequests")
    if unread_calls:
        detail = f"{len(unread_calls)} calls that cannot be read; as data"
        builder.report(line, "unknown_block", detail)
    if beside := unread_calls or [request for request in requests if _says_more(request)]:
        rest["toolRequests"] = beside
    if content.rest or content.results:
        rest["content"] = data.get("content")
    return {"message": Message(role="assistant", blocks=tuple(blocks)), "rest": rest}


def _is_call(request: Any) -> bool:
    return isinstance(request, dict) and bool(text_in(request, "name"))


def _says_more(request: Object) -> bool:
    """Return whether a call has fields that our type lacks."""
    return bool(without(request, "toolCallId", "name", "arguments"))


def _result(builder: SessionBuilder, data: Object, line: int) -> dict[str, Any]:
    output = data.get("result", data.get("error"))
    content = output.get("content", output.get("message")) if isinstance(output, dict) else output
    text, is_error = result_text(content, builder, line), data.get("success") is False
    name = text_in(data, "toolName")
    result = ToolResult(call_id=data["toolCallId"], name=name, text=text, is_error=is_error)
    rest = without(data, "toolCallId", "toolName", "success")
    return {"message": Message(role="tool", blocks=(result,)), "rest": rest}


# -- line fields that describe requests ------------------------------------------------------------


class CopilotData(Struct, rename="camel", omit_defaults=True):
    session_id: str | None = None
    model: str | None = None
    new_model: str | None = None
    selected_model: str | None = None
    reasoning_effort: str | None = None
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_read_tokens: int | float | None = None
    cache_write_tokens: int | float | None = None
    duration: int | float | None = None
    parent_tool_call_id: str | None = None


class CopilotLine(Struct):
    """The line fields that the doctor reads; all others are skipped."""

    type: str | None = None
    id: str | None = None
    timestamp: str | float | None = None
    data: CopilotData | None = None


def read_copilot_usage(figures: Object) -> Usage:
    """Read the figures in an `assistant.usage` event, whose input includes cached tokens."""
    return Usage(
        input=count_in(figures, "inputTokens"),
        cached=count_in(figures, "cacheReadTokens"),
        written=count_in(figures, "cacheWriteTokens"),
        output=count_in(figures, "outputTokens"),
        cache_reported="cacheReadTokens" in figures,
    )
