"""From what a caller names to items: what is attached, what is pinned, what is always included.

Laws: what cannot be had is reported, and the rest goes on; nothing of another workspace is taken.
Secrets are replaced here, so that the model and the journal get the same bytes.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.codec import require_text
from lamina.errors import UsageError
from lamina.journal import State
from lamina.notes.names import NoteNames
from lamina.notes.references import read_reference
from lamina.ports import BundleSource, JournalStore, WebSource, WorkspaceSource
from lamina.sources.secrets import Secrets, SecretScreen, without_secrets
from lamina.text import label_of
from lamina.values.item import (
    BROUGHT,
    Attachment,
    AttachmentSpec,
    Item,
    ItemId,
    LoadedItem,
    Shape,
    is_guidance,
    key_of,
    kind_of,
    note_id,
    url_id,
)
from lamina.values.request import GatheredItems, LeftOut
from lamina.values.settings import Settings
from lamina.values.web import FetchedResource, UnfetchedResource, WebRules

Attachable = str | Item | AttachmentSpec | Attachment
# Kinds that are read again for every turn they are pinned in.
_READ_AGAIN = ("note", "file", "pdf", "image", "selection", "folder", "tag", "query")
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
NO_WEB = "pages are fetched only if the setting `web` allows it"


class Attachments(Struct, frozen=True, kw_only=True):
    """What applies to a turn, what of it cannot be had, and what a person should know of it."""

    attachments: tuple[Attachment, ...]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING = Attachments(attachments=())


class AttachmentReader:
    """Reads from one workspace and, as far as settings allow, from the web; the bytes of images go
    to the store."""

    def __init__(
        self, workspace: WorkspaceSource, store: JournalStore, web: WebSource | None = None
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._web = web
        self._screen = SecretScreen()

    async def read_all(self, attach: Iterable[Attachable], state: State) -> Attachments:
        """Everything that applies to the next turn of `state`."""
        if isinstance(attach, str):
            raise UsageError(f"attach takes a list: attach=[{attach!r}]")
        if not (attach or state.pinned or state.always):
            return NOTHING
        found: dict[ItemId, Attachment] = {}
        brought: dict[ItemId, Attachment] = {}
        left_out: list[LeftOut] = []
        warnings: list[str] = []
        for each in attach:
            had = await self.read(each, state)
            left_out += had.left_out
            warnings += had.warnings
            for attachment in had.attachments:
                # Attaching again replaces the value and keeps its place; what only came along with
                # something else does not.
                if attachment.origin in BROUGHT:
                    known = brought.get(attachment.item.id)
                    brought[attachment.item.id] = _worth_more(known, attachment)
                else:
                    known = found.get(attachment.item.id)
                    found[attachment.item.id] = _still_active(known, attachment)
        found |= {item: attachment for item, attachment in brought.items() if item not in found}
        warnings += await self._add_pinned(found, state)
        for key in state.always:
            if key in state.items:
                item = state.items[key]
                found.setdefault(item.id, Attachment(item=item, include="always"))
        missing = [omission for omission in left_out if omission.what not in found]
        return Attachments(
            attachments=tuple(found.values()),
            left_out=tuple(dict.fromkeys(missing)),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    async def read(self, what: Attachable, state: State, *, keep: bool = True) -> Attachments:
        """One attachment with what comes along with it, or why it cannot be had. Whoever only looks
        does not `keep` the bytes of its pictures.

        Raises:
            InvalidText: an item that was given holds text that cannot be sent.
        """
        if isinstance(what, Attachment):
            return await self._take_attachment(what, state.settings)
        wanted = what if isinstance(what, AttachmentSpec) else AttachmentSpec(what=what)
        if isinstance(wanted.what, Item):
            gathered = self._take(wanted.what)
        else:
            gathered = await self._gather(wanted.what, wanted.shape, state)
        attachments: list[Attachment] = []
        warnings = list(gathered.warnings)
        for reading in gathered.readings:
            item, told = await self._keep(reading, state.settings, keep=keep)
            warnings += told
            first = not attachments
            attachments.append(
                Attachment(
                    item=item,
                    priority=wanted.priority,
                    essential=wanted.essential,
                    shape=wanted.shape if first else "attached",
                    origin=reading.origin,
                    source=reading.source,
                )
            )
        secrets = state.settings.secrets
        return Attachments(
            attachments=tuple(attachments),
            left_out=tuple(_screened(omission, secrets) for omission in gathered.left_out),
            warnings=tuple(without_secrets(warning, secrets) for warning in warnings),
        )

    async def _take_attachment(self, given: Attachment, settings: Settings) -> Attachments:
        """What comes with its worth already; an item is not let in by another form of it."""
        taken = self._take(given.item)
        if not taken.readings or is_guidance(given.item.id) or given.item.kind == "tool":
            kept = (given,) if taken.readings else ()
            return Attachments(attachments=kept, left_out=taken.left_out)
        item, warnings = await self._keep(taken.readings[0], settings)
        return Attachments(attachments=(replace(given, item=item),), warnings=tuple(warnings))

    def _take(self, item: Item) -> GatheredItems:
        """An item that was given, if it is not another workspace's."""
        require_text(item.content, item.id)
        own = self._workspace.id if isinstance(self._workspace, BundleSource) else ""
        if item.workspace and own and item.workspace != own:
            detail = f"{label_of(item.id)} is of another workspace ({item.workspace})"
            return GatheredItems(left_out=(LeftOut(what=item.id, reason="refused", detail=detail),))
        return GatheredItems(readings=(LoadedItem(item=item),))

    async def _gather(self, reference: str, shape: Shape, state: State) -> GatheredItems:
        meant = read_reference(reference)
        if meant.kind == "url":
            return await self._fetch(meant.name, state.settings)
        gathered = await self._gather_here(reference, shape, state.settings)
        if gathered.readings or not isinstance(self._workspace, BundleSource):
            return gathered
        # It may have been moved since it was last shown.
        if all(omission.reason != "missing" for omission in gathered.left_out):
            return gathered
        notes = (key_of(each) for each in state.standing if kind_of(each) == "note")
        path = NoteNames(notes).resolve(meant.name).path
        if path is None:
            return gathered
        last = state.items.get((note_id(path), state.standing[note_id(path)].versions[-1]))
        place = await self._workspace.find_moved(last) if last else None
        if place is None:
            return gathered
        moved = await self._gather_here(place, shape, state.settings)
        told = f"{meant.name} is not there any more; {place} is taken for it"
        return replace(moved, warnings=(told, *moved.warnings))

    async def _gather_here(self, reference: str, shape: Shape, settings: Settings) -> GatheredItems:
        if isinstance(self._workspace, BundleSource):
            rules = _rules(settings)

            async def fetch_picture(url: str, limit: int) -> FetchedResource | UnfetchedResource:
                if self._web is None:
                    return UnfetchedResource(reason="refused", detail=NO_WEB)
                return await self._web.picture(url, rules, limit)

            return await self._workspace.gather(
                reference, shape, embed_depth=settings.embed_depth, fetch_picture=fetch_picture
            )
        reading = await self._workspace.read(reference, shape)
        if isinstance(reading, LeftOut):
            return GatheredItems(left_out=(reading,))
        return GatheredItems(readings=(reading,))

    async def _fetch(self, url: str, settings: Settings) -> GatheredItems:
        if self._web is None:
            refused = LeftOut(what=url_id(url), reason="refused", detail=NO_WEB)
            return GatheredItems(left_out=(_without_user(refused),))
        page = await self._web.page(url, _rules(settings))
        if isinstance(page, LeftOut):
            return GatheredItems(left_out=(_without_user(page),))
        return GatheredItems(readings=(page,))

    async def _add_pinned(self, found: dict[ItemId, Attachment], state: State) -> list[str]:
        """Adds what is pinned; gives what a person should know of it."""
        warnings: list[str] = []
        for pinned, version in state.pinned.items():
            if pinned in found:
                found[pinned] = replace(found[pinned], essential=True)
            elif (pinned, version) not in state.items:
                warnings.append(f"pinned {pinned}: its content is lost")
            else:
                item, told = await self._read_pinned(state.items[pinned, version], state)
                warnings += told
                found[item.id] = Attachment(item=item, essential=True)
        return warnings

    async def _read_pinned(self, last: Item, state: State) -> tuple[Item, Sequence[str]]:
        """A pinned item as it is now, or as it last was if it can no longer be read."""
        if last.kind not in _READ_AGAIN:
            return last, ()
        reference = last.key if last.kind in _READ_AGAIN[:4] else last.id
        gathered = await self._gather(reference, "attached", state)
        if not gathered.readings:
            why = gathered.left_out[0].detail if gathered.left_out else "it is not there"
            return last, (f"pinned {last.key}: {why}; its last version is used",)
        item, warnings = await self._keep(gathered.readings[0], state.settings)
        if item.kind != last.kind:
            return last, ()
        return item, (*gathered.warnings, *warnings)

    async def _keep(
        self, reading: LoadedItem, settings: Settings, *, keep: bool = True
    ) -> tuple[Item, Sequence[str]]:
        for blob in reading.blobs if keep else ():
            await self._store.put_blob(blob)
        item, warnings = self._screen.item(reading.item, settings.secrets)
        if item.workspace:
            # The journal it goes into belongs to one workspace.
            item = replace(item, workspace="")
        return item, (*reading.warnings, *warnings)


def _worth_more(known: Attachment | None, other: Attachment) -> Attachment:
    """What two bring is worth the more of both."""
    if known is None:
        return other
    essential = known.essential or other.essential
    return replace(known, priority=min(known.priority, other.priority), essential=essential)


def _still_active(known: Attachment | None, other: Attachment) -> Attachment:
    """What is attached again; a note that is open stays so, and keeps its pictures."""
    if known is None or known.shape != "active" or other.shape != "attached":
        return other
    return replace(other, item=known.item, shape="active")


def _screened(left: LeftOut, secrets: Secrets) -> LeftOut:
    """Why something is left out; what a note embeds or asks for may be a secret, too."""
    what, detail = (without_secrets(each, secrets) for each in (left.what, left.detail))
    return left if detail == left.detail else replace(left, what=what, detail=detail)


def _without_user(page: LeftOut) -> LeftOut:
    """Why there is no page, and of which; without a password that its address may hold."""
    what, detail = (_USER.sub("", each) for each in (page.what, page.detail))
    label = label_of(ItemId(what))
    return replace(page, what=what, detail=detail if label in detail else f"{label}: {detail}")


def _rules(settings: Settings) -> WebRules:
    return WebRules(access=settings.web, allow_hosts=settings.allow_hosts)
