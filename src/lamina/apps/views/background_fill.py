"""Background indexing in an open session: prepares notes for search by meaning between turns.

Law: it never delays a turn, stops with the session, and loses nothing by that. The next search
tries the same work and reports what went wrong.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from lamina.core.ports import Progress
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.engine.task_groups import single_errors


class FillPause:
    """Pauses fills during turns; shared by all fills and turns of a session."""

    def __init__(self) -> None:
        self._turns = 0
        self._over = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        """Mark the start of a turn."""
        self._turns += 1
        for scope in self._scopes:
            scope.cancel()

    def end(self) -> None:
        """Mark the end of a turn."""
        self._turns -= 1
        if not self._turns:
            self._over.set()
            self._over = anyio.Event()

    async def fill(
        self, search: WorkspaceSearch, progress: Progress | None = None, at_once: bool = False
    ) -> None:
        """Fill between turns until cancelled or until something goes wrong."""
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
    """Embed what searches are missing while this context is open, except during a `pause`; with
    `at_once` before the first search."""
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
    """Fill until cancelled or until something goes wrong."""
    try:
        await search.fill(progress, at_once=at_once)
    except Exception:  # noqa: BLE001 - no caller waits; the next search reports it
        if progress is not None:
            progress(0, 0)
