"""A workspace of notes in a dict, with fixed times."""

from lamina.core.values.item import Item, LoadedItem, Shape, item_id, note_id
from lamina.core.values.request import LeftOut

TIME = "2026-01-02T03:04:05.000Z"


class FakeWorkspace:
    """`notes` maps paths to contents; a test edits it as a person edits a folder."""

    name = "notes"

    def __init__(self, notes: dict[str, str] | None = None) -> None:
        self.notes = dict(notes or {})

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        if reference.startswith(("/", "..")):
            detail = f"{reference!r} is not a path inside the workspace"
            return LeftOut(what=note_id(reference), reason="refused", detail=detail)
        if reference not in self.notes:
            detail = f"{reference} does not exist in the workspace"
            return LeftOut(what=note_id(reference), reason="missing", detail=detail)
        kind = "note" if reference.endswith(".md") else "file"
        item = Item(
            id=note_id(reference) if kind == "note" else item_id("file", reference),
            content=self.notes[reference],
            ctime=TIME,
            mtime=TIME,
        )
        return LoadedItem(item=item)
