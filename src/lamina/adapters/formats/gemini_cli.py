"""Imports Gemini CLI sessions (`~/.gemini/tmp/*/chats/session-*`): one JSON document, or one record
per line.

Laws: a document is `{sessionId, messages}`. In the newer format the first line has the document's
other fields, each message is a line, the last line with an id counts, `$set` changes earlier lines,
and `$rewindTo` takes back the message it names and everything after it. An answer with calls
becomes an answer followed by their results, as they were sent. The program's notes to its user are
data, as are messages taken back. Thoughts are summaries of thinking and are kept beside the answer:
the model never saw them again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.adapters.formats.content import read_data_url, target_of, write_arguments
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    Object,
    UnreadLine,
    count_in,
    list_in,
    object_in,
    parse_moment,
    text_in,
    without,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import InfoEntry, MessageEntry
from lamina.core.values.message import Block, Message, Text, ToolCall, ToolResult
from lamina.core.values.usage import Usage

TYPES = ("user", "gemini", "info", "error", "warning")


class GeminiRecord(Struct, frozen=True, kw_only=True):
    """A message as stored, and its line."""

    line: int
    value: Object


class GeminiSession(Struct, frozen=True, kw_only=True):
    """A session's own fields with their line, its messages, and everything else: messages taken
    back or replaced, and the lines responsible."""

    info: Object
    line: int | None
    records: tuple[GeminiRecord, ...]
    others: tuple[GeminiRecord, ...] = ()

    @property
    def id(self) -> str:
        return text_in(self.info, "sessionId")


def looks_like_gemini(value: Object) -> bool:
    """Return whether an object is a Gemini CLI session, or a line of one."""
    if "sessionId" in value and ("projectHash" in value or "startTime" in value):
        return "uuid" not in value
    if "$set" in value or "$rewindTo" in value:
        return True
    is_message = value.get("type") in TYPES and "id" in value and "timestamp" in value
    return is_message and "content" in value and "uuid" not in value and "payload" not in value


def read_gemini_session(lines: Sequence[JsonLine]) -> GeminiSession:
    """Read the session in these lines."""
    reader = _Reader()
    for line in lines:
        reader.add(line)
    return GeminiSession(
        info=reader.info,
        line=reader.line,
        records=tuple(reader.records.values()),
        others=tuple(reader.others),
    )


class _Reader:
    def __init__(self) -> None:
        self.info: Object = {}
        self.line: int | None = None
        self.records: dict[str, GeminiRecord] = {}
        self.others: list[GeminiRecord] = []

    def add(self, line: JsonLine) -> None:
        value = line.value
        if value.get("type") in TYPES:
            self._put(GeminiRecord(line=line.number, value=value))
        elif isinstance(value.get("sessionId"), str) and self.line is None:
            self.line = line.number
            self._change(line.number, value)
        else:
            # Lines that change earlier ones are applied, and also kept.
            self.others.append(GeminiRecord(line=line.number, value=value))
            if isinstance(value.get("$set"), dict):
                self._change(line.number, value["$set"])
            elif isinstance(value.get("$rewindTo"), str):
                self._rewind(value["$rewindTo"])

    def _change(self, line: int, fields: Object) -> None:
        messages = fields.get("messages")
        self.info |= {key: field for key, field in fields.items() if key != "messages"}
        if not isinstance(messages, list):
            if messages is not None:
                self.info["messages"] = messages
            return
        self.others += self.records.values()
        self.records = {}
        for message in messages:
            self._put(GeminiRecord(line=line, value=_as_object(message)))

    def _put(self, record: GeminiRecord) -> None:
        own = text_in(record.value, "id") or f"#{record.line}.{len(self.records)}"
        if (earlier := self.records.get(own)) is not None:
            self.others.append(earlier)
        self.records[own] = record

    def _rewind(self, name: str) -> None:
        names = [*self.records]
        start = names.index(name) if name in names else len(names)
        self.others += [self.records.pop(own) for own in names[start:]]


def _as_object(value: Any) -> Object:
    return value if isinstance(value, dict) else {"content": value}


def read_gemini_usage(tokens: Object) -> Usage | None:
    """Read an answer's usage figures, whose input includes cached tokens."""
    if not tokens:
        return None
    return Usage(
        input=count_in(tokens, "input"),
        cached=count_in(tokens, "cached"),
        output=count_in(tokens, "output") + count_in(tokens, "thoughts"),
        cache_reported="cached" in tokens,
    )


SOURCE = "gemini_cli"


