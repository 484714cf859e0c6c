"""What messages would send, while a person types.

Laws: nothing is written, to no session; what is shown is, digest for digest, what is then sent. It
is worked out on a thread of its own: to weigh a history that is far over the window takes a while,
and nobody else waits for that.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from lamina.apps.views.options import SessionOptions
from lamina.apps.views.stored_session import StoredSession
from lamina.apps.web.journal_views import JournalViews
from lamina.apps.web.kept_opening import read_opening
from lamina.apps.web.rehearsal_room import RehearsalRoom, ViewedSession
from lamina.apps.web.shapes.previews import NewPreview, PreviewBody, RequestPreview

# How many may wait for the thread.
_MOST_WAITING = 16


class Rehearsals:
    """The door to the thread, which is started when something is to be shown."""

    def __init__(self, views: JournalViews, stored: Callable[[str, str], StoredSession]) -> None:
        self._views = views
        self._stored = stored
        self._room = RehearsalRoom()
        self._thread = ExitStack()
        self._portal: BlockingPortal | None = None
        self._limiter: anyio.CapacityLimiter | None = None

    async def preview(
        self, workspace: str, folder: Path, session: str, body: PreviewBody
    ) -> RequestPreview:
        """What a message of a session would send.

        Raises:
            UnknownSession: there is no such session.
        """
        stored = self._stored(workspace, session)
        journal = await self._views.read(stored)
        options = read_opening(journal).options(folder, session)
        viewed = ViewedSession(stored, journal)
        return await self._look((workspace, session), options, viewed, body)

    async def preview_new(
        self, workspace: str, options: SessionOptions, body: NewPreview
    ) -> RequestPreview:
        """What the first message of a session would send."""
        return await self._look((workspace, ""), options, None, body)

    async def _look(
        self,
        key: tuple[str, str],
        options: SessionOptions,
        viewed: ViewedSession | None,
        body: PreviewBody | NewPreview,
    ) -> RequestPreview:
        if self._portal is None:
            self._portal = self._thread.enter_context(start_blocking_portal())
            self._limiter = anyio.CapacityLimiter(_MOST_WAITING)
            room = self._portal.wrap_async_context_manager(self._room.working())
            self._thread.enter_context(room)
        return await anyio.to_thread.run_sync(
            partial(self._portal.call, self._room.look, key, options, viewed, body),
            limiter=self._limiter,
            abandon_on_cancel=True,
        )

    async def close(self) -> None:
        """Closes all that are ready, and ends the thread."""
        await anyio.to_thread.run_sync(self._thread.close)
        self._portal = None
