"""The index and folders' notes, kept for searches while the server runs.

Law: only what changed in a folder is read again. Everything is closed when the server stops, and
reopened after a model is added or removed.
"""

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from lamina.adapters.agents.agent_reader import AgentFolder
from lamina.adapters.files.extras import require
from lamina.apps.views.background_fill import FillPause
from lamina.apps.web.agent_page import find_listed
from lamina.apps.web.jobs import JobProgress, Report
from lamina.apps.web.note_page import NoteShelf
from lamina.apps.wiring.agent_finder import bringer_of
from lamina.apps.wiring.folders import open_folder
from lamina.apps.wiring.index import open_index
from lamina.core.values.agent import Guide
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex

# An open folder uses memory, and watches its files.
KEPT_SHELVES = 4
KEPT_AGENTS = 16


def report_from_any_thread(report: Report, progress: JobProgress) -> None:
    """Report a job's progress, from any thread."""
    try:
        from_thread.run_sync(report, progress)
    except RuntimeError:
        report(progress)


class Searches:
    """One index for all folders, with vectors and by words alone; the notes of recent folders."""

    def __init__(self, pause: FillPause) -> None:
        self._pause = pause
        self._tasks: TaskGroup | None = None
        self._indexes: dict[bool, SqliteIndex] = {}
        self._shelves: OrderedDict[Path, NoteShelf] = OrderedDict()
        self._agents: OrderedDict[tuple[Path, str], AgentFolder] = OrderedDict()

    def bind(self, tasks: TaskGroup) -> None:
        """Set the task group that prepares notes for search in the background."""
        self._tasks = tasks

    def index(self, *, words: bool = False) -> "SqliteIndex":
        """Return the index; with `words` without vectors.

        Raises:
            ExtraMissing: search is not installed.
        """
        require("search")
        if words not in self._indexes:
            self._indexes[words] = open_index(lexical=words)
        return self._indexes[words]

    async def shelf(self, folder: Path) -> NoteShelf:
        """Return the notes of a folder.

        Raises:
            UsageError: it is not a folder.
        """
        if folder not in self._shelves:
            workspace = await run_sync(open_folder, folder)
            self._shelves[folder] = NoteShelf(workspace, self._tasks, self._pause)
            while len(self._shelves) > KEPT_SHELVES:
                _, oldest = self._shelves.popitem(last=False)
                await oldest.aclose()
        self._shelves.move_to_end(folder)
        return self._shelves[folder]

    async def guides(self, folder: Path, agent: str) -> tuple[Guide, ...]:
        """Return the current rules and references of an agent in the list; none if there is no such
        agent. Its files are read again only if they changed."""
        key = (folder, agent)
        if key not in self._agents:
            listed = await run_sync(find_listed, agent, folder)
            if listed is None:
                return ()
            place = listed.found.path
            self._agents[key] = AgentFolder(place, bringer_of(place, folder))
            while len(self._agents) > KEPT_AGENTS:
                self._agents.popitem(last=False)
        try:
            return (await self._agents[key].guides()).guides
        except UsageError:
            return ()

    async def renew(self) -> None:
        """Reopen on next use, with the models that are here now."""
        indexes, self._indexes = list(self._indexes.values()), {}
        for shelf in self._shelves.values():
            shelf.forget_searches()
        for index in indexes:
            await run_sync(index.close)

    async def aclose(self) -> None:
        """Close everything; it reopens on next use."""
        await self.renew()
        shelves, self._shelves = list(self._shelves.values()), OrderedDict()
        for shelf in shelves:
            await shelf.aclose()
