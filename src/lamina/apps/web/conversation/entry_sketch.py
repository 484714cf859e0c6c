"""Entries in outline: their kinds and how they connect, without their texts.

Law: a sketch matches the full entry; it is only cheaper to read from lines, because most of each
line is skipped.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from lamina.core.journal.journal import GrownEntries
from lamina.core.journal.journal_file import IndexedEntries
from lamina.core.values.entry import (
    CustomEntry,
    Entry,
    InfoEntry,
    LabelEntry,
    MessageEntry,
    TransformEntry,
    UnknownEntry,
)
from lamina.core.values.patch import MessagesCachedAppend, PatchOp, op_name


class MessageSketch(Struct, gc=False):
    """Who a message is from, and whether people see it."""

    role: str = ""
    shown: bool = True
    custom_type: str = ""


class OpSketch(Struct, gc=False):
    """The kind of an operation, and the messages it adds, if any."""

    op: str = ""
    messages: Any = ()

    @property
    def adds_shown(self) -> bool:
        """Return whether it adds a message that people see."""
        messages = self.messages if isinstance(self.messages, list | tuple) else ()
        return any(isinstance(m, dict) and m.get("shown", True) for m in messages)


class PatchSketch(Struct, gc=False):
    """The operations of a patch."""

    ops: tuple[OpSketch, ...] = ()


class EntrySketch(Struct, gc=False):
    """One entry in outline; fields that it does not have are empty."""

    id: str
    type: str
    parent: str | None = None
    message: MessageSketch | None = None
    transformer: str = ""
    patch: PatchSketch | None = None
    kind: str = ""
    name: str = ""
    target: str = ""
    label: str = ""


_lines = msgspec.json.Decoder(EntrySketch)


def read_sketches(entries: Mapping[str, Entry], start: int = 0) -> Iterator[EntrySketch]:
    """Yield the entries from number `start` on, in the order written."""
    if isinstance(entries, GrownEntries):
        base, added = entries.parts
        yield from read_sketches(base, start)
        yield from map(_sketch, islice(added, max(0, start - len(base)), None))
    elif isinstance(entries, IndexedEntries):
        for line in entries.lines_from(start):
            try:
                yield _lines.decode(line)
            except msgspec.MsgspecError:
                # From a version that writes something else there.
                yield _sketch_data(line)
    else:
        yield from map(_sketch, islice(entries.values(), start, None))


def _sketch(entry: Entry) -> EntrySketch:
    sketch = EntrySketch(
        id=entry.id, parent=entry.parent, type=str(type(entry).__struct_config__.tag)
    )
    match entry:
        case MessageEntry(message=message):
            sketch.message = MessageSketch(message.role, message.shown, message.custom_type)
        case TransformEntry(transformer=who, patch=patch):
            sketch.transformer = who
            sketch.patch = PatchSketch(tuple(map(_sketch_op, patch.ops)))
        case CustomEntry(kind=kind) | UnknownEntry(kind=kind):
            sketch.kind = kind
        case InfoEntry(name=name):
            sketch.name = name
        case LabelEntry(target=target, label=label):
            sketch.target, sketch.label = target, label
        case _:
            pass
    return sketch


def _sketch_op(op: PatchOp) -> OpSketch:
    messages = op.messages if isinstance(op, MessagesCachedAppend) else ()
    return OpSketch(op_name(op), [{"shown": message.shown} for message in messages])


def _sketch_data(data: bytes) -> EntrySketch:
    """Return what can be read of a malformed line: at least its place."""
    fields = msgspec.json.decode(data, type=dict[str, Any])
    return EntrySketch(
        id=str(fields.get("id", "")),
        type=str(fields.get("type", "")),
        parent=fields.get("parent") if isinstance(fields.get("parent"), str) else None,
    )
