"""A folder opened for searching, with the index.

Laws: nothing is read, indexed or loaded before the first search, and everything is released when
the workspace is closed. It finds what a session finds, by the same search.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio

from lamina.adapters.files.extras import require
from lamina.apps.wiring.folders import open_folder
from lamina.apps.wiring.index import LazyIndex
from lamina.core.notes.scopes import Moment, make_scope
from lamina.core.values.note import NoteSearchResult
from lamina.engine.sources.note_search import TOP, WorkspaceSearch, check_query, check_top
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.adapters.workspace.folder import FolderWorkspace


class Workspace:
    """A searchable folder of notes. Create one with `lamina.open_workspace`; close it, or use it in
    `async with`. It can be passed wherever the path of a workspace is accepted, as in
    `open_session(workspace=...)`."""

    def __init__(self, source: "FolderWorkspace", index: LazyIndex) -> None:
        self._source = source
        self._index = index
        self._is_closed = False
        # The search, which also has the settings for progress and waiting.
        self.searcher = WorkspaceSearch(source, index)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release the folder, the cache of its notes, and the index."""
        self._is_closed = True
        # Even if a cancellation ended the block.
        with anyio.CancelScope(shield=True):
            try:
                await self._source.aclose()
            finally:
                await self._index.aclose()

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def folder(self) -> Path:
        """The folder, as it was given."""
        return self._source.folder

    @property
    def name(self) -> str:
        """The display name: the name of the folder."""
        return self._source.name

    async def search(
        self,
        query: str,
        *,
        top: int = TOP,
        folder: str | Iterable[str] = (),
        tag: str | Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> NoteSearchResult:
        """Return up to `top` best matching passages of notes, as `lamina notes search` finds them:
        `hits` with path, heading, lines, text, score and the words shared with the query; the
        `method` that found them; and problems as `warnings`.

        Searches the notes in any `folder` (and below), with any `tag`, changed at or after `since`
        and before `until`: dates, or text such as `2026-01-31`. New and changed notes are indexed
        first, for ten seconds at most; passages not embedded by then are found by their words.

        Raises:
            ExtraMissing: search is not installed.
            UsageError: the query is empty, a date is invalid, an argument has the wrong type, or
                the workspace is closed.
        """
        scope = make_scope(folder, tag, since, until)
        check_query(query, "query")
        check_top(top, "passages")
        self._require_open()
        return await self.searcher.search(query, scope=scope, top=top)

    async def index(self) -> NoteSearchResult:
        """Index all notes now, however long that takes, so that searches need not wait; only
        changed notes are indexed again. The result has no hits, but the number of notes and, as
        `unkept`, the number of passages that could not be saved and are indexed in memory only.

        Raises:
            ExtraMissing: search is not installed.
            UsageError: the workspace is closed.
        """
        self._require_open()
        return await self.searcher.prepare()

    def _require_open(self) -> None:
        require("search")
        if self._is_closed:
            raise UsageError(f"the workspace {self.name!r} is closed; open it again")


async def open_workspace(
    folder: str | os.PathLike[str] = ".", *, lexical: bool = False
) -> Workspace:
    """Open a folder of notes for searching: `async with await open_workspace("notes") as workspace:
    await workspace.search("key rotation")`. With `lexical`, search by words alone. Nothing is
    downloaded: a missing embedding model is left out, and the result says so (`lamina models pull
    minilm` gets it).

    Raises:
        ExtraMissing: search is not installed.
        UsageError: `folder` is not a folder.
    """
    require("search")
    source = await anyio.to_thread.run_sync(open_folder, folder)
    return Workspace(source, LazyIndex(lexical=lexical))
