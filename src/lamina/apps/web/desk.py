"""The state that handlers share: folders, open sessions, and running work.

Laws: a session is opened when something is written, not when it is viewed, and only once, however
many ask. Reading a session reads its current journal.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.background_fill import FillPause, filling
from lamina.apps.views.session_opener import open_runner
from lamina.apps.views.session_options import SessionOptions
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.web.conversation.message_outline import Outline
from lamina.apps.web.http_answers import Refusal, print_defect
from lamina.apps.web.jobs import Jobs
from lamina.apps.web.journal_views import JournalViews, Outlines
from lamina.apps.web.kept_opening import KeptNotices, KeptOpening, keep_opening, read_opening
from lamina.apps.web.open_session import OpenSession
from lamina.apps.web.rehearsals import Rehearsals
from lamina.apps.web.searches import Searches
from lamina.apps.web.server_events import Bulletin
from lamina.apps.web.workspace_list import WorkspaceList
from lamina.apps.wiring.stores import default_store
from lamina.core.journal import Journal
from lamina.core.ports import TargetBook, ViewableStore
from lamina.errors import LaminaError, SessionBusy, UnknownSession

IDLE_S = 60.0
# How long turns may take to stop when the server stops.
STOP_S = 5.0
SessionKey = tuple[str, str]


class Desk:
    """`start` is the folder that the server was started in, if any."""

    def __init__(
        self, *, start: Path | None = None, book: TargetBook | None = None, idle_s: float = IDLE_S
    ) -> None:
        self.book = book or load_book()
        self.jobs = Jobs()
        self.bulletin = Bulletin()
        self.workspaces = WorkspaceList()
        self.views = JournalViews()
        # While a model answers it needs the machine: embedding of notes pauses in all sessions.
        self._pause = FillPause()
        self.searches = Searches(self._pause)
        self.outlines = Outlines()
        self.rehearsals = Rehearsals(self.views, self.stored)
        self.start = self.workspaces.add(start) if start is not None else ""
        self.stopping = anyio.Event()
        self._idle_s = idle_s
        self._open: dict[SessionKey, OpenSession] = {}
        self._locks: dict[SessionKey, anyio.Lock] = {}
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Keep sessions open within this context; close all of them at its end."""
        async with anyio.create_task_group() as self._group, anyio.create_task_group() as jobs:
            self.jobs.bind(jobs)
            self.searches.bind(jobs)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.stop()
                    await self.searches.aclose()
                    await self.rehearsals.close()
                self.views.close()
                jobs.cancel_scope.cancel()
                self._group.cancel_scope.cancel()

    async def stop(self) -> None:
        """Stop turns, close sessions, and end all streams."""
        sessions = list(self._open.values())
        for opened in sessions:
            opened.closing.set()
        with anyio.move_on_after(STOP_S):
            for opened in sessions:
                await opened.closed.wait()
        self.stopping.set()

    # -- folders and stored sessions ---------------------------------------------------------------

    def workspace(self, workspace: str) -> Path:
        """Return the folder of a workspace.

        Raises:
            Refusal: there is no workspace with that id.
        """
        return self.workspaces.find(workspace)

    def stored(self, workspace: str, session: str) -> StoredSession:
        """Return a stored session; whether it exists shows when it is read."""
        return StoredSession(session, default_store(self.workspace(workspace)))

    async def read_journal(self, workspace: str, session: str) -> Journal:
        """Return a session's current journal, whether or not it is open elsewhere. Its entries may
        be loaded on access.

        Raises:
            UnknownSession: there is no such session.
        """
        stored = self.stored(workspace, session)
        if (opened := self._open.get((workspace, session))) is not None:
            return opened.journal
        return await self.views.read(stored)

    async def read_outline(self, workspace: str, session: str) -> tuple[Journal, Outline]:
        """Return a session's current journal, and its outline of rows."""
        journal = await self.read_journal(workspace, session)
        return journal, await self.outlines.outline((workspace, session), journal)

    async def require_session(self, workspace: str, session: str) -> None:
        """
        Raises:
            UnknownSession: there is no such session.
        """
        stored = self.stored(workspace, session)
        if (workspace, session) not in self._open and not await stored.store.has(session):
            raise UnknownSession(f"no session {session!r} in this workspace")

    # -- open sessions ---------------------------------------------------------------------------

    def find_open(self, workspace: str, session: str) -> OpenSession | None:
        """Return the session if this server has it open."""
        opened = self._open.get((workspace, session))
        return None if opened is None or opened.closing.is_set() else opened

    def list_open(self, workspace: str) -> dict[str, OpenSession]:
        return {name: opened for (place, name), opened in self._open.items() if place == workspace}

    async def is_busy_elsewhere(self, workspace: str, session: str) -> bool:
        """Return whether another program has it open."""
        stored = self.stored(workspace, session)
        if (workspace, session) in self._open or not isinstance(stored.store, ViewableStore):
            return False
        return await stored.store.is_open(session)

    @asynccontextmanager
    async def session(self, workspace: str, session: str) -> AsyncIterator[OpenSession]:
        """Return the session, opened if necessary, and kept open while in use.

        Raises:
            UnknownSession: there is no such session.
            SessionBusy: another program has it open.
        """
        key = (workspace, session)
        folder = self.workspace(workspace)
        with ExitStack() as stack:
            async with self._locks.setdefault(key, anyio.Lock()):
                opened = self._open.get(key)
                if opened is not None and opened.closing.is_set():
                    await opened.closed.wait()
                    opened = None
                if opened is None:
                    await self.require_session(workspace, session)
                    if await self.is_busy_elsewhere(workspace, session):
                        raise busy(session)
                    journal = await self.read_journal(workspace, session)
                    opening = read_opening(journal)
                    opened = await self._start(
                        workspace, opening.options(folder, session), opening, key
                    )
                # Count it as used from here: it must not close in between.
                stack.enter_context(opened)
            yield opened

    async def create(
        self, workspace: str, options: SessionOptions, opening: KeptOpening
    ) -> OpenSession:
        """Start a session."""
        options = replace(options, workspace=self.workspace(workspace))
        opened = await self._start(workspace, options, opening, None)
        with opened:
            await keep_opening(opened.session, opening)
        return opened

    async def close(self, workspace: str, session: str) -> None:
        """Close a session if it is open; a running turn is stopped."""
        if (opened := self._open.get((workspace, session))) is not None:
            opened.closing.set()
            await opened.closed.wait()

    async def _start(
        self,
        workspace: str,
        options: SessionOptions,
        opening: KeptOpening,
        key: SessionKey | None,
    ) -> OpenSession:
        if self._group is None or self.stopping.is_set():
            raise Refusal(503, "stopping", "the server is stopping")
        try:
            opened: OpenSession = await self._group.start(
                self._own, workspace, options, opening, key
            )
        except SessionBusy as error:
            raise busy(error.session) from error
        return opened

    async def _own(
        self,
        workspace: str,
        options: SessionOptions,
        opening: KeptOpening,
        key: SessionKey | None,
        *,
        task_status: TaskStatus[OpenSession],
    ) -> None:
        """Open a session and close it, in the same task."""
        notices = KeptNotices()
        # A plan's calls cannot wait in the journal; all others can.
        approvals = PendingApprovals() if options.mode == "plan" else None
        runner = await open_runner(options, notices, approver=approvals)
        opened: OpenSession | None = None
        key = key or (workspace, runner.session.id)
        try:
            filled = filling(runner.session.searcher, pause=self._pause)
            async with runner, filled, anyio.create_task_group() as group:
                opened = OpenSession(
                    runner, opening, group, lambda news: self.bulletin.publish(workspace, news),
                    pause=self._pause, approvals=approvals, notices=tuple(notices.lines),
                )  # fmt: skip
                self._open[key] = opened
                task_status.started(opened)
                await self._wait(opened)
                opened.turns.abort()
        except Exception as error:
            if opened is None:
                raise
            # An error while closing a session must not take the server down.
            if not isinstance(error, LaminaError):
                print_defect(error)
        finally:
            self._open.pop(key, None)
            if opened is not None:
                opened.closing.set()
                opened.closed.set()

    async def _wait(self, opened: OpenSession) -> None:
        """Wait until it should close: after a long idle time, or on request."""
        while not opened.closing.is_set():
            rest = self._idle_s - opened.idle_for()
            if rest <= 0:
                opened.closing.set()
                return
            with anyio.move_on_after(rest):
                await opened.closing.wait()


def busy(session: str) -> Refusal:
    """Return the refusal for a session that another program has open."""
    return Refusal(
        409,
        SessionBusy.code,
        f"session {session!r} is open in another program, such as `lamina chat` in a terminal; "
        f"close it there to continue here, or fork it. You can still read it",
    )
