"""Imports pi sessions, versions 1 to 3: entries, messages and patches.

Laws: the tree, the branches and the leaf (the last entry in the file) are the file's own. Content
that a model saw is a message; everything else is data. Every field that our entries lack is in
`extra` under `pi`. Version 1 has no ids: its entries follow one another, and `firstKeptEntryIndex`
counts the records in the file, readable or not, with the header as 0. Version 2 uses `hookMessage`
for `custom`. Patches (`context_transform`) use the names of our ops; their fields may have our
names or the documented ones. A patch is read whole or not at all, and fields that our ops lack are
in `rest`.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.call_pairs import pair_calls
from lamina.adapters.formats.content import (
    content_beyond_text,
    provider_of,
    read_content,
    read_result,
    read_usage,
    target_of,
)
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    LineRecord,
    Object,
    first_moment,
    list_in,
    object_in,
    parse_moment,
    text_in,
    without,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    EntryBase,
    EphemeralEntry,
    InfoEntry,
    LabelEntry,
    MessageEntry,
    ModelEntry,
    TransformEntry,
)
from lamina.core.values.message import Block, Message, Text, ToolDefinition
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    MessagesCachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
)
from lamina.core.values.struct_fields import with_our_names
from lamina.core.values.usage import Usage
from lamina.errors import InvalidSetting

_USAGE = ("input", "output", "cacheRead", "cacheWrite")


class PiMessage(Struct, frozen=True, kw_only=True):
    message: Message
    usage: Usage | None = None
    model: str = ""
    is_interrupted: bool = False
    rest: dict[str, Any] = {}
    # The kind of data for messages that the model does not see.
    hidden_kind: str = ""


def read_message(value: Object, builder: SessionBuilder, line: int) -> PiMessage | None:
    """Read a pi message; None if its role is unknown."""
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


_DISPLAY = ("title", "summary", "markdown")
_FIELDS: dict[str, frozenset[str]] = {
    str(kind.__struct_config__.tag): frozenset(kind.__struct_fields__) for kind in PatchOp.__args__
}
_TOOL = ToolDefinition.__struct_fields__


class PiPatch(Struct, frozen=True, kw_only=True):
    patch: Patch
    rest: dict[str, Any]


def read_patch(
    value: Object, builder: SessionBuilder, line: int, find_place: Callable[[str], int]
) -> PiPatch | None:
    """Read an entry's patch; None, and a reported problem, if one of its ops cannot be read.
    `find_place` returns where a foreign entry's messages begin in history."""
    patch = value.get("patch")
    ops: list[PatchOp] = []
    rest: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for index, op in enumerate(patch if isinstance(patch, list) else [patch]):
        try:
            patch_op, other_fields = _read_op(op, builder, line, find_place)
        except (ValueError, msgspec.ValidationError, InvalidSetting) as error:
            builder.report(line, "unreadable_patch", f"op {index}: {error}")
            return None
        ops.append(patch_op)
        if other_fields:
            beside[str(index)] = other_fields
    if beside:
        rest["patch"] = beside
    display, display_rest = _read_display(value.get("display"))
    if display_rest:
        rest["display"] = display_rest
    return PiPatch(patch=Patch(ops=tuple(ops), display=display), rest=rest)


def _read_op(
    op: Any, builder: SessionBuilder, line: int, find_place: Callable[[str], int]
) -> tuple[PatchOp, Object]:
    if not isinstance(op, dict):
        raise ValueError(f"a {type(op).__name__} is no op")
    tag = text_in(op, "op", "type")
    known_fields = _FIELDS.get(tag)
    if known_fields is None:
        raise ValueError(f"there is no op {tag!r}")
    flat = {**without(op, "op", "type", "options"), **object_in(op, "options")}
    if "first_kept" in known_fields and (kept := text_in(flat, "firstKeptEntryId")):
        flat = {"first_kept": find_place(kept), **without(flat, "firstKeptEntryId")}
    named = with_our_names(flat, known_fields)
    if named.get("scope") == "ephemeral" and "scope" in known_fields:
        named["scope"] = "uncached"
    if named.get("scope") == "cached" and not named.get("reason"):
        # Kept unchanged; an op that needs a reason and has none is not applied here.
        known_fields -= {"scope"}
    fields: Object = {"op": tag, **{name: named[name] for name in named if name in known_fields}}
    other_fields: Object = {name: named[name] for name in named if name not in known_fields}
    if "messages" in known_fields:
        fields["messages"] = _read_messages(fields.get("messages"), builder, line)
    if "tools" in known_fields and isinstance(fields.get("tools"), list):
        fields["tools"] = [_read_tool(tool) for tool in fields["tools"]]
    patch_op: PatchOp = msgspec.convert(fields, PatchOp)
    return patch_op, other_fields


