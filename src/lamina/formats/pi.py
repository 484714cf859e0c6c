"""Sessions of pi, versions 1 to 3.

Laws: the tree, the branches and the leaf (the last entry of the file) are those of the file. What a
model saw is a message, what it did not see is data. Every field that has no place of ours is in
`extra` under `pi`. Version 1 has no ids: its entries follow one another, and `firstKeptEntryIndex`
counts the objects of the file with the header as 0. Version 2 says `hookMessage` for `custom`.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lamina.formats.content import target_of
from lamina.formats.imported_session import ImportedSession
from lamina.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    LineRecord,
    Object,
    first_moment,
    list_in,
    parse_moment,
    text_in,
    without,
)
from lamina.formats.parent_order import order_by_parent
from lamina.formats.pi_messages import read_message
from lamina.formats.pi_patches import read_patch
from lamina.formats.session_builder import SessionBuilder
from lamina.values.entry import (
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
from lamina.values.message import Message
from lamina.values.patch import CompactionApply, OptionsSet, Patch

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


def import_pi(text: JsonLinesFile, session: str) -> ImportedSession:
    """The session of a pi file."""
    header = next((line for line in text.lines if line.value.get("type") == "session"), None)
    value = header.value if header else {}
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=parse_moment(value.get("timestamp")) or first_moment(text.lines),
        workspace=text_in(value, "cwd"),
        forked_from=text_in(value, "parentSession"),
        extra=without(value, "type", "timestamp", "cwd", "parentSession"),
        line=header.number if header else None,
        problems=text.problems,
    )
    if header is None:
        builder.report(None, "no_header", "the file has no session header; its entries were read")
    records = [record for record in text.records if record is not header]
    lines = _with_ids(text.lines, header)
    return _Importer(builder, records, lines).run()


def _with_ids(lines: tuple[JsonLine, ...], header: JsonLine | None) -> dict[int, Object]:
    """The objects by line number, with the ids that version 1 does not have."""
    first = header is not None and header.value.get("version", 1) in (1, None)
    found: dict[int, Object] = {}
    names: list[str] = []
    before: str | None = None
    for index, line in enumerate(lines):
        value = line.value
        own = value.get("id")
        if line is header:
            names.append("")
            continue
        if not isinstance(own, str) or not own:
            own = f"#{index}"
            value = {**value, "id": own}
            if first:
                value["parentId"] = before
            else:
                value.setdefault("parentId", before)
        names.append(own)
        before = own
        found[line.number] = value
    for number, value in found.items():
        kept = value.get("firstKeptEntryIndex")
        if "firstKeptEntryId" not in value and isinstance(kept, int) and 0 <= kept < len(names):
            # The header cannot be kept; everything behind it is.
            named = names[kept] or next(filter(None, names), "")
            found[number] = {**value, "firstKeptEntryId": named}
    return found


class _Importer:
    def __init__(
        self, builder: SessionBuilder, records: list[LineRecord], values: dict[int, Object]
    ) -> None:
        self.builder = builder
        self.records = records
        self.values = values

    def run(self) -> ImportedSession:
        builder = self.builder
        placed: dict[int, str] = {}
        for record, cut in order_by_parent(self.records, self._ids):
            if not isinstance(record, JsonLine):
                placed[record.number] = builder.keep_unread(record)
                continue
            placed[record.number] = self._add(record, self.values[record.number], cut)
        last = self.records[-1].number if self.records else None
        return builder.finish(placed[last] if last is not None else None)

    def _ids(self, record: LineRecord) -> tuple[str | None, str | None]:
        if not isinstance(record, JsonLine):
            return None, None
        value = self.values[record.number]
        parent = value.get("parentId")
        # What is no id names no entry: its parent is missing, and that is reported.
        return value["id"], parent if parent is None or isinstance(parent, str) else repr(parent)

    def _add(self, line: JsonLine, value: Object, cut: bool) -> str:
        builder, number = self.builder, line.number
        own, parent = self._ids(line)
        if (known := builder.known(own, number, line.value)) is not None:
            return known
        place = builder.find_parent(own, parent, number, cut=cut)
        kind = value.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        given = _Given(builder=builder, place=place, value=value, line=number)
        made = reader(given) if reader else None
        if made is None:
            # Readers that know better have said so; what has no reader is only data.
            if reader is None:
                builder.report(number, "unknown_type", f"an entry of type {kind!r}; kept as data")
            made = CustomEntry, {"kind": f"pi.{kind}", "data": line.value}
        fields = made[1]
        left = {**fields.pop("left", {})}
        if line.value.get("id") is not None:
            left["id"] = line.value["id"]
        extra = {SOURCE: left} if left else {}
        return builder.put(
            place, made[0], at=parse_moment(value.get("timestamp")), line=number, raw=line.value,
            foreign_id=own, extra=extra, **fields,
        )  # fmt: skip


# -- one reader for each type --------------------------------------------------------------------


class _Given(Struct, frozen=True, kw_only=True):
    """A foreign entry, and the position in our tree that it goes to."""

    builder: SessionBuilder
    place: str
    value: Object
    line: int


def _message(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    held = value.get("message")
    read = read_message(held, builder, line) if isinstance(held, dict) else None
    if read is None:
        role = held.get("role") if isinstance(held, dict) else None
        builder.report(line, "unknown_role", f"a message of role {role!r}; kept as data")
        return None
    left = without(value, *_PLACE, "message")
    if read.left:
        left["message"] = read.left
    if read.hidden:
        return CustomEntry, {"kind": f"pi.{read.hidden}", "data": held, "left": left}
    fields = {
        "message": read.message, "usage": read.usage, "model": read.model,
        "interrupted": read.interrupted, "left": left,
    }  # fmt: skip
    return MessageEntry, fields


def _custom_message(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    read = read_message({**value, "role": "custom"}, builder, line)
    if read is None:
        return None
    return MessageEntry, {"message": read.message, "left": without(read.left, *_PLACE)}


def _model(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    provider, model = text_in(value, "provider"), text_in(value, "modelId")
    target = target_of(provider, model)
    if not target:
        builder.report(line, "unknown_model", "a change to a model without a name")
        return None
    left = without(value, *_PLACE, "provider", "modelId")
    if target != f"{provider}:{model}":
        left |= {"provider": value.get("provider"), "modelId": model}
    return ModelEntry, {"target": target, "left": left}


def _thinking_level(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    level = text_in(value, "thinkingLevel")
    if not level:
        builder.report(line, "unreadable_entry", "a change of the thinking level to none")
        return None
    patch = Patch(ops=(OptionsSet(reasoning=level),))
    left = without(value, *_PLACE, "thinkingLevel")
    return TransformEntry, {"transformer": "pi.thinking_level", "patch": patch, "left": left}


def _compaction(given: _Given) -> EntryParts:
    builder, place, value, line = given.builder, given.place, given.value, given.line
    kept = text_in(value, "firstKeptEntryId")
    op = CompactionApply(
        first_kept=_first_kept(builder, place, kept, line),
        summary=text_in(value, "summary"),
        reason="compacted in pi",
    )
    left = without(value, *_PLACE, "summary")
    return TransformEntry, {
        "transformer": "pi.compaction", "patch": Patch(ops=(op,)), "left": left
    }  # fmt: skip


def _first_kept(builder: SessionBuilder, place: str, foreign: str, line: int) -> int:
    """The index, in the messages at `place`, of the first one from the kept entry on."""
    cached = builder.state(place).envelope.cached
    kept = builder.find(foreign)
    behind = []
    for each in builder.path(place):
        behind.append(each)
        if each == kept:
            break
    else:
        builder.report(line, "missing_kept", f"the kept entry {foreign!r} is not on the path")
        return len(cached)
    ids = set(behind)
    index = next((i for i, message in enumerate(cached) if message.id in ids), len(cached))
    return builder.cut_at(place, index)


def _branch_summary(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    branch = builder.find(text_in(value, "fromId"))
    left = without(value, *_PLACE, "summary", *(("fromId",) if branch else ()))
    if branch is None:
        builder.report(line, "missing_branch", f"no entry {value.get('fromId')!r} that was left")
    fields = {"branch": branch or "", "summary": text_in(value, "summary"), "left": left}
    return BranchSummaryEntry, fields


def _label(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    target = builder.find(text_in(value, "targetId"))
    if target is None:
        builder.report(line, "missing_target", f"a label for {value.get('targetId')!r}, unknown")
        return None
    left = without(value, *_PLACE, "targetId", "label")
    return LabelEntry, {"target": target, "label": text_in(value, "label"), "left": left}


def _info(given: _Given) -> EntryParts:
    value = given.value
    return InfoEntry, {"name": text_in(value, "name"), "left": without(value, *_PLACE, "name")}


def _custom(given: _Given) -> EntryParts:
    value = given.value
    kind = text_in(value, "customType") or "pi.custom"
    left = without(value, *_PLACE, "customType", "data")
    return CustomEntry, {"kind": kind, "data": value.get("data"), "left": left}


def _transform(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    read = read_patch(value, builder, line)
    if read is None:
        return None
    left = without(value, *_PLACE, "transformerName", "patch", "display") | read.left
    name = text_in(value, "transformerName") or "pi.transform"
    return TransformEntry, {"transformer": name, "patch": read.patch, "left": left}


def _ephemeral(given: _Given) -> EntryParts:
    builder, value, line = given.builder, given.value, given.line
    messages: list[Message] = []
    unread: list[Any] = []
    unmapped: Object = {}
    for held in list_in(value, "messages"):
        read = read_message(held, builder, line) if isinstance(held, dict) else None
        if read is None or read.message.role == "tool" or read.message.calls:
            unread.append(held)  # a call or a result alone is refused by every vendor
            continue
        if beside := without(read.left, "timestamp"):
            unmapped[str(len(messages))] = beside
        name = f"{text_in(value, 'id')}:{len(messages)}"
        messages.append(Message(role=read.message.role, blocks=read.message.blocks, id=name))
    if unread:
        detail = f"{len(unread)} messages for one request only, of roles that cannot stand alone"
        builder.report(line, "unknown_role", detail)
    left = without(value, *_PLACE, "messages")
    if unread:
        left["messages"] = unread
    if unmapped:
        left["fields"] = unmapped
    return EphemeralEntry, {"messages": tuple(messages), "left": left}


_READERS: dict[str, Callable[[_Given], EntryParts]] = {
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
