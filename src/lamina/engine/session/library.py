"""What a person does with the library of a session: items are pinned, laid down, forgotten."""

from collections.abc import Iterable
from typing import Any

from lamina.core.assembly.boundary import consolidate
from lamina.core.notes.note_names import NoteNames
from lamina.core.values.entry import ForgetEntry, PinEntry
from lamina.core.values.item import GROUP_KINDS, Item, ItemId, key_of
from lamina.core.values.request import LeftOut
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.sources.attachments import Attachable, AttachmentReader
from lamina.engine.sources.changes import (
    LibraryChange,
    bring_up_to_date,
    compare_library,
    lay_items,
    write_item,
)
from lamina.errors import UsageError


async def pin(record: Record, reader: AttachmentReader, what: Attachable) -> bool:
    """Pins an item. False if it was pinned.

    Raises:
        UsageError: it cannot be read, or is not a single item.
    """
    reading = await reader.read(what, record.state)
    if not reading.attachments:
        why = reading.left_out[0].detail if reading.left_out else "there is nothing to pin"
        raise UsageError(f"cannot pin: {why}")
    # What comes along with it does so every turn, with its own worth.
    item = reading.attachments[0].item
    if item.kind in GROUP_KINDS:
        raise UsageError(f"cannot pin the {item.kind} {item.key}: pin the notes of it that matter")
    if item.id in record.state.library.pinned:
        return False
    async with record.writing() as page:
        write_item(page, item)
        page.write(PinEntry, item=item.id, version=item.version)
    return True


async def preload(
    record: Record, reader: AttachmentReader, attach: Iterable[Attachable]
) -> tuple[LeftOut, ...]:
    """Lays items down; gives back what could not be had."""
    missing: list[LeftOut] = []
    items: dict[tuple[ItemId, str], Item] = {}
    async with record.writing() as page:
        for what in attach:
            reading = await reader.read(what, record.state)
            missing += reading.left_out
            for item in (attachment.item for attachment in reading.attachments):
                write_item(page, item)
                items[item.id, item.version] = item
        lay_items(page, items.values(), "session.lay", "laid down")
    return tuple(missing)


async def find_changes(record: Record, reader: AttachmentReader) -> tuple[LibraryChange, ...]:
    """What stands and is no longer as the workspace has it."""
    comparisons = await compare_library(record.state, reader)
    return tuple(comparison.change for comparison in comparisons)


async def refresh(record: Record, reader: AttachmentReader) -> tuple[LibraryChange, ...]:
    """Brings what stands up to date; gives what changed."""
    comparisons = await compare_library(record.state, reader, keep=True)
    async with record.writing() as page:
        bring_up_to_date(page, comparisons)
    return tuple(comparison.change for comparison in comparisons)


async def unpin(record: Record, what: str) -> bool:
    return await _mark(record, what, record.state.library.pinned, PinEntry, pinned=False)


async def forget(record: Record, what: str) -> bool:
    standing = [
        item for item in record.state.library.standing if item not in record.state.library.forgotten
    ]
    return await _mark(record, what, standing, ForgetEntry)


async def rebuild(record: Record, layouts: Layouts, reason: str) -> bool:
    """Rebuilds the library. False if nothing would change.

    Raises:
        UsageError: there is no reason.
    """
    if not reason.strip():
        raise UsageError("consolidating moves bytes already sent: give a reason")
    settings = record.state.settings
    target = layouts.choose(None, settings)
    async with record.writing() as page:
        consolidate(page, layouts.assembler_for(target, settings.promotion), reason)
    return bool(page.written)


async def _mark(
    record: Record, what: str, among: Iterable[ItemId], kind: type[Any], **fields: Any
) -> bool:
    """Writes an entry for every item that `what` names. False if it names none."""
    items = _find_items(what, among)
    if not items:
        return False
    async with record.writing() as page:
        for item in items:
            page.write(kind, item=item, **fields)
    return True


def _find_items(what: str, among: Iterable[ItemId]) -> list[ItemId]:
    """The items of that id, path or name, else the one whose name fits."""
    items = list(among)
    if exact := [item for item in items if what in (item, key_of(item))]:
        return exact
    path = NoteNames(map(key_of, items)).resolve(what).path
    return [item for item in items if key_of(item) == path]
