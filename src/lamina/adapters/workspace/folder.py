"""Provides a folder of notes and files as a workspace.

Law: nothing outside the root is ever opened; all access goes through `root`.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import anyio.from_thread
import anyio.to_thread
from msgspec.structs import replace

from lamina.adapters.files.paths import clean_path
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.gatherer import Gatherer
from lamina.core.ports import FetchPicture, Progress
from lamina.core.values.item import Excerpt, Item, LoadedItem, Shape, key_of
from lamina.core.values.note import Catalogue, Passage
from lamina.core.values.request import GatheredItems, LeftOut

if TYPE_CHECKING:
    from lamina.adapters.workspace.catalogue import NoteCatalogue


class ReadingStopped(Exception):
    """The result of this thread is no longer awaited."""


class FolderWorkspace:
    """A folder as a workspace that several sessions can share: `open_session(workspace=...)`
    accepts it in place of a path, and its creator must close it (`aclose`). The catalogue of notes
    is saved in the file `cache`, if given, and is read only for references other than plain paths.
    `now` returns the time for queries that use the current day."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        cache: Path | None = None,
        watch: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.root = Root(root)
        self._cache = cache
        self._watches = watch
        self._gatherer = Gatherer(
            self.root,
            lambda: self._notes.refresh(),
            lambda catalogue: self._notes.names(catalogue),
            now,
        )

    @cached_property
    def _notes(self) -> "NoteCatalogue":
        # Not needed to attach a file by its path.
        from lamina.adapters.workspace.catalogue import NoteCatalogue
        from lamina.adapters.workspace.folder_watcher import FolderWatcher

        watcher = FolderWatcher(self.root.path) if self._watches else None
        return NoteCatalogue(self.root, self._cache, watcher=watcher)

    @property
    def name(self) -> str:
        """The name shown to people: the folder's name."""
        return self.root.name

    @property
    def id(self) -> str:
        """The id that distinguishes this workspace from all others."""
        return self.root.id

    @property
    def folder(self) -> Path:
        """The folder as named by the caller."""
        return self.root.path

    async def aclose(self) -> None:
        """Release the watcher and the cache file; the next call restarts them."""
        if "_notes" in self.__dict__:
            await anyio.to_thread.run_sync(self._notes.close)

    async def paths(self) -> tuple[str, ...]:
        """Return the path of every file in the workspace, except hidden files and links."""

        def walk() -> tuple[str, ...]:
            return tuple(sorted(entry.path for entry in self.root.walk()))

        return await anyio.to_thread.run_sync(walk)

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        """Return the item that `reference` names, without the items it includes."""
        items = await self.gather(reference, shape, embed_depth=0)
        return items.readings[0] if items.readings else items.left_out[0]

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        """Return the item that `reference` names, with the items it includes."""
        items = await anyio.to_thread.run_sync(self._gatherer.gather, reference, embed_depth)
        if shape != "active" or not items.readings:
            return items
        main, *others = items.readings
        if main.item.kind != "note":
            return items
        with_pictures = await self._with_pictures(main, fetch_picture)
        return replace(items, readings=(with_pictures, *others))

    async def find_moved(self, item: Item) -> str | None:
        """Return the new path of a note moved since `item` was read."""
        return await anyio.to_thread.run_sync(self._gatherer.find_moved, item)

    async def catalogue(self, progress: Progress | None = None) -> Catalogue:
        """Return all current notes; only changed files are reread."""
        return await self._refresh(progress, for_search=False)

    async def catalogue_to_search(self, progress: Progress | None = None) -> Catalogue:
        """Return all notes for a search: the terms of newly read notes can be taken, and new notes
        are not saved until `save`."""
        return await self._refresh(progress, for_search=True)

    async def _refresh(self, progress: Progress | None, *, for_search: bool) -> Catalogue:
        """Return the catalogue, read in a thread that soon stops if no longer awaited."""
        is_left = False

        def tell(done: int, total: int) -> None:
            anyio.from_thread.check_cancelled()
            if is_left:
                raise ReadingStopped
            if progress is not None:
                progress(done, total)

        try:
            return await anyio.to_thread.run_sync(
                lambda: self._notes.refresh(tell, for_search=for_search)
            )
        finally:
            # A task cancelled by an interrupt does not wait for its thread.
            is_left = True

    def take_terms(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the terms of passages just read for a search; each is returned once."""
        return self._notes.take_terms(digests)

    def save(self) -> None:
        """Save unsaved notes in the background."""
        self._notes.save()

    def read_catalogue(self, progress: Progress | None = None) -> Catalogue:
        """Return all current notes, for a caller in its own thread."""
        return self._notes.refresh(progress)

    async def texts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[str | None]:
        """Return the searched text of passages, given with their note's path; None where the note
        changed."""
        return await anyio.to_thread.run_sync(self._notes.texts, wanted)

    async def excerpts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[Excerpt | None]:
        """Return the original text of passages; None where the note changed."""
        return await anyio.to_thread.run_sync(self._notes.excerpts, wanted)

    def take_warnings(self) -> Sequence[str]:
        """Return problems with saving the catalogue or watching the folder, each only once."""
        return self._notes.take_warnings() if "_notes" in self.__dict__ else ()

    def mark(self, path: str) -> None:
        """Record that we changed the file at `path`, so that it is checked again."""
        if "_notes" in self.__dict__:
            self._notes.mark(path)

    async def _with_pictures(self, main: LoadedItem, fetch: FetchPicture | None) -> LoadedItem:
        """Return a note with the pictures it refers to, which are part of its version."""
        from lamina.adapters.workspace.picture_files import gather_pictures

        path = PurePosixPath(key_of(main.item.id))
        locator = self._gatherer.locator()

        def read(place: PurePosixPath, limit: int) -> bytes:
            return self.root.read(clean_path(str(place)), limit)[0]

        def read_text() -> str:
            # In the item, words replace the pictures embedded in the note.
            return self.root.read(path, hidden=True)[0].decode("utf-8", "replace")

        text = await anyio.to_thread.run_sync(read_text)
        gathering = await gather_pictures(
            path,
            text,
            read,
            fetch,
            find=partial(locator.find_picture, beside=str(path)),
        )
        return LoadedItem(
            item=replace(
                main.item,
                pictures=gathering.pictures,
                unseen_pictures=gathering.unseen,
                version="",
            ),
            blobs=gathering.blobs,
            warnings=main.warnings + gathering.warnings,
        )
