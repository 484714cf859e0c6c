"""Finds library items that no longer match the workspace, and brings them up to date.

Law: looking changes nothing. Changes are reported; bytes that were sent stay until a boundary.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from lamina.core.assembly.request_draft import Page
from lamina.core.journal import State
from lamina.core.text import label_of
from lamina.core.values.entry import ForgetEntry, ItemEntry
from lamina.core.values.item import TRAITS, AttachmentSpec, Item, ItemId, Shape, reference_to
from lamina.core.values.patch import Display, ItemLay, Patch
from lamina.engine.sources.attachments import AttachmentReader, Attachments

ChangeKind = Literal["edited", "deleted", "moved", "unreadable"]


class LibraryChange(Struct, frozen=True, kw_only=True):
    """A changed item in the context. `now` is its path if it was moved."""

    item: ItemId
    change: ChangeKind
    detail: str
    now: str = ""


class ItemComparison(Struct, frozen=True, kw_only=True):
    """How an item changed, and its current version, if there is one."""

    change: LibraryChange
    now: Item | None


async def compare_library(
    state: State, reader: AttachmentReader, *, but: Iterable[ItemId] = (), keep: bool = False
) -> tuple[ItemComparison, ...]:
    """Return the standing items that no longer match the workspace, except `but`. `keep` stores the
    bytes of their pictures, for bringing them up to date.
    """
    comparisons = []
    ignored_items = set(but) | set(state.library.forgotten)
    for item_id, standing in state.library.standing.items():
        item = state.library.items.get((item_id, standing.current))
        if item is None or item_id in ignored_items or not reference_to(item_id):
            continue
        if comparison := await _compare(item, state, reader, keep):
            comparisons.append(comparison)
    return tuple(comparisons)


async def _compare(
    item: Item, state: State, reader: AttachmentReader, keep: bool
) -> ItemComparison | None:
    label = label_of(item.id)
    change: ChangeKind = "unreadable"
    # Its pictures are part of its version, and only an active note has them.
    shape: Shape = "active" if item.pictures and item.kind == "note" else "attached"
    spec = AttachmentSpec(what=reference_to(item.id), shape=shape)
    reading = await reader.read(spec, state, keep=keep)
    now = reading.attachments[0].item if reading.attachments else None
    if now is None and reading.left_out and reading.left_out[0].reason != "missing":
        detail = reading.left_out[0].detail
    # An item in the context under its own id was there before: it only has the same name.
    elif now is None or (now.id != item.id and now.id in state.library.standing):
        change, detail, now = "deleted", f"{label} was deleted since it was shown", None
    elif now.id != item.id and not _is_same_file(item, now):
        change = "moved"
        detail = f"{label} was moved to {label_of(now.id)} since it was shown"
    elif (now.id, now.version) != (item.id, item.version):
        change, detail = "edited", f"{label} was edited since it was shown"
    else:
        return None
    path = now.key if now and change == "moved" else ""
    library_change = LibraryChange(item=item.id, change=change, detail=detail, now=path)
    return ItemComparison(change=library_change, now=now)


def _is_same_file(before: Item, now: Item) -> bool:
    """Return whether it is the same file as another kind of item: a former table, or a new one."""
    others = (TRAITS[before.kind].other_kind, TRAITS[now.kind].other_kind)
    return before.key == now.key and (now.kind == others[0] or before.kind == others[1])


async def change_warnings(
    state: State, reader: AttachmentReader, attached: Attachments
) -> tuple[str, ...]:
    """Return warnings about standing items that changed while the session was closed. Items that
    apply to this turn are sent again by the turn itself.
    """
    own = [attachment.item.id for attachment in attached.attachments]
    own += [ItemId(omission.what) for omission in attached.left_out]
    changes = [comparison.change for comparison in await compare_library(state, reader, but=own)]
    hint = "; attach it again, or refresh the session, to show it as it is"
    return tuple(change.detail + hint * (change.change != "deleted") for change in changes)


def bring_up_to_date(page: Page, comparisons: Sequence[ItemComparison]) -> None:
    """Lay down current versions, and forget items that are gone."""
    items = []
    for comparison in comparisons:
        if comparison.now is not None:
            write_item(page, comparison.now)
            items.append(comparison.now)
        item, now = comparison.change.item, comparison.now
        if comparison.change.change == "deleted" or (now is not None and now.id != item):
            page.write(ForgetEntry, item=item)
    lay_items(page, items, "lamina.refresh", "brought up to date")


def write_item(page: Page, item: Item) -> None:
    """Write an item to the journal, unless the journal contains this version of it."""
    if (item.id, item.version) not in page.state.library.items:
        page.write(ItemEntry, item=item)


def lay_items(page: Page, items: Iterable[Item], transformer: str, deed: str) -> None:
    """Lay down the items that are not in the context in their current version."""
    ops = []
    for item in items:
        standing = page.state.library.standing.get(item.id)
        if not (standing and standing.current == item.version):
            ops.append(ItemLay(item=item.id, version=item.version))
    if ops:
        title = f"{len(ops)} item{'s' * (len(ops) > 1)} {deed}"
        page.transform(transformer, Patch(ops=tuple(ops), display=Display(title=title)))