def _read_messages(values: Any, builder: SessionBuilder, line: int) -> list[Object]:
    if not isinstance(values, list):
        raise ValueError("it has no list of messages")
    messages: list[Message] = []
    for value in values:
        pi_message = read_message(value, builder, line) if isinstance(value, dict) else None
        if pi_message is None:
            raise ValueError("a message in it has a role that is not known")
        messages.append(pi_message.message)
    paired_messages, repairs = pair_calls(messages)
    for detail in repairs:
        builder.report(line, "unpaired", detail)
    plain: list[Object] = msgspec.to_builtins(paired_messages)
    return plain


def _read_tool(tool: Any) -> Any:
    return with_our_names(tool, _TOOL) if isinstance(tool, dict) else 0


def _read_display(value: Any) -> tuple[Display | None, Any]:
    """Read how the patch is displayed, and the values that a foreign renderer needs."""
    if not isinstance(value, dict):
        return None, value
    title = text_in(value, "title")
    if not title:
        return None, value
    display = Display(
        title=title, summary=text_in(value, "summary"), markdown=text_in(value, "markdown")
    )
    known_names = [name for name in _DISPLAY if isinstance(value.get(name), str)]
    return display, without(value, *known_names)


SOURCE = "pi"
_PLACE = ("type", "id", "parentId", "timestamp")
# An entry's class and fields; None if the foreign entry is not understood.
EntryParts = tuple[type[EntryBase], dict[str, Any]] | None


def looks_like_pi(value: Object) -> bool:
    kind = value.get("type")
    if "at" in value and "parent" in value:
        return False  # one of our own journals, which is opened and not imported
    if kind == "session":
        return "id" in value and "payload" not in value
    if not isinstance(kind, str) or kind not in _READERS or "uuid" in value:
        return False
    return "parentId" in value or (kind == "message" and isinstance(value.get("message"), dict))


