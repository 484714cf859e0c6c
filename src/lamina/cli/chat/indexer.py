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
    """Embeds what is new in the notes while a message is typed; `told` is how far it is."""

    def __init__(self, search: WorkspaceSearch) -> None:
        self._search = search
        self.told = ""
        # What was to be done when it began, over all rounds.
        self._most = 0

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        search = self._search
        drawn = search.reading, search.indexing
        # A bar would be drawn across the line that is typed.
        search.reading, search.indexing = None, self._tell
        try:
            with single_errors():
                async with anyio.create_task_group() as group:
                    group.start_soon(self._prepare)
                    yield
                    group.cancel_scope.cancel()
        finally:
            search.reading, search.indexing = drawn

    async def _prepare(self) -> None:
        try:
            await self._search.prepare()
        except Exception:  # noqa: BLE001
            self.told = ""

    def _tell(self, done: int, total: int) -> None:
        self._most = max(self._most, total)
        left = total - done
        self.told = f"{left:,} passages to embed ({1 - left / self._most:.0%})" if left else ""
