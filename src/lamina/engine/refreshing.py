"""What of the library is no longer as the workspace has it, and how to bring it up to date.

Law: looking changes nothing. What changed is named; bytes that were sent stay until a boundary.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from lamina.engine.hydrating import Hydrated, Hydrator
from lamina.engine.writing import Pen
from lamina.journal import State
from lamina.text import label_of
from lamina.values.entry import ForgetEntry, ItemEntry
from lamina.values.item import Attachment, Item, ItemId, Wanted
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


class Compared(Struct, frozen=True, kw_only=True):
    change: LibraryChange
    attachment: Attachment | None = None


async def compare_library(
    state: State, hydrator: Hydrator, *, but: Iterable[ItemId] = (), keep: bool = False
) -> tuple[Compared, ...]:
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
            compared = await _compare(item, state, hydrator, keep)
            if compared is not None:
                found.append(compared)
    return tuple(found)


async def _compare(item: Item, state: State, hydrator: Hydrator, keep: bool) -> Compared | None:
    label = label_of(item.id)
    had = await hydrator.read(
        Wanted(
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
        return Compared(change=LibraryChange(item=item.id, change="unreadable", detail=detail))
    # What stands under its own id was there before: it only has the same name.
    if now is None or (now.item.id != item.id and now.item.id in state.standing):
        detail = f"{label} was deleted since it was shown"
        return Compared(change=LibraryChange(item=item.id, change="deleted", detail=detail))
    if now.item.id != item.id:
        detail = f"{label} was moved to {label_of(now.item.id)} since it was shown"
        change = LibraryChange(item=item.id, change="moved", detail=detail, now=now.item.key)
        return Compared(change=change, attachment=now)
    if now.item.version != item.version:
        detail = f"{label} was edited since it was shown"
        change = LibraryChange(item=item.id, change="edited", detail=detail)
        return Compared(change=change, attachment=now)
    return None


async def tell_changes(state: State, hydrator: Hydrator, found: Hydrated) -> tuple[str, ...]:
    """What stands and was changed while the session was closed. What applies to this turn is sent
    anew by the turn itself."""
    taken = [each.item.id for each in found.attachments]
    taken += [ItemId(each.what) for each in found.left_out]
    compared = await compare_library(state, hydrator, but=taken)
    hint = "attach it again, or refresh the session, to show it as it is"
    return tuple(
        each.change.detail if each.change.change == "deleted" else f"{each.change.detail}; {hint}"
        for each in compared
    )


def bring_up_to_date(pen: Pen, compared: Sequence[Compared]) -> None:
    """Lays present versions down, and forgets what is gone."""
    ops = []
    for each in compared:
        if each.attachment is not None:
            item = each.attachment.item
            if (item.id, item.version) not in pen.state.items:
                pen.write(ItemEntry, item=item)
            standing = pen.state.standing.get(item.id)
            if not (standing and standing.current == item.version):
                ops.append(ItemLay(item=item.id, version=item.version))
        if each.change.change in ("deleted", "moved"):
            pen.write(ForgetEntry, item=each.change.item)
    if ops:
        title = f"{len(ops)} item{'s' * (len(ops) > 1)} brought up to date"
        pen.transform("lamina.refresh", Patch(ops=tuple(ops), display=Display(title=title)))
