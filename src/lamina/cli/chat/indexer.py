"""What a chat over notes does while nobody asks anything: it gets them ready to be searched.

Law: it stops as soon as somebody asks, and loses nothing by it. What goes wrong is said by the next
search, which tries the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from lamina.sources.note_search import WorkspaceSearch
from lamina.task_groups import single_errors


class BackgroundIndexer:
    """Embeds what is new in the notes while a message is typed; `progress` says how far it is."""

    def __init__(self, search: WorkspaceSearch) -> None:
        self._search = search
        self.progress = ""
        # What was to be done when it began, over all rounds.
        self._most = 0

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        search = self._search
        listeners = search.reading, search.indexing
        # A bar would be drawn across the line that is typed.
        search.reading, search.indexing = None, self._tell
        try:
            with single_errors():
                async with anyio.create_task_group() as group:
                    group.start_soon(self._prepare)
                    yield
                    group.cancel_scope.cancel()
        finally:
            search.reading, search.indexing = listeners

    async def _prepare(self) -> None:
        try:
            await self._search.prepare()
        except Exception:  # noqa: BLE001
            self.progress = ""

    def _tell(self, done: int, total: int) -> None:
        self._most = max(self._most, total)
        rest = total - done
        self.progress = f"{rest:,} passages to embed ({1 - rest / self._most:.0%})" if rest else ""
