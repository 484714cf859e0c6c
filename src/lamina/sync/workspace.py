"""A folder of notes that is searched without `await`."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from lamina.apps.wiring import opened_workspace
from lamina.core.notes.scopes import Moment
from lamina.core.values.note import NoteSearchResult
from lamina.engine.sources.note_search import TOP
from lamina.sync.portal import Portal, portal


class Workspace:
    """A folder of notes, to be searched; `lamina.Workspace` without `await`. Make one with
    `lamina.sync.open_workspace`; close it, or use it in `with`."""

    def __init__(self, portal: Portal, workspace: opened_workspace.Workspace) -> None:
        self._portal = portal
        self._workspace = workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the folder, what is known of its notes, and the index."""
        self._portal.close(self._workspace.close)

    def __fspath__(self) -> str:
        return self._workspace.__fspath__()

    @property
    def folder(self) -> Path:
        """The folder, as it was named."""
        return self._workspace.folder

    @property
    def name(self) -> str:
        """What people are shown: the name of the folder."""
        return self._workspace.name

    def search(
        self,
        query: str,
        *,
        top: int = TOP,
        folder: str | Iterable[str] = (),
        tag: str | Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> NoteSearchResult:
        """The passages of notes that fit best, with scores and reasons; as
        `lamina.Workspace.search`.

        Raises:
            ExtraMissing: search is not installed.
            UsageError: the query is empty, a date is none, or the workspace is closed.
        """
        return self._portal.run(
            lambda: self._workspace.search(
                query, top=top, folder=folder, tag=tag, since=since, until=until
            )
        )

    def index(self) -> NoteSearchResult:
        """Indexes all notes now, however long that takes; as `lamina.Workspace.index`."""
        return self._portal.run(self._workspace.index)


def open_workspace(folder: str | os.PathLike[str] = ".", *, lexical: bool = False) -> Workspace:
    """Opens a folder of notes to search it: `with open_workspace("notes") as workspace:
    workspace.search("key rotation")`. Takes what `lamina.open_workspace` takes.

    Raises:
        ExtraMissing: search is not installed.
        UsageError: it is not a folder.
    """
    here = portal()
    opened = here.open(lambda: opened_workspace.open_workspace(folder, lexical=lexical))
    return Workspace(here, opened)
