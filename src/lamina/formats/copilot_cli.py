"""Sessions of GitHub's Copilot CLI: events `{type, data, id, timestamp, parentId}`.

Law: only what is certain becomes part of a context: what the user and the model said, calls and
their results, and changes of the model. Every other event is kept as data in its place.
"""

from typing import Any

from lamina.formats.content import read_content, result_text, target_of, write_arguments
from lamina.formats.imported_session import ImportedSession
from lamina.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    LineRecord,
    Object,
    UnreadLine,
    first_moment,
    list_in,
    object_in,
    parse_moment,
    text_in,
    without,
)
from lamina.formats.parent_order import order_by_parent
from lamina.formats.session_builder import SessionBuilder
from lamina.values.entry import CustomEntry, EntryBase, MessageEntry, ModelEntry
from lamina.values.message import Block, Message, ToolCall, ToolResult

SOURCE = "copilot_cli"


def looks_like_copilot_cli(value: Object) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and "." in kind and isinstance(value.get("data"), dict) and (
        "id" in value or "parentId" in value
    )  # fmt: skip


def import_copilot_cli(text: JsonLinesFile, session: str) -> ImportedSession:
    """The session of a Copilot CLI event file."""
    start = next((line for line in text.lines if line.value.get("type") == "session.start"), None)
    data = object_in(start.value, "data") if start else {}
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(data.get("startTime")) or first_moment(text.lines),
        workspace=text_in(object_in(data, "context"), "cwd") or text_in(data, "cwd"),
        extra=_header_extra(start.value if start else {}, data),
        line=start.number if start else None,
        problems=text.problems,
    )
    if start and (own := text_in(start.value, "id")):
        builder.alias(own, builder.root)
    target = target_of("", text_in(data, "selectedModel", "model"))
    if target:
        builder.put(builder.root, ModelEntry, at=None, inline=True, target=target)
    records = [record for record in text.records if record is not start]
    placed: dict[int, str] = {}
    for record, cut in order_by_parent(records, _ids):
        if isinstance(record, UnreadLine):
            placed[record.number] = builder.keep_unread(record)
        else:
            placed[record.number] = _add(builder, record, cut)
    return builder.finish(placed[records[-1].number] if records else None)


def _header_extra(value: Object, data: Object) -> Object:
    around = without(value, "type", "timestamp", *(("data",) if data else ()))
    return {**data, "event": around} if around else data


def _ids(record: LineRecord) -> tuple[str | None, str | None]:
    value = record.value if isinstance(record, JsonLine) else {}
    parent = value.get("parentId")
    named = parent if parent is None or isinstance(parent, str) else repr(parent)
    return text_in(value, "id") or None, named or None


def _add(builder: SessionBuilder, line: JsonLine, cut: bool) -> str:
    value, number = line.value, line.number
    own, parent = _ids(line)
    if (known := builder.known(own, number, value)) is not None:
        return known
    if own is None and parent is None:
        place = builder.tail(builder.last)
    else:
        place = builder.find_parent(own, parent, number, cut=cut)
    kind, fields = _read(builder, value, object_in(value, "data"), number)
    left = without(value, "type", "parentId", "timestamp") | fields.pop("left", {})
    if kind is CustomEntry or isinstance(value.get("data"), dict):
        left.pop("data", None)
    return builder.put(
        place, kind, at=parse_moment(value.get("timestamp")), line=number, raw=value,
        foreign_id=own,
        extra={SOURCE: left} if left else {}, **fields,
    )  # fmt: skip


def _read(
    builder: SessionBuilder, value: Object, data: Object, line: int
) -> tuple[type[EntryBase], dict[str, Any]]:
    match value.get("type"):
        case "user.message":
            content = read_content(data.get("content"), builder, line)
            message = Message(role="user", blocks=content.blocks)
            left = without(data, "content")
            if content.rest or content.results:
                left["content"] = data.get("content")
            return MessageEntry, {"message": message, "left": left}
        case "assistant.message":
            return MessageEntry, _answer(builder, data, line)
        case "tool.execution_complete" if text_in(data, "toolCallId"):
            return MessageEntry, _result(builder, data, line)
        case "session.model_change" if text_in(data, "newModel"):
            target = target_of("", data["newModel"])
            if target:
                return ModelEntry, {"target": target, "left": data}
        case _:
            pass
    return CustomEntry, {"kind": f"{SOURCE}.{value.get('type')}", "data": value.get("data")}


def _answer(builder: SessionBuilder, data: Object, line: int) -> dict[str, Any]:
    content = read_content(data.get("content"), builder, line)
    blocks: list[Block] = list(content.blocks)
    unread: list[Any] = []
    for index, request in enumerate(list_in(data, "toolRequests")):
        if not isinstance(request, dict) or not text_in(request, "name"):
            unread.append(request)
            continue
        call = text_in(request, "toolCallId") or builder.mint_call(index)
        arguments = write_arguments(request.get("arguments"))
        blocks.append(ToolCall(id=call, name=request["name"], arguments=arguments))
    left = without(data, "content", "toolRequests")
    if beside := [each for each in list_in(data, "toolRequests") if _says_more(each)]:
        left["toolRequests"] = beside
    if unread:
        builder.report(line, "unknown_block", f"{len(unread)} calls that cannot be read; as data")
        left["toolRequests"] = unread
    if content.rest or content.results:
        left["content"] = data.get("content")
    return {"message": Message(role="assistant", blocks=tuple(blocks)), "left": left}


def _says_more(request: Any) -> bool:
    """Whether a call says more than what a call of ours can hold."""
    return bool(isinstance(request, dict)
                and without(request, "toolCallId", "name", "arguments"))  # fmt: skip


def _result(builder: SessionBuilder, data: Object, line: int) -> dict[str, Any]:
    failed = data.get("success") is False
    said = data.get("result", data.get("error"))
    text = said.get("content", said.get("message")) if isinstance(said, dict) else said
    result = ToolResult(
        call_id=data["toolCallId"],
        name=text_in(data, "toolName"),
        text=result_text(text, builder, line),
        is_error=failed,
    )
    left = without(data, "toolCallId", "toolName", "success")
    return {"message": Message(role="tool", blocks=(result,)), "left": left}
