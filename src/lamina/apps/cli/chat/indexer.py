"""What a chat over notes does while nobody asks anything: it gets them ready to be searched.

Law: it stops as soon as somebody asks, and loses nothing by it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lamina.apps.views.background_fill import filling
from lamina.engine.sources.note_search import WorkspaceSearch


class BackgroundIndexer:
    """Embeds what is missing of the notes while a message is typed; `progress` says how far it is.
    With `at_once` it does not wait until they are searched."""

    def __init__(self, search: WorkspaceSearch, *, at_once: bool) -> None:
        self._search = search
        self._at_once = at_once
        self.progress = ""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        search = self._search
        listener = search.reading
        # A bar would be drawn across the line that is typed.
        search.reading = None
        try:
            async with filling(search, self._tell, at_once=self._at_once):
                yield
        finally:
            search.reading = listener

    def _tell(self, done: int, total: int) -> None:
        rest = total - done
        self.progress = f"{rest:,} passages to embed ({done / total:.0%})" if rest else ""