def import_gemini_cli(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in a Gemini CLI file."""
    stored = read_gemini_session(file.lines)
    info = stored.info
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(info.get("startTime")) or 0.0,
        extra=without(info, "summary"),
        line=stored.line,
        problems=file.problems,
    )
    if summary := text_in(info, "summary"):
        builder.put(builder.last, InfoEntry, at=None, name=summary)
    importer = _Importer(builder)
    for record in stored.records:
        importer.add(record)
    for record in stored.others:
        builder.keep_data("line", record.value, line=record.line)
    for unread in file.records:
        if isinstance(unread, UnreadLine):
            builder.keep_unread_line(unread)
    return builder.finish()


class _Importer:
    def __init__(self, builder: SessionBuilder) -> None:
        self.builder = builder

    def add(self, record: GeminiRecord) -> None:
        value = record.value
        at = parse_moment(value.get("timestamp"))
        match value.get("type"):
            case "user":
                blocks, rest = self._read_content(value.get("content"), record.line)
                extra = without(value, "type", "timestamp", "content") | rest
                self._write(Message(role="user", blocks=blocks), at, record.line, extra)
            case "gemini":
                self._answer(record, at)
            case _:
                kind = text_in(value, "type") or "unreadable"
                self.builder.keep_data(kind, value, at=at, line=record.line)

    def _answer(self, record: GeminiRecord, at: float | None) -> None:
        value, line = record.value, record.line
        blocks, rest = self._read_content(value.get("content"), line)
        calls: list[ToolCall] = []
        results: list[ToolResult] = []
        beside: list[Any] = []
        for index, call in enumerate(list_in(value, "toolCalls")):
            if not isinstance(call, dict) or not text_in(call, "name"):
                self.builder.report(line, "unknown_block", "a call that cannot be read; as data")
                beside.append(call)
                continue
            calls.append(
                ToolCall(
                    id=text_in(call, "id") or self.builder.mint_call(index),
                    name=call["name"],
                    arguments=write_arguments(call.get("args")),
                )
            )
            results.append(_read_result(call, calls[-1]))
            beside.append({k: v for k, v in without(call, "id", "name").items() if k != "args"})
        extra = without(value, "type", "timestamp", "content", "model") | rest
        if isinstance(value.get("toolCalls"), list):
            extra |= {"toolCalls": beside}
        target = target_of("gemini", text_in(value, "model"))
        self.builder.use_model(self.builder.last, target, at=at, line=line)
        message = Message(role="assistant", blocks=(*blocks, *calls))
        usage = read_gemini_usage(object_in(value, "tokens"))
        self._write(message, at, line, extra, usage=usage, model=target)
        if results:
            self._write(Message(role="tool", blocks=tuple(results)), at, line, {})

    def _read_content(self, content: Any, line: int) -> tuple[tuple[Block, ...], Object]:
        """Read the blocks in a message's content, and the fields that our blocks lack."""
        if isinstance(content, str):
            return ((Text(content),) if content else ()), {}
        blocks: list[Block] = []
        rest: list[Any] = []
        parts = content if isinstance(content, list) else [] if content is None else [content]
        for part in parts:
            block = self._read_part(part, line)
            if block is None:
                rest.append(part)
                continue
            blocks.append(block)
            if isinstance(part, dict) and (beside := _beside(part)):
                rest.append(beside)
        return tuple(blocks), {"parts": rest} if rest else {}

    def _read_part(self, part: Any, line: int) -> Block | None:
        if isinstance(part, str):
            return Text(part)
        if not isinstance(part, dict):
            return None
        if isinstance(part.get("text"), str) and part.get("thought") is not True:
            return Text(part["text"])
        blob = object_in(part, "inlineData")
        if text_in(blob, "mimeType").startswith("image/") and text_in(blob, "data"):
            url = f"data:{blob['mimeType']};base64,{blob['data']}"
            return read_data_url(url, self.builder, line)
        return None

    def _write(
        self, message: Message, at: float | None, line: int, extra: Object, **fields: Any
    ) -> None:
        self.builder.put(
            self.builder.last, MessageEntry, at=at, line=line, raw=extra, message=message,
            rest=extra, **fields,
        )  # fmt: skip


def _beside(part: Object) -> Object:
    """Return the fields of a part that its block lacks."""
    rest = {key: field for key, field in part.items() if key not in ("text", "inlineData")}
    blob = {k: v for k, v in object_in(part, "inlineData").items() if k not in ("mimeType", "data")}
    if "text" in part and "inlineData" in part:
        blob = object_in(part, "inlineData")
    return rest | ({"inlineData": blob} if blob else {})


def _read_result(call: Mapping[str, Any], read: ToolCall) -> ToolResult:
    texts = [_response_text(part) for part in list_in(call, "result")]
    text = "\n".join(text for text in texts if text)
    is_done = call.get("status") == "success"
    if not text:
        shown = call.get("resultDisplay")
        text = shown if isinstance(shown, str) else ""
    text = text or f"The call ended with the status {call.get('status')!r}."
    return ToolResult(call_id=read.id, name=read.name, text=text, is_error=not is_done)


def _response_text(part: Any) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    response = object_in(object_in(part, "functionResponse"), "response")
    return text_in(response, "output", "error") or text_in(part, "text")
