"""Imports Claude Code sessions.

Laws: lines with the same `message.id` are one answer: its position is that of the first line, its
usage that of the last, whose `output_tokens` is a streaming snapshot and is marked as one. Results
of one answer follow one another, although in the file each is a child of its call's line. A side
chain is a branch that the session does not continue. A compaction is the line with
`isCompactSummary`, on the path named by `logicalParentUuid` of the preceding boundary.
"""

from typing import Any

from msgspec import Struct

from lamina.adapters.formats.call_pairs import waiting_calls
from lamina.adapters.formats.content import (
    content_beyond_text,
    join_texts,
    messages_of,
    read_content,
    read_usage,
    target_of,
)
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    Object,
    UnreadLine,
    first_moment,
    object_in,
    text_in,
    without,
)
from lamina.adapters.formats.session_builder import SessionBuilder, order_by_parent
from lamina.core.values.entry import CustomEntry, InfoEntry, MessageEntry, TransformEntry
from lamina.core.values.message import Message
from lamina.core.values.patch import CompactionApply, Patch

SOURCE = "claude_code"
_PLACE = ("type", "uuid", "parentUuid", "timestamp", "sessionId", "message")
_ANSWER = ("role", "content", "usage", "model", "id")
_LONE = ("summary", "file-history-snapshot", "queue-operation", "custom-title", "ai-title")


def looks_like_claude_code(value: Object) -> bool:
    if "uuid" in value and ("parentUuid" in value or "isSidechain" in value):
        return True
    return value.get("type") in _LONE and ("leafUuid" in value or "sessionId" in value
                                           or "messageId" in value)  # fmt: skip


class _Group(Struct, frozen=True, kw_only=True):
    """The lines of one entry: all lines of an answer, or a single other line."""

    lines: tuple[JsonLine, ...]
    unread_line: UnreadLine | None = None

    @property
    def value(self) -> Object:
        return self.lines[0].value if self.lines else {}


