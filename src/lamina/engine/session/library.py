"""Changes the library of a session at a person's request: pins items, lays them down, forgets
them.
"""

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
    """Pin an item. Return False if it was already pinned.

    Raises:
        UsageError: the item cannot be read, or is not a single item.
    """
    reading = await reader.read(what, record.state)
    if not reading.attachments:
        why = reading.left_out[0].detail if reading.left_out else "the item to pin is missing"
        raise UsageError(f"cannot pin: {why}")
    # Items that it brings along come on every turn, with priorities of their own.
    item = reading.attachments[0].item
    if item.kind in GROUP_KINDS:
        raise UsageError(f"cannot pin the {item.kind} {item.key}: pin its important notes instead")
    if item.id in record.state.library.pinned:
        return False
    async with record.writing() as page:
        write_item(page, item)
        page.write(PinEntry, item=item.id, version=item.version)
    return True


async def preload(
    record: Record, reader: AttachmentReader, attach: Iterable[Attachable]
) -> tuple[LeftOut, ...]:
    """Lay items down; return those that could not be read."""
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
    """Return items in the context that no longer match the workspace."""
    comparisons = await compare_library(record.state, reader)
    return tuple(comparison.change for comparison in comparisons)


async def refresh(record: Record, reader: AttachmentReader) -> tuple[LibraryChange, ...]:
    """Bring the standing items up to date; return the changes."""
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
    """Rebuild the library. Return False if nothing would change.

    Raises:
        UsageError: the reason is missing.
    """
    if not reason.strip():
        raise UsageError("consolidating moves bytes already sent: pass a reason")
    settings = record.state.settings
    target = layouts.choose(None, settings)
    async with record.writing() as page:
        consolidate(page, layouts.assembler_for(target, settings.promotion), reason)
    return bool(page.written)


async def _mark(
    record: Record, what: str, among: Iterable[ItemId], kind: type[Any], **fields: Any
) -> bool:
    """Write an entry for every item that `what` names. Return False if it matches none."""
    items = _find_items(what, among)
    if not items:
        return False
    async with record.writing() as page:
        for item in items:
            page.write(kind, item=item, **fields)
    return True


def _find_items(what: str, among: Iterable[ItemId]) -> list[ItemId]:
    """Return the items with that id, path or name, else those whose name matches."""
    items = list(among)
    if exact := [item for item in items if what in (item, key_of(item))]:
        return exact
    path = NoteNames(map(key_of, items)).resolve(what).path
    return [item for item in items if key_of(item) == path]
