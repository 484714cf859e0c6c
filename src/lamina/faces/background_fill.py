"""What an open session does beside its turns: it gets the notes ready to be searched by meaning.

Law: it never stands in the way of a turn, ends with the session, and loses nothing by that. What
goes wrong is told by the next search, which tries the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from lamina.ports import Progress
from lamina.sources.note_search import WorkspaceSearch
from lamina.task_groups import single_errors


@asynccontextmanager
async def filling(
    search: WorkspaceSearch | None, progress: Progress | None = None, *, at_once: bool = False
) -> AsyncIterator[None]:
    """While this is entered, what searches miss is embedded; with `at_once` before any search."""
    if search is None:
        yield
        return
    with single_errors():
        async with anyio.create_task_group() as group:
            group.start_soon(fill_quietly, search, progress, at_once)
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
