"""What an open session does beside its turns: it gets the notes ready to be searched by meaning.

Law: it never stands in the way of a turn, ends with the session, and loses nothing by that. What
goes wrong is told by the next search, which tries the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from lamina.core.ports import Progress
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.engine.task_groups import single_errors


class FillPause:
    """Stops fills while turns are under way: all fills and turns that share it."""

    def __init__(self) -> None:
        self._turns = 0
        self._over = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        """A turn begins."""
        self._turns += 1
        for scope in self._scopes:
            scope.cancel()

    def end(self) -> None:
        """A turn is over."""
        self._turns -= 1
        if not self._turns:
            self._over.set()
            self._over = anyio.Event()

    async def fill(
        self, search: WorkspaceSearch, progress: Progress | None = None, at_once: bool = False
    ) -> None:
        """Fills between turns until it is cancelled, or something goes wrong."""
        while True:
            while self._turns:
                await self._over.wait()
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                try:
                    await fill_quietly(search, progress, at_once)
                finally:
                    self._scopes.discard(scope)
            if not scope.cancelled_caught:
                return


@asynccontextmanager
async def filling(
    search: WorkspaceSearch | None,
    progress: Progress | None = None,
    *,
    at_once: bool = False,
    pause: FillPause | None = None,
) -> AsyncIterator[None]:
    """While this is entered, what searches miss is embedded, but for a `pause`; with `at_once`
    before any search."""
    if search is None:
        yield
        return
    fill = (pause or FillPause()).fill
    with single_errors():
        async with anyio.create_task_group() as group:
            group.start_soon(fill, search, progress, at_once)
            try:
                yield
            finally:
                group.cancel_scope.cancel()


async def fill_quietly(
    search: WorkspaceSearch, progress: Progress | None = None, at_once: bool = False
) -> None:
    """Fills until it is cancelled, or something goes wrong."""
    try:
        await search.fill(progress, at_once=at_once)
    except Exception:  # noqa: BLE001 - nobody waits for it, and a search says what is wrong
        if progress is not None:
            progress(0, 0)
