"""Gathers the items that a reference names: a note with its embeds, or a folder or tag with its
notes.

Laws: every artefact is one item with one id, however it was included. Unreadable parts are
reported, and the rest is still read. A name refers to at most one path, which is never guessed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from lamina.adapters.files.paths import PathRefused, clean_path
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_locator import FileLocation, FileLocator
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.adapters.workspace.item_reader import ItemReader
from lamina.adapters.workspace.query_results import QueryItems
from lamina.core.notes.note_names import NoteNames, split_link, tag_matches
from lamina.core.notes.note_reader import read_note
from lamina.core.notes.references import Reference, read_reference
from lamina.core.notes.sections import find_section
from lamina.core.text.pictures import count_pictures
from lamina.core.values.item import (
    TRAITS,
    Item,
    ItemId,
    LoadedItem,
    Provenance,
    content_version,
    item_id,
    key_of,
    kind_of_file,
    query_id,
    selection_id,
)
from lamina.core.values.note import Catalogue, Note
from lamina.core.values.request import GatheredItems, LeftOut

# The maximum number of files included by a folder or tag; search finds more.
MAX_GATHERED = 2_000
MAX_LISTED = 5_000
# The maximum length of a header shown with other lines of its table, in characters.
MAX_HEADER = 1_000


class Gatherer:
    """A gatherer of items from one root. `look` returns the catalogue of notes, `names` their
    names; a plain path needs neither."""

    def __init__(
        self,
        root: Root,
        look: Callable[[], Catalogue],
        names: Callable[[Catalogue], NoteNames],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._root = root
        self._files = ItemReader(root)
        self._look = look
        self._names = names
        self._secrets = FileSecrets()
        self._queries = QueryItems(root, self._secrets, now)

    def gather(self, reference: str, embed_depth: int) -> GatheredItems:
        """Return the referenced item with the items it includes; pictures are not read here."""
        try:
            return self._gather(reference, embed_depth)
        except PathRefused as refusal:
            reason = refusal.reason
            if reason == "ambiguous" and reference.startswith("folder:"):
                # An id refers to at most one item, even if others share its name.
                reason = "missing"
            omission = LeftOut(what=_id_of(reference), reason=reason, detail=refusal.detail)
            return GatheredItems(left_out=(omission,))

    def _gather(self, reference: str, embed_depth: int) -> GatheredItems:
        locator = self.locator()
        if locator.is_file(reference):
            # A file with exactly this name takes precedence over any other meaning.
            return self._read(FileLocation(path=str(clean_path(reference))), embed_depth, locator)
        target = read_reference(reference)
        match target.kind:
            case "tag":
                return self._tag(target.name)
            case "folder":
                return self._folder(locator.find_folder(target.name))
            case "lines":
                return self._lines(locator.locate(target.name), target.start, target.end)
            case "query":
                return self._one_query(locator.locate(target.name).path, target.digest)
            case "url":
                raise PathRefused("refused", f"{target.name} is not in the workspace")
            case "path":
                is_link = target.name != reference.strip()
                labels = filter(None, [split_link(reference).label])
                return self._path(target, embed_depth, locator, tuple(labels) if is_link else None)

    # -- finding ---------------------------------------------------------------------------------

    def _path(
        self,
        target: Reference,
        embed_depth: int,
        locator: FileLocator,
        labels: Sequence[str] | None,
    ) -> GatheredItems:
        """Gather a path. `labels` are the link's labels; None if the reference is not a link."""
        # A link refers to a note, even if a folder has the same name.
        if labels is None and locator.is_folder(target.name):
            return self._folder(locator.find_folder(target.name))
        location = locator.locate(target.name, anchor=target.anchor, labels=labels or ())
        if location.anchor:
            return self._section(location)
        return self._read(location, embed_depth, locator, wanted=target.wanted)

    def find_moved(self, item: Item) -> str | None:
        """Return the single path with the content of `item`, or else with its name; None if it did
        not move."""
        path = key_of(item.id)
        if self.locator().is_file(path):
            return None
        catalogue = self._look()
        # Pictures may be part of the item's version, but are not part of its file.
        digest = content_version(item.content)
        same = [note.path for note in catalogue.notes if note.digest == digest]
        if len(same) == 1:
            return same[0]
        match = self._names(catalogue).resolve(PurePosixPath(path).stem)
        return match.path if match.path != path else None

    def locator(self) -> FileLocator:
        """Return a file locator for one question."""
        return FileLocator(self._root, self._look, self._names)

    # -- reading ---------------------------------------------------------------------------------

    def _read(
        self, location: FileLocation, embed_depth: int, locator: FileLocator, *, wanted: str = ""
    ) -> GatheredItems:
        main = self._files.read(location.path, hidden=True, wanted=wanted)
        reading = replace(main, warnings=(*location.warnings, *main.warnings))
        items = GatheredItems(readings=(reading,))
        if main.item.kind != "note":
            return items
        return _join([items, *self._along(location.path, main.item, embed_depth, locator)])

    def _along(
        self, path: str, item: Item, embed_depth: int, locator: FileLocator
    ) -> list[GatheredItems]:
        """Return the items that a note includes: its query results, its embeds and the items these
        include, level by level, so that the shortest way to a note counts."""
        along: list[GatheredItems] = []
        paths = {path}
        level = [(path, item)]
        while level:
            deeper: list[tuple[str, Item]] = []
            for place, inner in level:
                note = _read_marks(place, inner)
                along += self._queries.gather(place, note.queries, self._look)
                for name in note.embeds if embed_depth > 0 else ():
                    labels = note.labels.get(name, ())
                    items = self._embedded(name, labels, place, paths, locator)
                    along.append(items)
                    parts = (reading.item for reading in items.readings)
                    deeper += [(key_of(other.id), other) for other in parts if other.kind == "note"]
            level = deeper
            embed_depth -= 1
        return along

    def _embedded(
        self,
        name: str,
        labels: Sequence[str],
        path: str,
        paths: set[str],
        locator: FileLocator,
    ) -> GatheredItems:
        """Return a note or section embedded by `path`."""
        source = item_id("note", path)
        try:
            location = locator.locate(name, beside=path, labels=labels)
            if location.anchor and location.path == path:
                # Part of the note itself, which is already included in full.
                return GatheredItems()
            if location.anchor and kind_of_file(location.path) == "note":
                return _with_source(self._section(location), "embed", source)
            if location.path in paths:
                return GatheredItems()
            paths.add(location.path)
            reading = self._files.read(location.path)
        except PathRefused as refusal:
            detail = f"{path} embeds {name!r}: {refusal.detail}"
            what = item_id("note", name)
            omission = LeftOut(what=what, reason=refusal.reason, detail=detail, source=source)
            return GatheredItems(left_out=(omission,))
        return _with_source(GatheredItems(readings=(reading,)), "embed", source)

    def _lines(self, place: FileLocation, start: int, end: int) -> GatheredItems:
        # A note's lines are taken from its text as read, with words for embedded pictures.
        wanted = "" if kind_of_file(place.path) == "note" else "file"
        whole = self._files.read(place.path, hidden=True, wanted=wanted)
        return self._cut(place, whole, start, end)

    def _cut(self, place: FileLocation, whole: LoadedItem, start: int, end: int) -> GatheredItems:
        """Return lines of a text already read."""
        if not TRAITS[whole.item.kind].has_lines:
            raise PathRefused("unreadable", f"{place.path} has no lines")
        lines = whole.item.content.removesuffix("\n").split("\n")
        if start > len(lines):
            raise PathRefused(
                "missing", f"{place.path} has {len(lines):,} lines; {start} is not there"
            )
        last = min(end, len(lines))
        end_warnings = (
            () if last == end else (f"{place.path} has {last:,} lines: it ends before {end}",)
        )
        excerpt = self._secrets.cut_lines(whole.item.content, start, last)
        item = replace(
            whole.item,
            id=selection_id(place.path, start, last),
            title=self._title(place.path, whole.item.content, start),
            content=excerpt.text,
            unseen_pictures=count_pictures(excerpt.text) if whole.item.unseen_pictures else 0,
            version="",
        )
        warnings = (*place.warnings, *whole.warnings, *end_warnings)
        reading = LoadedItem(item=item, excerpt=excerpt, warnings=warnings)
        return GatheredItems(readings=(reading,))

    def _title(self, path: str, text: str, start: int) -> str:
        """Return the title for lines of a file: the file name, with the table's header, if any."""
        stem = PurePosixPath(path).stem
        if start == 1 or not TRAITS[kind_of_file(path)].has_header:
            return stem
        header = self._secrets.cut_lines(text, 1, 1)
        return f"{stem}: {(header.safe or header.text).strip()[:MAX_HEADER]}"

    def _section(self, location: FileLocation) -> GatheredItems:
        """Return the lines below a heading, up to the next heading of its level."""
        whole = self._files.read(location.path, hidden=True)
        section = find_section(whole.item.content, location.anchor)
        if section is None:
            raise PathRefused("missing", f"{location.path} has no heading {location.anchor!r}")
        return self._cut(location, whole, *section)

    def _folder(self, folder: str) -> GatheredItems:
        """Return a folder as a listing, with its notes and texts."""
        paths = [file.path for file in self._root.walk(folder)]
        return self._group(item_id("folder", folder), "folder", paths, folder)

    def _tag(self, tag: str) -> GatheredItems:
        notes = [note for note in self._look().notes if any(tag_matches(t, tag) for t in note.tags)]
        if not notes:
            raise PathRefused("missing", f"no note has the tag #{tag}")
        # A tag stays the same however it is spelled.
        item = item_id("tag", tag.strip("/").casefold())
        return self._group(item, "tag", [note.path for note in notes], f"#{tag}")

    def _group(self, item: ItemId, kind: str, paths: list[str], title: str) -> GatheredItems:
        listing = "\n".join(f"- {path}" for path in paths[:MAX_LISTED]) or "(empty)"
        if len(paths) > MAX_LISTED:
            listing += f"\n(and {len(paths) - MAX_LISTED:,} more)"
        main = Item(id=item, content=listing, workspace=self._root.id)
        texts = [path for path in paths if TRAITS[kind_of_file(path)].has_lines]
        readings, left_out = [LoadedItem(item=main)], []
        for path in texts[:MAX_GATHERED]:
            try:
                reading = self._files.read(path)
            except PathRefused as refusal:
                detail = f"{path} of {title}: {refusal.detail}"
                what = item_id(kind_of_file(path), path)
                omission = LeftOut(what=what, reason=refusal.reason, detail=detail, source=item)
                left_out.append(omission)
            else:
                provenance = Provenance(origin=kind, source=item)
                readings.append(replace(reading, provenance=provenance))
        return GatheredItems(
            readings=tuple(readings),
            left_out=tuple(left_out),
            warnings=tuple(_say_listed(title, len(paths) - len(texts), len(texts))),
        )

    # -- queries ---------------------------------------------------------------------------------

    def _one_query(self, path: str, digest: str) -> GatheredItems:
        note = read_note(path, self._files.read(path, hidden=True).item.content.encode())
        for query in note.queries:
            if key_of(query_id(path, query.key)).endswith(f"#{digest}"):
                return self._queries.gather(path, (query,), self._look)[0]
        raise PathRefused("missing", f"{path} has no query {digest} any more")


