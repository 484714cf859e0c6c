"""From what a caller names to items: what is attached, what is pinned, what is always included."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lamina.codec import require_text
from lamina.errors import UsageError
from lamina.journal import State
from lamina.ports import JournalStore, WorkspaceSource
from lamina.values.item import Attachment, Item, ItemId, Reading, Wanted
from lamina.values.request import LeftOut

Attachable = str | Item | Wanted | Attachment


class Hydrated(Struct, frozen=True, kw_only=True):
    """What applies to a turn, what of it cannot be had, and what a person should know of it."""

    attachments: tuple[Attachment, ...]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Hydrator:
    """Reads from one workspace; the bytes of images go to the store."""

    def __init__(self, workspace: WorkspaceSource, store: JournalStore) -> None:
        self._workspace = workspace
        self._store = store
        self._warnings: list[str] = []

    async def hydrate(self, attach: Iterable[Attachable], state: State) -> Hydrated:
        """Everything that applies to the next turn of `state`."""
        if isinstance(attach, str):
            raise UsageError(f"attach takes a list: attach=[{attach!r}]")
        self._warnings = []
        found: dict[ItemId, Attachment] = {}
        left_out: list[LeftOut] = []
        for each in attach:
            attachment = await self.read(each)
            if isinstance(attachment, LeftOut):
                left_out.append(attachment)
            else:
                # Attaching again replaces the value and keeps its place.
                found[attachment.item.id] = attachment
        for pinned, version in state.pinned.items():
            if pinned in found:
                found[pinned] = replace(found[pinned], essential=True)
            elif (pinned, version) not in state.items:
                self._warnings.append(f"pinned {pinned}: its content is lost")
            else:
                item = await self._read_pinned(state.items[pinned, version])
                found[pinned] = Attachment(item=item, essential=True)
        for key in state.always:
            if key in state.items:
                item = state.items[key]
                found.setdefault(item.id, Attachment(item=item, include="always"))
        return Hydrated(
            attachments=tuple(found.values()),
            left_out=tuple(left_out),
            warnings=tuple(self._warnings),
        )

    async def read(self, what: Attachable) -> Attachment | LeftOut:
        """One attachment, or why it cannot be had.

        Raises:
            InvalidText: an item that was given holds text that cannot be sent.
        """
        if isinstance(what, Attachment):
            require_text(what.item.content, what.item.id)
            return what
        wanted = what if isinstance(what, Wanted) else Wanted(what=what)
        item = wanted.what
        if isinstance(item, Item):
            require_text(item.content, item.id)
        else:
            reading = await self._workspace.read(item, wanted.shape)
            if isinstance(reading, LeftOut):
                return reading
            item = await self._keep(reading)
        return Attachment(
            item=item, priority=wanted.priority, essential=wanted.essential, shape=wanted.shape
        )

    async def _read_pinned(self, last: Item) -> Item:
        """A pinned file as it is now, or as it last was if it can no longer be read."""
        if last.kind not in ("note", "file", "pdf", "image"):
            return last
        reading = await self._workspace.read(last.key, "attached")
        if isinstance(reading, LeftOut):
            self._warnings.append(f"pinned {last.key}: {reading.detail}; its last version is used")
            return last
        return await self._keep(reading) if reading.item.id == last.id else last

    async def _keep(self, reading: Reading) -> Item:
        for blob in reading.blobs:
            await self._store.put_blob(blob)
        self._warnings += reading.warnings
        return reading.item
