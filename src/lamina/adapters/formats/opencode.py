"""Imports OpenCode sessions: one JSON document, `{info, messages: [{info, parts}]}`.

Laws: an OpenCode message is a whole run of steps; here an answer ends with its calls, and their
results follow, as they were sent. A message's usage is recorded with its last answer. Parts that a
model does not see are data.
"""

from typing import Any

from lamina.adapters.formats.content import read_data_url, target_of, write_arguments
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
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
from lamina.core.values.message import Block, Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.usage import Usage

SOURCE = "opencode"


def looks_like_opencode(value: Object) -> bool:
    return isinstance(value.get("info"), dict) and isinstance(value.get("messages"), list)


def import_opencode(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in an OpenCode export."""
    line = next(line for line in file.lines if looks_like_opencode(line.value))
    info = object_in(line.value, "info")
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(object_in(info, "time").get("created")) or 0.0,
        workspace=text_in(info, "directory"),
        forked_from=text_in(info, "parentID"),
        extra=without(info, "directory", "parentID", "title"),
        line=line.number,
        problems=file.problems,
    )
    if title := text_in(info, "title"):
        builder.put(builder.last, InfoEntry, at=None, name=title)
    importer = _Importer(builder, line.number)
    for index, message in enumerate(list_in(line.value, "messages")):
        importer.add(index, message)
    if rest := without(line.value, "info", "messages"):
        builder.keep_data("document", rest, line=line.number)
    for record in file.records:
        if isinstance(record, UnreadLine):
            builder.keep_unread_line(record)
        elif record is not line:
            builder.report(record.number, "unknown_type", "an object beside the session; as data")
            builder.keep_data("line", record.value, line=record.number)
    return builder.finish()


class _Importer:
    def __init__(self, builder: SessionBuilder, line: int) -> None:
        self.builder = builder
        self.line = line

    def add(self, index: int, value: Any) -> None:
        info = object_in(value, "info") if isinstance(value, dict) else {}
        parts = list_in(value, "parts") if isinstance(value, dict) else []
        role = info.get("role")
        if role not in ("user", "assistant"):
            detail = f"message {index} has the role {role!r}; kept as data"
            self.builder.report(self.line, "unknown_role", detail)
            self.builder.keep_data("unreadable", value, line=self.line)
            return
        at = parse_moment(object_in(info, "time").get("created"))
        extra = without(value, "parts") | {"info": without(info, "role")}
        if role == "assistant":
            self._answer(parts, info, at, extra)
        else:
            self._user_message(parts, at, extra)

    def _user_message(self, parts: list[Any], at: float | None, extra: Object) -> None:
        blocks: list[Block] = []
        rest: list[Any] = []
        for part in parts:
            self._add_part(part, blocks, rest)
        if rest:
            extra["parts"] = rest
        self._write(Message(role="user", blocks=tuple(blocks)), at, extra)

    def _answer(self, parts: list[Any], info: Object, at: float | None, extra: Object) -> None:
        target = target_of(text_in(info, "providerID"), text_in(info, "modelID"))
        self.builder.use_model(self.builder.last, target, at=at, line=self.line)
        steps: list[tuple[list[Block], list[ToolResult]]] = [([], [])]
        rest: list[Any] = []
        for part in parts:
            blocks, results = steps[-1]
            kind = part.get("type") if isinstance(part, dict) else None
            if results and kind != "tool":
                blocks, results = [], []
                steps.append((blocks, results))
            if kind == "tool" and text_in(part, "tool"):
                call, result = self._read_tool(part, len(blocks))
                blocks.append(call)
                results.append(result)
                state = without(object_in(part, "state"), "input", "output", "error")
                state |= {k: v for k, v in object_in(part, "state").items()
                          if k in ("output", "error") and not isinstance(v, str)}  # fmt: skip
                rest.append(without(part, "type", "tool", "state") | {"state": state}
                            if isinstance(part.get("state"), dict) else part)  # fmt: skip
                continue
            self._add_part(part, blocks, rest)
        # A step that began without content is not an answer; one alone is kept.
        steps = [step for step in steps if step[0]] or steps[:1]
        if rest:
            extra["parts"] = rest
        usage = read_opencode_usage(object_in(info, "tokens"))
        for index, (blocks, results) in enumerate(steps):
            last = index == len(steps) - 1
            self._write(
                Message(role="assistant", blocks=tuple(blocks)), at, {} if index else extra,
                usage=usage if last else None, model=target,
            )  # fmt: skip
            if results:
                self._write(Message(role="tool", blocks=tuple(results)), at, {})

    def _add_part(self, part: Any, blocks: list[Block], rest: list[Any]) -> None:
        """Append the block in a part, and the fields that the block lacks."""
        block = self._read_part(part)
        if block is None:
            rest.append(part)
            return
        blocks.append(block)
        if beside := without(part, "type", "text", "url", "mime"):
            rest.append(beside)

    def _read_part(self, part: Any) -> Block | None:
        if not isinstance(part, dict) or part.get("ignored") is True:
            return None
        match part.get("type"):
            case "text" if isinstance(part.get("text"), str):
                return Text(part["text"])
            case "reasoning" if isinstance(part.get("text"), str):
                return Thinking(text=part["text"])
            case "file" if text_in(part, "mime").startswith("image/"):
                return read_data_url(text_in(part, "url"), self.builder, self.line)
            case _:
                return None

    def _read_tool(self, part: Object, index: int) -> tuple[ToolCall, ToolResult]:
        state = object_in(part, "state")
        call = ToolCall(
            id=text_in(part, "callID", "id") or self.builder.mint_call(index),
            name=part["tool"],
            arguments=write_arguments(state.get("input")),
        )
        is_done = state.get("status") == "completed"
        text = text_in(state, "output") if is_done else text_in(state, "error", "output")
        if not is_done:
            text = text or f"The call ended with the status {state.get('status')!r}."
        result = ToolResult(call_id=call.id, name=call.name, text=text, is_error=not is_done)
        return call, result

    def _write(self, message: Message, at: float | None, extra: Object, **fields: Any) -> None:
        self.builder.put(
            self.builder.last, MessageEntry, at=at, line=self.line, raw=extra, message=message,
            rest=extra, **fields,
        )  # fmt: skip


def read_opencode_usage(tokens: Object) -> Usage | None:
    """Read OpenCode's usage figures, whose input excludes cached tokens."""
    if not tokens:
        return None
    cache = object_in(tokens, "cache")
    read_tokens, written_tokens = count_in(cache, "read"), count_in(cache, "write")
    return Usage(
        input=count_in(tokens, "input") + read_tokens + written_tokens,
        cached=read_tokens,
        written=written_tokens,
        output=count_in(tokens, "output") + count_in(tokens, "reasoning"),
        cache_reported="read" in cache,
    )