def import_pi(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import the session in a pi file."""
    header = next((line for line in file.lines if line.value.get("type") == "session"), None)
    value = header.value if header else {}
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(value.get("timestamp")) or first_moment(file.lines),
        workspace=text_in(value, "cwd"),
        forked_from=text_in(value, "parentSession"),
        extra=without(value, "type", "timestamp", "cwd", "parentSession"),
        line=header.number if header else None,
        problems=file.problems,
    )
    if header is None:
        builder.report(None, "no_header", "the file has no session header; its entries were read")
    records = [record for record in file.records if record is not header]
    return _Importer(builder, records, _with_ids(file.records, header)).run()


def _with_ids(records: tuple[LineRecord, ...], header: JsonLine | None) -> dict[int, Object]:
    """Return the objects by index, with the ids that version 1 lacks."""
    is_first_version = header is not None and header.value.get("version", 1) in (1, None)
    values: dict[int, Object] = {}
    # Counted as in `firstKeptEntryIndex`: the header is 0, even if lost, and every record written
    # counts, even if it can no longer be read.
    names: list[str] = [""] if header is None and isinstance(records[0], JsonLine) else []
    before: str | None = None
    for record in records:
        if not isinstance(record, JsonLine) or record is header:
            names.append("")
            continue
        value = record.value
        own = value.get("id")
        if not isinstance(own, str) or not own:
            own = f"#{record.index}"
            value = {**value, "id": own}
            if is_first_version or "parentId" not in value:
                value["parentId"] = before
        names.append(own)
        before = own
        values[record.index] = value
    for index, value in values.items():
        kept_index = value.get("firstKeptEntryIndex")
        if "firstKeptEntryId" in value or not isinstance(kept_index, int):
            continue
        # An entry that cannot be kept, such as the header, is replaced by the first one after it.
        if 0 <= kept_index < len(names) and (kept_id := next(filter(None, names[kept_index:]), "")):
            values[index] = {**value, "firstKeptEntryId": kept_id}
    return values


class _Importer:
    def __init__(
        self, builder: SessionBuilder, records: list[LineRecord], values: dict[int, Object]
    ) -> None:
        self.builder = builder
        self.records = records
        self.values = values

    def run(self) -> ImportedSession:
        return self.builder.add_in_order(self.records, self._ids, self._add)

    def _ids(self, record: LineRecord) -> tuple[str | None, str | None]:
        if not isinstance(record, JsonLine):
            return None, None
        value = self.values[record.index]
        parent = value.get("parentId")
        # Only a string names an entry; otherwise the parent is reported as missing.
        return value["id"], parent if parent is None or isinstance(parent, str) else repr(parent)

    def _add(self, line: JsonLine, is_cut: bool) -> str:
        builder, number, value = self.builder, line.number, self.values[line.index]
        own, parent = self._ids(line)
        if (duplicate := builder.find_duplicate(own, number, line.value)) is not None:
            return duplicate
        place = builder.find_parent(own, parent, number, is_cut=is_cut)
        kind = value.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        entry = _PiEntry(builder=builder, place=place, value=value, line=number)
        parts = reader(entry) if reader else None
        if parts is None:
            # Readers report entries that they cannot read; types without a reader are only data.
            if reader is None:
                builder.report(number, "unknown_type", f"an entry of type {kind!r}; kept as data")
            parts = CustomEntry, {"kind": f"pi.{kind}", "data": line.value}
        entry_type, fields = parts
        rest = {**fields.pop("rest", {})}
        if line.value.get("id") is not None:
            rest["id"] = line.value["id"]
        return builder.put(
            place, entry_type, at=line.at, line=number, raw=line.value, foreign_id=own, rest=rest,
            **fields,
        )  # fmt: skip


# -- one reader per type ---------------------------------------------------------------------------


class _PiEntry(Struct, frozen=True, kw_only=True):
    """A foreign entry, and its position in our tree."""

    builder: SessionBuilder
    place: str
    value: Object
    line: int

    def report(self, what: str, detail: str) -> None:
        self.builder.report(self.line, what, detail)

    def without(self, *names: str) -> Object:
        """Return the fields that our entries lack, except these names."""
        return without(self.value, *_PLACE, *names)

    def read_message(self, value: Any) -> PiMessage | None:
        return read_message(value, self.builder, self.line) if isinstance(value, dict) else None


def _message(entry: _PiEntry) -> EntryParts:
    message = entry.value.get("message")
    pi_message = entry.read_message(message)
    if pi_message is None:
        role = message.get("role") if isinstance(message, dict) else None
        entry.report("unknown_role", f"a message of role {role!r}; kept as data")
        return None
    rest = entry.without("message")
    if pi_message.rest:
        rest["message"] = pi_message.rest
    if pi_message.hidden_kind:
        return CustomEntry, {"kind": f"pi.{pi_message.hidden_kind}", "data": message, "rest": rest}
    fields = {
        "message": pi_message.message, "usage": pi_message.usage, "model": pi_message.model,
        "interrupted": pi_message.is_interrupted, "rest": rest,
    }  # fmt: skip
    return MessageEntry, fields


def _custom_message(entry: _PiEntry) -> EntryParts:
    pi_message = entry.read_message({**entry.value, "role": "custom"})
    if pi_message is None:
        return None
    # Not a question: the next question follows it.
    patch = Patch(ops=(MessagesCachedAppend(messages=(pi_message.message,)),))
    rest = without(pi_message.rest, *_PLACE, "customType")
    return TransformEntry, {"transformer": "pi.custom_message", "patch": patch, "rest": rest}


def _model(entry: _PiEntry) -> EntryParts:
    provider, model = text_in(entry.value, "provider"), text_in(entry.value, "modelId")
    target = target_of(provider, model)
    if not target:
        entry.report("unknown_model", "a change to a model without a name")
        return None
    rest = entry.without("provider", "modelId")
    if target != f"{provider}:{model}":
        rest |= {"provider": entry.value.get("provider"), "modelId": model}
    return ModelEntry, {"target": target, "rest": rest}


def _thinking_level(entry: _PiEntry) -> EntryParts:
    level = text_in(entry.value, "thinkingLevel")
    if not level:
        entry.report("unreadable_entry", "a change of the thinking level to none")
        return None
    patch = Patch(ops=(OptionsSet(reasoning=level),))
    rest = entry.without("thinkingLevel")
    return TransformEntry, {"transformer": "pi.thinking_level", "patch": patch, "rest": rest}


def _compaction(entry: _PiEntry) -> EntryParts:
    summary = text_in(entry.value, "summary")
    first_kept = _first_kept(entry, text_in(entry.value, "firstKeptEntryId"))
    op = CompactionApply(first_kept=first_kept, summary=summary, reason="compacted in pi")
    patch, rest = Patch(ops=(op,)), entry.without("summary")
    return TransformEntry, {"transformer": "pi.compaction", "patch": patch, "rest": rest}


def _first_kept(entry: _PiEntry, foreign_id: str) -> int:
    """Return the index of the first message from the kept entry on, among those at the entry's
    position."""
    builder, place = entry.builder, entry.place
    messages = builder.state(place).envelope.cached
    path, kept_id = builder.path(place), builder.find(foreign_id)
    if kept_id is None or kept_id not in path:
        entry.report("missing_kept", f"the kept entry {foreign_id!r} is not on the path")
        return len(messages)
    ids = set(path[: path.index(kept_id) + 1])
    index = next((i for i, message in enumerate(messages) if message.id in ids), len(messages))
    return builder.cut_at(place, index)


def _branch_summary(entry: _PiEntry) -> EntryParts:
    branch = entry.builder.find(text_in(entry.value, "fromId"))
    rest = entry.without("summary", *(("fromId",) if branch else ()))
    if branch is None:
        detail = f"no entry {entry.value.get('fromId')!r} that was left"
        entry.report("missing_branch", detail)
    summary = text_in(entry.value, "summary")
    return BranchSummaryEntry, {"branch": branch or "", "summary": summary, "rest": rest}


def _label(entry: _PiEntry) -> EntryParts:
    target = entry.builder.find(text_in(entry.value, "targetId"))
    if target is None:
        entry.report("missing_target", f"a label for {entry.value.get('targetId')!r}, unknown")
        return None
    label, rest = text_in(entry.value, "label"), entry.without("targetId", "label")
    return LabelEntry, {"target": target, "label": label, "rest": rest}


def _info(entry: _PiEntry) -> EntryParts:
    return InfoEntry, {"name": text_in(entry.value, "name"), "rest": entry.without("name")}


def _custom(entry: _PiEntry) -> EntryParts:
    kind = text_in(entry.value, "customType") or "pi.custom"
    rest = entry.without("customType", "data")
    return CustomEntry, {"kind": kind, "data": entry.value.get("data"), "rest": rest}


def _transform(entry: _PiEntry) -> EntryParts:
    pi_patch = read_patch(
        entry.value, entry.builder, entry.line, lambda kept: _first_kept(entry, kept)
    )
    if pi_patch is None:
        return None
    rest = entry.without("transformerName", "patch", "display") | pi_patch.rest
    name = text_in(entry.value, "transformerName") or "pi.transform"
    return TransformEntry, {"transformer": name, "patch": pi_patch.patch, "rest": rest}


def _ephemeral(entry: _PiEntry) -> EntryParts:
    messages: list[Message] = []
    unread_messages: list[Any] = []
    unmapped_fields: Object = {}
    for value in list_in(entry.value, "messages"):
        pi_message = entry.read_message(value)
        if pi_message is None or pi_message.message.role == "tool" or pi_message.message.calls:
            unread_messages.append(value)  # every vendor refuses a call or a result alone
            continue
        if beside := without(pi_message.rest, "timestamp"):
            unmapped_fields[str(len(messages))] = beside
        name = f"{text_in(entry.value, 'id')}:{len(messages)}"
        messages.append(replace(pi_message.message, id=name))
    rest = entry.without("messages")
    if unread_messages:
        count = len(unread_messages)
        detail = f"{count} messages for one request only, of roles that cannot stand alone"
        entry.report("unknown_role", detail)
        rest["messages"] = unread_messages
    if unmapped_fields:
        rest["fields"] = unmapped_fields
    return EphemeralEntry, {"messages": tuple(messages), "rest": rest}


_READERS: dict[str, Callable[[_PiEntry], EntryParts]] = {
    "message": _message,
    "custom_message": _custom_message,
    "model_change": _model,
    "thinking_level_change": _thinking_level,
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    "label": _label,
    "session_info": _info,
    "custom": _custom,
    "context_transform": _transform,
    "ephemeral": _ephemeral,
}


# -- line fields that describe requests ------------------------------------------------------------


class PiBlock(Struct):
    type: str = ""


class PiUsage(Struct, rename="camel", omit_defaults=True):
    input: int | float | None = None
    output: int | float | None = None
    cache_read: int | float | None = None
    cache_write: int | float | None = None


class PiRecord(Struct):
    role: str | None = None
    content: list[PiBlock] | str | None = None
    provider: str | None = None
    model: str | None = None
    usage: PiUsage | None = None
    timestamp: str | float | None = None


class PiLine(Struct, rename="camel"):
    """The line fields that the doctor reads; all others are skipped."""

    type: str | None = None
    id: str | None = None
    parent_id: str | None = None
    timestamp: str | float | None = None
    thinking_level: str | None = None
    message: PiRecord | None = None