def import_claude_code(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in a Claude Code file."""
    cwd = next((value for line in file.lines if (value := text_in(line.value, "cwd"))), "")
    own = next((value for line in file.lines if (value := text_in(line.value, "sessionId"))), "")
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=first_moment(file.lines),
        workspace=cwd,
        extra={"sessionId": own} if own else None,
        problems=file.problems,
    )
    importer = _Importer(builder, own)
    groups, homes = _group(file)

    def ids(group: _Group) -> tuple[str | None, str | None]:
        own, parent = _uuid(group.value), _parent(group.value)
        home = homes.get(parent) if parent else None
        return own, None if parent is None else home or parent

    for group, is_cut in order_by_parent(groups, ids):
        importer.add(group, is_cut)
    importer.report_boundaries()
    return builder.finish(importer.main)


def _uuid(value: Object) -> str | None:
    return text_in(value, "uuid") or None


def _parent(value: Object) -> str | None:
    return text_in(value, "parentUuid") or text_in(value, "logicalParentUuid") or None


def _group(file: JsonLinesFile) -> tuple[list[_Group], dict[str, str]]:
    """Return the groups in order of their first lines, and a map from the other lines of an answer
    to the uuid of its first."""
    batches: list[list[JsonLine] | UnreadLine] = []
    answers: dict[tuple[str, bool], list[JsonLine]] = {}
    homes: dict[str, str] = {}
    first_records: dict[str, JsonLine] = {}
    for record in file.records:
        if isinstance(record, UnreadLine):
            batches.append(record)
            continue
        value = record.value
        own = _uuid(value)
        name = text_in(object_in(value, "message"), "id")
        is_copy = own is not None and own in first_records and first_records[own].value == value
        if own is not None:
            first_records.setdefault(own, record)
        if value.get("type") != "assistant" or not name or is_copy or own is None:
            batches.append([record])  # the builder reports copies
            continue
        answer = answers.get((name, value.get("isSidechain") is True))
        if answer is None:
            answers[name, value.get("isSidechain") is True] = answer = []
            batches.append(answer)
        elif first := _uuid(answer[0].value):
            homes.setdefault(own, first)
        answer.append(record)
    groups = [
        _Group(lines=(), unread_line=batch)
        if isinstance(batch, UnreadLine)
        else _Group(lines=tuple(batch))
        for batch in batches
    ]
    return groups, homes


class _Importer:
    def __init__(self, builder: SessionBuilder, session: str) -> None:
        self.builder = builder
        self.session = session
        # The latest entries of the conversation and of the side chains.
        self.main = builder.root
        self.side: str | None = None
        # Boundaries whose summary has not arrived yet: the line and the trigger.
        self.boundaries: dict[str, tuple[int, str]] = {}

    def add(self, group: _Group, is_cut: bool) -> None:
        builder = self.builder
        if group.unread_line is not None:
            self.main = builder.keep_unread_line(group.unread_line, self.main)
            return
        line = group.lines[0]
        aside = line.value.get("isSidechain") is True
        nearest = (self.side or builder.root) if aside else self.main
        place = self._place(group, is_cut, nearest)
        for other in group.lines[1:]:
            builder.map_line(other.number, place)
            if uuid := _uuid(other.value):
                builder.add_alias(uuid, place)
        if aside:
            self.side = place
        else:
            self.main = place

    def _place(self, group: _Group, is_cut: bool, nearest: str) -> str:
        builder, line, value = self.builder, group.lines[0], group.value
        own, kind = _uuid(value), value.get("type")
        if own is None:
            return self._lone(line, nearest)
        if (duplicate := builder.find_duplicate(own, line.number, value)) is not None:
            return duplicate
        parent = builder.find_parent(
            own, _parent(value), line.number, is_cut=is_cut, nearest=nearest
        )
        if value.get("isCompactSummary") is True:
            return self._compaction(line, parent)
        if kind == "assistant" and isinstance(value.get("message"), dict):
            return self._answer(group, parent)
        if kind == "user" and isinstance(value.get("message"), dict):
            return self._user_message(line, parent)
        name = f"{SOURCE}.{text_in(value, 'subtype') or kind}"
        place = builder.put(
            parent, CustomEntry, at=line.at, line=line.number, raw=value, foreign_id=own,
            kind=name, data=value,
        )  # fmt: skip
        if value.get("subtype") == "compact_boundary":
            trigger = text_in(object_in(value, "compactMetadata"), "trigger")
            self.boundaries[place] = line.number, trigger
        return place

    def report_boundaries(self) -> None:
        """Report compactions without a summary: the history before them stays."""
        for line, _ in self.boundaries.values():
            self.builder.report(line, "missing_summary", "a compaction that has no summary")

    def _lone(self, line: JsonLine, nearest: str) -> str:
        """Place a line without a parent at its position in the file."""
        value = line.value
        name = text_in(value, "summary", "customTitle", "aiTitle")
        if value.get("type") in ("summary", "custom-title", "ai-title") and name:
            rest = without(value, "summary", "customTitle", "aiTitle")
            return self.builder.put(
                self.builder.tail(nearest), InfoEntry, at=line.at, line=line.number, raw=value,
                inline=True, name=name, rest=rest,
            )  # fmt: skip
        return self.builder.keep_data(
            str(value.get("type")), value, at=line.at, line=line.number, parent=nearest
        )

    def _compaction(self, line: JsonLine, parent: str) -> str:
        builder, value = self.builder, line.value
        message = object_in(value, "message")
        content = message.get("content")
        rest = self._rest(value) | without(message, "role", "content")
        _, trigger = self.boundaries.pop(parent, (0, ""))
        reason = f"compacted in Claude Code{f' ({trigger})' if trigger else ''}"
        end = len(builder.state(parent).envelope.cached)
        op = CompactionApply(first_kept=end, summary=join_texts(content), reason=reason)
        return builder.put(
            parent, TransformEntry, at=line.at, line=line.number, raw=value,
            foreign_id=_uuid(value), transformer=f"{SOURCE}.compaction", patch=Patch(ops=(op,)),
            rest=rest | content_beyond_text(content),
        )  # fmt: skip

    def _user_message(self, line: JsonLine, parent: str) -> str:
        builder, value = self.builder, line.value
        content = read_content(object_in(value, "message").get("content"), builder, line.number)
        rest = self._rest(value) | without(object_in(value, "message"), "role", "content")
        if content.rest:
            rest["blocks"] = content.rest
        messages = messages_of("user", content)
        inline = False
        if content.results:
            calls = {result.call_id for result in content.results}
            parent, inline = self._behind_results(value, parent, calls)
        place = parent
        for index, message in enumerate(messages):
            last = index == len(messages) - 1
            place = builder.put(
                place, MessageEntry, at=line.at, line=line.number, raw=value, message=message,
                foreign_id=_uuid(value) if last else None, rest=None if index else rest,
                inline=inline and not index,
            )  # fmt: skip
        return place

    def _rest(self, value: Object) -> Object:
        """Return the fields of a line that our entries lack; the obvious ones only if
        unexpected."""
        rest = without(value, *_PLACE) | {"uuid": value.get("uuid")}
        role = object_in(value, "message").get("role")
        if role not in (value.get("type"), None):
            rest["role"] = role
        if value.get("type") not in ("user", "assistant"):
            rest["type"] = value.get("type")
        if value.get("sessionId") not in (self.session, None):
            rest["sessionId"] = value["sessionId"]
        return rest

    def _behind_results(self, value: Object, parent: str, calls: set[str]) -> tuple[str, bool]:
        """Return where results of `calls` go. Results of one answer are siblings in the file; here
        they follow one another, unless one is a second attempt, which becomes a branch."""
        builder = self.builder
        answer = builder.find(_parent(value)) or parent
        for place in (parent, answer):
            if calls & set(waiting_calls(builder.state(place).envelope.cached)):
                return place, place == parent
        return parent, True

    def _answer(self, group: _Group, parent: str) -> str:
        builder, line = self.builder, group.lines[0]
        parts: list[Any] = []
        for answer_line in group.lines:
            content = object_in(answer_line.value, "message").get("content")
            line_parts = content if isinstance(content, list) else [content] if content else []
            parts += [part for part in line_parts if part not in parts]
        content = read_content(parts, builder, line.number, "anthropic")
        last = object_in(group.lines[-1].value, "message")
        usage = object_in(last, "usage")
        first = object_in(line.value, "message")
        rest = self._rest(line.value) | without(first, *_ANSWER) | {"message_id": first.get("id")}
        if usage:
            rest |= {"usage": first.get("usage"), "output_tokens_untrusted": True}
        if first.get("model") != last.get("model"):
            rest["model"] = first.get("model")
        if len(group.lines) > 1:
            # For the remaining lines, only the fields that differ from the first.
            shell = _shell(line.value)
            rest["merged"] = [
                {key: field for key, field in _shell(line.value).items() if shell.get(key) != field}
                for line in group.lines[1:]
            ]
        if content.rest:
            rest["blocks"] = content.rest
        if content.results:
            rest["content"] = parts
            builder.report(line.number, "unknown_block", "a tool result inside an answer; as data")
        model = text_in(last, "model")
        target = "" if model.startswith("<") else target_of("anthropic", model)
        place = builder.use_model(parent, target, at=line.at, line=line.number)
        return builder.put(
            place, MessageEntry, at=line.at, line=line.number, raw=line.value,
            foreign_id=_uuid(line.value), rest=rest, usage=read_usage(usage),
            message=Message(role="assistant", blocks=content.blocks), model=target,
        )  # fmt: skip


def _shell(value: Object) -> Object:
    """Return a line without its message content."""
    message = object_in(value, "message")
    return {**value, "message": {key: field for key, field in message.items() if key != "content"}}


# -- line fields that describe requests ------------------------------------------------------------


class ClaudeBlock(Struct):
    type: str = ""
    name: str = ""
    text: str | None = None


class ClaudeWrites(Struct, omit_defaults=True):
    ephemeral_1h_input_tokens: int | float | None = None


class ClaudeUsage(Struct, omit_defaults=True):
    input_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_creation: ClaudeWrites | None = None


class ClaudeMessage(Struct):
    id: str | None = None
    model: str | None = None
    content: list[ClaudeBlock] | str | None = None
    usage: ClaudeUsage | None = None


class ClaudeAttachment(Struct):
    type: str | None = None


class ClaudeThinking(Struct):
    level: str | None = None
    maxThinkingTokens: int | None = None  # noqa: N815 - the file's name for it


class ClaudeLine(Struct, rename="camel"):
    """The line fields that the doctor reads; all others are skipped."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    request_id: str | None = None
    timestamp: str | float | None = None
    version: str | None = None
    permission_mode: str | None = None
    message: ClaudeMessage | None = None
    attachment: ClaudeAttachment | None = None
    thinking_metadata: ClaudeThinking | None = None