def _id_of(reference: str) -> ItemId:
    """Return the id that a reference would have had, judging by its syntax."""
    text = reference.encode("utf-8", "backslashreplace").decode()
    target = read_reference(text)
    if target.kind in ("tag", "folder"):
        return item_id(target.kind, target.name)
    if target.kind == "lines":
        return selection_id(target.name, target.start, target.end)
    kind = kind_of_file(target.name) if target.kind == "path" else "note"
    # A name without a suffix refers to a note.
    return item_id(kind if PurePosixPath(target.name).suffix else "note", text)


def _say_listed(title: str, others: int, texts: int) -> Iterator[str]:
    """Yield warnings about files in a group that are only listed."""
    if others:
        what = "picture or PDF is" if others == 1 else "pictures and PDFs are"
        yield f"{title}: {others:,} {what} only listed; attach them by their own path"
    if texts > MAX_GATHERED:
        yield f"{title} holds {texts:,} texts; the first {MAX_GATHERED:,} are attached"


def _join(parts: Sequence[GatheredItems]) -> GatheredItems:
    return GatheredItems(
        readings=tuple(reading for part in parts for reading in part.readings),
        left_out=tuple(omission for part in parts for omission in part.left_out),
        warnings=tuple(warning for part in parts for warning in part.warnings),
    )


def _with_source(items: GatheredItems, origin: str, source: ItemId) -> GatheredItems:
    """Return items marked as included by another one."""
    provenance = Provenance(origin=origin, source=source)
    readings = (replace(reading, provenance=provenance) for reading in items.readings)
    return replace(items, readings=tuple(readings))


def _read_marks(path: str, item: Item) -> Note:
    """Return the note with its embeds and queries; notes without any, as most are, are not
    parsed."""
    if any(mark in item.content for mark in ("![[", "```", "~~~", "`=", "`$=")):
        return read_note(path, item.content.encode())
    return Note(path=path, title="", digest="")
