"""Resolves names from a caller to items: attached, pinned and always included ones.

Laws: an item that cannot be read is reported, and the rest continues; nothing comes from another
workspace. Secrets are replaced here, so that the model and the journal get the same bytes.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lamina.core.codec import require_text
from lamina.core.journal import State
from lamina.core.notes.note_names import NoteNames
from lamina.core.notes.references import read_reference
from lamina.core.ports import BundleSource, JournalStore, WebSource, WorkspaceSource
from lamina.core.text import label_of
from lamina.core.values.item import (
    ALWAYS,
    Attachment,
    AttachmentSpec,
    Item,
    ItemId,
    LoadedItem,
    Shape,
    key_of,
    kind_of,
    note_id,
    reference_to,
    url_id,
)
from lamina.core.values.request import NOTHING, GatheredItems, LeftOut
from lamina.core.values.request import Attachments as Attachments
from lamina.core.values.settings import Settings
from lamina.core.values.web_access import FetchedResource, UnfetchedResource, WebRules
from lamina.engine.sources.secret_screen import Secrets, SecretScreen, without_secrets
from lamina.errors import UsageError

Attachable = str | Item | AttachmentSpec | Attachment
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
NO_WEB = "pages are fetched only if the setting `web` allows it"


class AttachmentReader:
    """A reader for one workspace and, as far as settings allow, for web pages; image bytes are
    stored in the journal store.
    """

    def __init__(
        self, workspace: WorkspaceSource, store: JournalStore, web: WebSource | None = None
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._web = web
        self.screen = SecretScreen()

    async def read_all(self, attach: Iterable[Attachable], state: State) -> Attachments:
        """Return everything that applies to the next turn of `state`."""
        if isinstance(attach, str):
            raise UsageError(f"pass attach as a list: attach=[{attach!r}]")
        if not (attach or state.library.pinned or state.library.always):
            return NOTHING
        by_id: dict[ItemId, Attachment] = {}
        companions: dict[ItemId, Attachment] = {}
        left_out: list[LeftOut] = []
        other_versions: list[LeftOut] = []
        warnings: list[str] = []
        for what in attach:
            reading = await self.read(what, state)
            left_out += reading.left_out
            warnings += reading.warnings
            for attachment in reading.attachments:
                item_id = attachment.item.id
                # Attaching again replaces the value and keeps its position; items that were only
                # brought along do not.
                if attachment.provenance.brought_by:
                    companions[item_id] = _worth_more(companions.get(item_id), attachment)
                    continue
                before = by_id.get(item_id)
                by_id[item_id] = _still_active(before, attachment)
                if before and (other := _other_version(before, attachment, by_id[item_id])):
                    other_versions.append(other)
        for item_id, companion in companions.items():
            by_id.setdefault(item_id, companion)
        warnings += await self._add_pinned(by_id, state)
        for key in state.library.always:
            if key in state.library.items:
                item = state.library.items[key]
                by_id.setdefault(item.id, Attachment(item=item, provenance=ALWAYS))
        missing = [omission for omission in left_out if omission.what not in by_id]
        return Attachments(
            attachments=tuple(by_id.values()),
            left_out=tuple(dict.fromkeys([*missing, *other_versions])),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    async def read(self, what: Attachable, state: State, *, keep: bool = True) -> Attachments:
        """Return one attachment with the items it brings along, or why it cannot be read. With
        `keep`, it is for this session's journal, and the bytes of its pictures are stored;
        otherwise it is only looked at, and its item still has its workspace.

        Raises:
            InvalidText: an item that was passed in contains text that cannot be sent.
        """
        if isinstance(what, Attachment):
            return await self._take_attachment(what, state.settings)
        spec = what if isinstance(what, AttachmentSpec) else AttachmentSpec(what=what)
        if isinstance(spec.what, Item):
            bundle = self._take(spec.what)
        else:
            bundle = await self._gather(spec.what, spec.shape, state)
        attachments: list[Attachment] = []
        warnings = list(bundle.warnings)
        for reading in bundle.readings:
            item, item_warnings = await self._keep(reading, state.settings, keep=keep)
            warnings += item_warnings
            attachments.append(
                Attachment(
                    item=item,
                    priority=spec.priority,
                    essential=spec.essential,
                    shape="attached" if attachments else spec.shape,
                    provenance=reading.provenance,
                )
            )
        secrets = state.settings.secrets
        return Attachments(
            attachments=tuple(attachments),
            left_out=tuple(_screened(omission, secrets) for omission in bundle.left_out),
            warnings=tuple(without_secrets(warning, secrets) for warning in warnings),
        )

    async def _take_attachment(self, attachment: Attachment, settings: Settings) -> Attachments:
        """Return an attachment that already has its priority, which its item does not change."""
        item = attachment.item
        bundle = self._take(item)
        if not bundle.readings:
            return Attachments(left_out=bundle.left_out)
        if item.kind == "tool":
            return Attachments(attachments=(attachment,))
        item, warnings = await self._keep(bundle.readings[0], settings)
        return Attachments(attachments=(replace(attachment, item=item),), warnings=tuple(warnings))

    def _take(self, item: Item) -> GatheredItems:
        """Return an item that was passed in, unless it belongs to another workspace."""
        require_text(item.content, item.id)
        own = self._workspace.id if isinstance(self._workspace, BundleSource) else ""
        if item.workspace and own and item.workspace != own:
            detail = f"{label_of(item.id)} is of another workspace ({item.workspace})"
            return _bundle(LeftOut(what=item.id, reason="refused", detail=detail))
        return _bundle(LoadedItem(item=item))

    async def _gather(self, reference: str, shape: Shape, state: State) -> GatheredItems:
        ref = read_reference(reference)
        if ref.kind == "url":
            return await self._fetch(ref.name, state.settings)
        bundle = await self._gather_here(reference, shape, state.settings)
        if bundle.readings or not isinstance(self._workspace, BundleSource):
            return bundle
        # It may have been moved since it was last shown.
        if all(omission.reason != "missing" for omission in bundle.left_out):
            return bundle
        notes = (key_of(item) for item in state.library.standing if kind_of(item) == "note")
        match = NoteNames(notes).resolve(ref.name)
        path = match.path
        if path is None:
            return bundle
        last = state.library.items.get(
            (note_id(path), state.library.standing[note_id(path)].versions[-1])
        )
        place = await self._workspace.find_moved(last) if last else None
        if place is None:
            return bundle
        # The same part of it, if the reference is to a part.
        there = replace(ref, name=place, anchor=ref.anchor or match.anchor).text
        bundle = await self._gather_here(there, shape, state.settings)
        warning = f"{ref.name} is not there any more; {place} is taken for it"
        return replace(bundle, warnings=(warning, *bundle.warnings))

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
        return _bundle(await self._workspace.read(reference, shape))

    async def _fetch(self, url: str, settings: Settings) -> GatheredItems:
        page: LoadedItem | LeftOut = LeftOut(what=url_id(url), reason="refused", detail=NO_WEB)
        if self._web is not None:
            page = await self._web.page(url, _rules(settings))
        return _bundle(_without_user(page) if isinstance(page, LeftOut) else page)

    async def _add_pinned(self, by_id: dict[ItemId, Attachment], state: State) -> list[str]:
        """Add the pinned items; return warnings about them."""
        warnings: list[str] = []
        for pin, version in state.library.pinned.items():
            if pin in by_id:
                by_id[pin] = replace(by_id[pin], essential=True)
            elif (pin, version) not in state.library.items:
                warnings.append(f"pinned {pin}: its content is lost")
            else:
                item, item_warnings = await self._read_pinned(
                    state.library.items[pin, version], state
                )
                warnings += item_warnings
                by_id[item.id] = Attachment(item=item, essential=True)
        return warnings

    async def _read_pinned(self, last: Item, state: State) -> tuple[Item, Sequence[str]]:
        """Return the current version of a pinned item, or its last one if it can no longer be
        read.
        """
        if not (reference := reference_to(last.id)):
            return last, ()
        bundle = await self._gather(reference, "attached", state)
        if not bundle.readings:
            why = bundle.left_out[0].detail if bundle.left_out else "it is not there"
            return last, (f"pinned {last.key}: {why}; its last version is used",)
        item, warnings = await self._keep(bundle.readings[0], state.settings)
        if item.kind != last.kind:
            return last, ()
        return item, (*bundle.warnings, *warnings)

    async def _keep(
        self, reading: LoadedItem, settings: Settings, *, keep: bool = True
    ) -> tuple[Item, Sequence[str]]:
        for blob in reading.blobs if keep else ():
            await self._store.put_blob(blob)
        item, warnings = self.screen.item(reading.item, settings.secrets, reading.excerpt)
        if item.workspace and keep:
            # The journal that will contain it belongs to one workspace.
            item = replace(item, workspace="")
        return item, (*reading.warnings, *warnings)


def _bundle(reading: LoadedItem | LeftOut) -> GatheredItems:
    if isinstance(reading, LeftOut):
        return GatheredItems(left_out=(reading,))
    return GatheredItems(readings=(reading,))


def _worth_more(before: Attachment | None, other: Attachment) -> Attachment:
    """Return an attachment with the higher priority, for an item that two others bring along."""
    if before is None:
        return other
    essential = before.essential or other.essential
    return replace(before, priority=min(before.priority, other.priority), essential=essential)


def _still_active(before: Attachment | None, other: Attachment) -> Attachment:
    """Return an item attached again; an open note stays open, and keeps its pictures."""
    if before is None or before.shape != "active" or other.shape != "attached":
        return other
    return replace(other, item=before.item, shape="active")


def _other_version(first: Attachment, last: Attachment, taken: Attachment) -> LeftOut | None:
    """Return a report of the superseded version of an item attached in two versions: the one
    attached last applies, unless the first is the open note's.
    """
    if first.item.version == last.item.version:
        return None
    last_applies = taken.item.version == last.item.version
    version = (first if last_applies else last).item.version
    which = "the one attached last" if last_applies else "that of the open note"
    detail = f"{label_of(taken.item.id)} is attached in two versions: {which} applies"
    return LeftOut(what=taken.item.id, reason="superseded", detail=f"{detail}, not {version[:8]}")


def _screened(omission: LeftOut, secrets: Secrets) -> LeftOut:
    """Return why something is left out, without secrets: the name of something that a note embeds
    or requests may be a secret, too.
    """
    what, detail = (without_secrets(text, secrets) for text in (omission.what, omission.detail))
    return omission if detail == omission.detail else replace(omission, what=what, detail=detail)


def _without_user(page: LeftOut) -> LeftOut:
    """Return why a page is missing, without a password that its address may contain."""
    what, detail = (_USER.sub("", text) for text in (page.what, page.detail))
    label = label_of(ItemId(what))
    return replace(page, what=what, detail=detail if label in detail else f"{label}: {detail}")


def _rules(settings: Settings) -> WebRules:
    return WebRules(access=settings.web, allow_hosts=settings.allow_hosts)
