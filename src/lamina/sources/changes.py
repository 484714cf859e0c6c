"""What of the library is no longer as the workspace has it, and how to bring it up to date.

Law: looking changes nothing. What changed is named; bytes that were sent stay until a boundary.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from lamina.assembly.page import Page
from lamina.journal import State
from lamina.sources.attachments import AttachmentReader, Attachments
from lamina.text import label_of
from lamina.values.entry import ForgetEntry, ItemEntry
from lamina.values.item import Attachment, AttachmentSpec, Item, ItemId
from lamina.values.patch import Display, ItemLay, Patch

# What is read from a workspace, by its path or by its id.
_BY_PATH = ("note", "file", "pdf", "image")
_BY_ID = ("selection", "folder", "tag", "query")


class LibraryChange(Struct, frozen=True, kw_only=True):
    """An item that stands and is not as it was. `now` is its path if it was moved."""

    item: ItemId
    change: Literal["edited", "deleted", "moved", "unreadable"]
    detail: str
    now: str = ""


class ItemComparison(Struct, frozen=True, kw_only=True):
    change: LibraryChange
    attachment: Attachment | None = None


async def compare_library(
    state: State, reader: AttachmentReader, *, but: Iterable[ItemId] = (), keep: bool = False
) -> tuple[ItemComparison, ...]:
    """The items that stand and are not as the workspace has them now; `but` are not looked at. For
    those who bring them up to date, the bytes of pictures are kept."""
    found = []
    left = set(but) | set(state.forgotten)
    for item_id, standing in state.standing.items():
        key = (item_id, standing.current)
        if item_id in left or key not in state.items:
            continue
        item = state.items[key]
        if item.kind in _BY_PATH or item.kind in _BY_ID:
            compared = await _compare(item, state, reader, keep)
            if compared is not None:
                found.append(compared)
    return tuple(found)


async def _compare(
    item: Item, state: State, reader: AttachmentReader, keep: bool
) -> ItemComparison | None:
    label = label_of(item.id)
    had = await reader.read(
        AttachmentSpec(
            what=item.key if item.kind in _BY_PATH else item.id,
            # Its pictures are part of its version, and only an active note has them.
            shape="active" if item.pictures and item.kind == "note" else "attached",
        ),
        state,
        keep=keep,
    )
    now = had.attachments[0] if had.attachments else None
    reason = had.left_out[0].reason if had.left_out else "missing"
    if now is None and reason != "missing":
        detail = had.left_out[0].detail
        return ItemComparison(
            change=LibraryChange(item=item.id, change="unreadable", detail=detail)
        )
    # What stands under its own id was there before: it only has the same name.
    if now is None or (now.item.id != item.id and now.item.id in state.standing):
        detail = f"{label} was deleted since it was shown"
        return ItemComparison(change=LibraryChange(item=item.id, change="deleted", detail=detail))
    if now.item.id != item.id:
        detail = f"{label} was moved to {label_of(now.item.id)} since it was shown"
        change = LibraryChange(item=item.id, change="moved", detail=detail, now=now.item.key)
        return ItemComparison(change=change, attachment=now)
    if now.item.version != item.version:
        detail = f"{label} was edited since it was shown"
        change = LibraryChange(item=item.id, change="edited", detail=detail)
        return ItemComparison(change=change, attachment=now)
    return None


async def change_warnings(
    state: State, reader: AttachmentReader, found: Attachments
) -> tuple[str, ...]:
    """What stands and was changed while the session was closed. What applies to this turn is sent
    anew by the turn itself."""
    taken = [attachment.item.id for attachment in found.attachments]
    taken += [ItemId(omission.what) for omission in found.left_out]
    compared = await compare_library(state, reader, but=taken)
    hint = "attach it again, or refresh the session, to show it as it is"
    return tuple(
        comparison.change.detail
        if comparison.change.change == "deleted"
        else f"{comparison.change.detail}; {hint}"
        for comparison in compared
    )


def bring_up_to_date(page: Page, compared: Sequence[ItemComparison]) -> None:
    """Lays present versions down, and forgets what is gone."""
    ops = []
    for comparison in compared:
        if comparison.attachment is not None:
            item = comparison.attachment.item
            if (item.id, item.version) not in page.state.items:
                page.write(ItemEntry, item=item)
            standing = page.state.standing.get(item.id)
            if not (standing and standing.current == item.version):
                ops.append(ItemLay(item=item.id, version=item.version))
        if comparison.change.change in ("deleted", "moved"):
            page.write(ForgetEntry, item=comparison.change.item)
    if ops:
        title = f"{len(ops)} item{'s' * (len(ops) > 1)} brought up to date"
        page.transform("lamina.refresh", Patch(ops=tuple(ops), display=Display(title=title)))
