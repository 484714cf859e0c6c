"""Sessions of pi, versions 1 to 3.

Laws: the tree, the branches and the leaf (the last entry of the file) are those of the file. What a
model saw is a message, what it did not see is data. Every field that has no place of ours is in
`extra` under `pi`. Version 1 has no ids: its entries follow one another, and `firstKeptEntryIndex`
counts the records of the file, readable or not, with the header as 0. Version 2 says `hookMessage`
for `custom`.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import target_of
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_fields import Object, list_in, parse_moment, text_in, without
from lamina.adapters.formats.json_lines import JsonLine, JsonLinesFile, LineRecord, first_moment
from lamina.adapters.formats.pi_messages import PiMessage, read_message
from lamina.adapters.formats.pi_patches import read_patch
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
from lamina.core.values.message import Message
from lamina.core.values.patch import CompactionApply, MessagesCachedAppend, OptionsSet, Patch

SOURCE = "pi"
_PLACE = ("type", "id", "parentId", "timestamp")
# The class of an entry and its fields; None if the foreign entry is not understood.
EntryParts = tuple[type[EntryBase], dict[str, Any]] | None


def looks_like_pi(value: Object) -> bool:
    kind = value.get("type")
    if "at" in value and "parent" in value:
        return False  # a journal of our own, which is opened and not imported
    if kind == "session":
        return "id" in value and "payload" not in value
    if not isinstance(kind, str) or kind not in _READERS or "uuid" in value:
        return False
    return "parentId" in value or (kind == "message" and isinstance(value.get("message"), dict))


def import_pi(file: JsonLinesFile, session: str) -> ImportedSession:
    """The session of a pi file."""
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
    """The objects by their index, with the ids that version 1 does not have."""
    is_first_version = header is not None and header.value.get("version", 1) in (1, None)
    values: dict[int, Object] = {}
    # By what `firstKeptEntryIndex` counts: the header as 0, also if it is lost, and every record
    # that was written, also if it cannot be read any more.
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
        # What cannot be kept, as the header, gives way to the first entry behind it.
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
        # Anything but a text names no entry: the parent is missing, which is reported.
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
            # Readers report what they cannot read; what has no reader is only data.
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


# -- one reader for each type --------------------------------------------------------------------


class _PiEntry(Struct, frozen=True, kw_only=True):
    """A foreign entry, and the position in our tree that it goes to."""

    builder: SessionBuilder
    place: str
    value: Object
    line: int

    def report(self, what: str, detail: str) -> None:
        self.builder.report(self.line, what, detail)

    def without(self, *names: str) -> Object:
        """Fields that have no place of ours, less those of these names."""
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
    # It asks nothing: the next question comes behind it.
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
    """The index, in the messages at the entry's place, of the first one from the kept entry on."""
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
            unread_messages.append(value)  # a call or a result alone is refused by every vendor
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
