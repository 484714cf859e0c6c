"""A folder that is opened to be searched, with the one index.

Laws: nothing is read, indexed or loaded before something is searched, and all of it is let go when
the workspace is closed. What is found is what a session finds, by the same search.
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
    """A folder of notes, to be searched. Make one with `lamina.open_workspace`; close it, or use it
    in `async with`. Wherever a path of a workspace is taken, as in `open_session(workspace=...)`,
    it stands for its folder."""

    def __init__(self, source: "FolderWorkspace", index: LazyIndex) -> None:
        self._source = source
        self._index = index
        self._is_closed = False
        # What searches; also told how to show progress, and how long to wait.
        self.searcher = WorkspaceSearch(source, index)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the folder, what is known of its notes, and the index."""
        self._is_closed = True
        # Also where a cancellation ended its block.
        with anyio.CancelScope(shield=True):
            try:
                await self._source.aclose()
            finally:
                await self._index.aclose()

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def folder(self) -> Path:
        """The folder, as it was named."""
        return self._source.folder

    @property
    def name(self) -> str:
        """What people are shown: the name of the folder."""
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
        """The passages of notes that fit best, up to `top` of them, as `lamina notes search` finds
        them: `hits` with path, heading, lines, text, score and the words they share with the query;
        the `method` that found them; and in `warnings` what went wrong.

        Searches the notes in any `folder` (and below), with any `tag`, changed from `since` up to
        before `until`: dates, or text as `2026-01-31`. What is new or changed is indexed first, for
        ten seconds at most; what is not embedded by then is found by its words.

        Raises:
            ExtraMissing: search is not installed.
            UsageError: the query is empty, a date is none, an argument is not of its type, or the
                workspace is closed.
        """
        scope = make_scope(folder, tag, since, until)
        check_query(query, "query")
        check_top(top, "passages")
        self._require_open()
        return await self.searcher.search(query, scope=scope, top=top)

    async def index(self) -> NoteSearchResult:
        """Indexes all notes now, however long that takes, so that searches need not wait; only what
        changed is indexed again. Says how many notes there are and, as `unkept`, how many passages
        the disk refused, which are indexed in memory only; finds nothing.

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
    """Opens a folder of notes to search it: `async with await open_workspace("notes") as workspace:
    await workspace.search("key rotation")`. With `lexical`, by words alone. Nothing is fetched: an
    embedding model that is not on this machine is left out, and the result says so
    (`lamina models pull minilm` gets it).

    Raises:
        ExtraMissing: search is not installed.
        UsageError: it is not a folder.
    """
    require("search")
    source = await anyio.to_thread.run_sync(open_folder, folder)
    return Workspace(source, LazyIndex(lexical=lexical))
