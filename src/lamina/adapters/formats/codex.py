"""Imports Codex sessions (`rollout-*.jsonl`).

Laws: the file is a single sequence of events. Consecutive items from the model are one message; a
request's usage belongs to the last message before its `token_count` event. A result directly
follows its call, even if the file has something in between. Events are kept as data, as they repeat
the items.
"""

from typing import Any, Literal

from msgspec import Struct

from lamina.adapters.formats.content import (
    ForeignMessage,
    content_beyond_text,
    read_openai_usage,
    target_of,
)
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
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
from lamina.adapters.formats.response_items import (
    ITEM_TYPES,
    base_instructions,
    read_answer,
    read_history,
    read_output,
    read_user_message,
    response_item_kind,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import EntryBase, MessageEntry, TransformEntry
from lamina.core.values.envelope import SystemPart
from lamina.core.values.patch import CompactionApply, MessagesCachedReplace, Patch

SOURCE = "codex"
_KINDS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_REASON = "compacted in Codex"

StepKind = Literal["answer", "output", "user", "turn", "compacted", "other", "unread"]


class _Step(Struct, frozen=True, kw_only=True):
    """Records that make one entry, and the number of compactions before them."""

    kind: StepKind
    era: int
    records: list[LineRecord]


def looks_like_codex(value: Object) -> bool:
    if value.get("type") in _KINDS and isinstance(value.get("payload"), dict):
        return True
    # Older files have items without payloads.
    return value.get("type") in ITEM_TYPES and (
        isinstance(value.get("content"), list) or "call_id" in value
    ) and "uuid" not in value and "parentId" not in value  # fmt: skip


def import_codex(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in a Codex rollout."""
    meta = next((line for line in file.lines if line.value.get("type") == "session_meta"), None)
    value = object_in(meta.value, "payload") if meta else {}
    instructions = base_instructions(value)
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(value.get("timestamp")) or first_moment(file.lines),
        system=(SystemPart(name="system", text=instructions),) if instructions else (),
        workspace=text_in(value, "cwd"),
        forked_from=text_in(value, "forked_from_id"),
        extra=without(value, "cwd", "forked_from_id", *_prompt_fields(value))
        | (_around(meta) if meta else {}),
        line=meta.number if meta else None,
        problems=file.problems,
    )
    records = [record for record in file.records if record is not meta]
    provider = text_in(value, "model_provider") or "openai"
    return _Importer(builder, provider).run(*_collect(records))


def _around(line: JsonLine) -> Object:
    """Return the fields of a line other than its payload."""
    if "payload" not in line.value:
        return {}
    is_known = line.value.get("type") in _KINDS
    return without(line.value, "payload", "timestamp", *(("type",) if is_known else ()))


def _item(line: JsonLine) -> Object:
    return object_in(line.value, "payload") or line.value


def _prompt_fields(meta: Object) -> tuple[str, ...]:
    """Return the header fields that contain only the system prompt."""
    instructions = object_in(meta, "base_instructions")
    if text_in(instructions, "text"):
        return ("base_instructions",) if len(instructions) == 1 else ()
    return ("instructions",) if text_in(meta, "instructions") else ()


def _collect(records: list[LineRecord]) -> tuple[list[_Step], dict[int, Object]]:
    """Collect a session's steps, and the usage of answers by index."""
    steps: list[_Step] = []
    usage: dict[int, Object] = {}
    open_answer: _Step | None = None
    last_answer: int | None = None
    total: Any = None
    era = 0
    for record in records:
        kind = _kind(record)
        if kind == "answer" and open_answer is not None:
            open_answer.records.append(record)
            continue
        era += kind == "compacted"
        step = _Step(kind=kind, era=era, records=[record])
        if kind == "answer":
            open_answer, last_answer = step, len(steps)
        elif kind not in ("other", "unread"):
            open_answer = None
        counts, running = _token_count(record)
        # An event with an unchanged total repeats the previous one.
        if counts and (running is None or running != total):
            total, open_answer = running, None
            if last_answer is not None:
                usage.setdefault(last_answer, counts)
        steps.append(step)
    return steps, usage


def _kind(record: LineRecord) -> StepKind:
    if isinstance(record, UnreadLine):
        return "unread"
    match record.value.get("type"):
        case "turn_context":
            return "turn"
        case "compacted":
            return "compacted"
        case "event_msg" | "session_meta":
            return "other"
        case _:
            return response_item_kind(_item(record))


def _token_count(record: LineRecord) -> tuple[Object, Any]:
    if isinstance(record, UnreadLine) or record.value.get("type") != "event_msg":
        return {}, None
    info = object_in(_item(record), "info")
    return object_in(info, "last_token_usage"), info.get("total_token_usage")


class _Importer:
    def __init__(self, builder: SessionBuilder, provider: str) -> None:
        self.builder = builder
        self.provider = provider
        # The last turn's context and its entry: repetitions are not written again.
        self.turn: tuple[Any, str] | None = None
        self.model = ""

    def run(self, steps: list[_Step], usage: dict[int, Object]) -> ImportedSession:
        outputs: dict[tuple[int, str], int] = {}
        for index, step in enumerate(steps):
            record = step.records[0]
            if step.kind == "output" and isinstance(record, JsonLine):
                call_id = text_in(_item(record), "call_id", "id")
                outputs.setdefault((step.era, call_id), index)
        written_steps: set[int] = set()
        for index, step in enumerate(steps):
            if index in written_steps:
                continue
            if step.kind != "answer":
                self._single(step.kind, step.records[0])
                continue
            answer = self._answer(step, usage.get(index, {}))
            for call in answer.message.calls:
                place = outputs.get((step.era, call.id), -1)
                if place > index and place not in written_steps:
                    written_steps.add(place)
                    self._single("output", steps[place].records[0])
        return self.builder.finish()

    def _single(self, kind: StepKind, record: LineRecord) -> None:
        builder = self.builder
        if isinstance(record, UnreadLine):
            builder.keep_unread_line(record)
            return
        match kind:
            case "output":
                self._write(record, read_output(_item(record), builder, record.number))
            case "user":
                self._write(record, read_user_message(_item(record), builder, record.number))
            case "turn":
                self._turn(record)
            case "compacted":
                self._write_compaction(record)
            case _:
                self._keep(record)

    def _answer(self, step: _Step, usage: Object) -> ForeignMessage:
        lines = [record for record in step.records if isinstance(record, JsonLine)]
        answer = read_answer([_item(line) for line in lines], self.builder, lines[0].number)
        place = self._write(
            lines[0], answer, usage=read_openai_usage(usage), model=self.model if usage else ""
        )
        for line in lines[1:]:
            self.builder.map_line(line.number, place)
            if around := _around(line):
                self.builder.keep_data("around", around, line=line.number)
        return answer

    def _write(self, line: JsonLine, foreign: ForeignMessage, **fields: Any) -> str:
        rest = _around(line)
        if foreign.rest:
            rest["items"] = foreign.rest
        return self._write_entry(line, MessageEntry, message=foreign.message, rest=rest, **fields)

    def _write_entry(self, line: JsonLine, kind: type[EntryBase], **fields: Any) -> str:
        last = self.builder.last
        return self.builder.put(last, kind, at=line.at, line=line.number, raw=line.value, **fields)

    def _keep(self, line: JsonLine) -> str:
        item = _item(line)
        name = text_in(item, "type") or str(line.value.get("type"))
        if line.value.get("type") not in ("event_msg", "session_meta"):
            self.builder.report(line.number, "unknown_type", f"{name!r} is not known; as data")
        return self.builder.keep_data(name, line.value, at=line.at, line=line.number)

    def _turn(self, line: JsonLine) -> None:
        builder, payload = self.builder, _item(line)
        if self.turn is not None and self.turn[0] == payload and not _around(line):
            builder.map_line(line.number, self.turn[1])
            return
        self.model = target_of(self.provider, text_in(payload, "model")) or self.model
        builder.use_model(builder.last, self.model, at=line.at, line=line.number)
        data = {**payload, **_around(line)}
        self.turn = payload, builder.keep_data("turn_context", data, at=line.at, line=line.number)

    def _write_compaction(self, line: JsonLine) -> None:
        builder, payload = self.builder, _item(line)
        history = list_in(payload, "replacement_history")
        summary = text_in(payload, "message")
        op: MessagesCachedReplace | CompactionApply
        if history:
            messages = read_history(history, builder, line.number)
            op = MessagesCachedReplace(messages=messages, reason=_REASON)
        elif summary:
            end = len(builder.state(builder.last).envelope.cached)
            op = CompactionApply(first_kept=end, summary=summary, reason=_REASON)
        else:
            builder.report(line.number, "unreadable_entry", "a compaction that leaves nothing")
            builder.keep_data("compacted", line.value, line=line.number)
            return
        # The patch contains the items; the surrounding fields, and a summary that duplicates the
        # history, are kept separately.
        rest = without(payload, "type") | _around(line)
        if not history:
            rest.pop("message")
        elif all(_is_plain(item) for item in history):
            del rest["replacement_history"]
        name, patch = f"{SOURCE}.compaction", Patch(ops=(op,))
        self._write_entry(line, TransformEntry, transformer=name, patch=patch, rest=rest)


def _is_plain(item: Any) -> bool:
    """Return whether an item is plain text, so that its message is complete."""
    if not isinstance(item, dict) or item.keys() - {"type", "role", "content"}:
        return False
    is_message = item.get("type") == "message" and item.get("role") in ("user", "assistant")
    return is_message and not content_beyond_text(item.get("content"))


# -- line fields that describe requests ------------------------------------------------------------


class CodexTokens(Struct, omit_defaults=True):
    input_tokens: int | float | None = None
    cached_input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    total_tokens: int | float | None = None


class CodexInfo(Struct):
    total_token_usage: CodexTokens | None = None
    last_token_usage: CodexTokens | None = None


class CodexSettings(Struct):
    reasoning_effort: str | None = None


class CodexMode(Struct):
    settings: CodexSettings | None = None


class CodexPart(Struct):
    type: str = ""


class CodexPayload(Struct):
    type: str | None = None
    role: str | None = None
    id: str | None = None
    session_id: str | None = None
    model: str | None = None
    effort: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    collaboration_mode: CodexMode | None = None
    info: CodexInfo | None = None
    content: list[CodexPart] | str | None = None


class CodexLine(Struct):
    """The line fields that the doctor reads; all others are skipped."""

    timestamp: str | float | None = None
    type: str | None = None
    payload: CodexPayload | None = None
