"""Rehearsals that are ready: runners that only show what they would send.

Law: one is kept ready as long as its session stands where it stood, for opening one takes longer
than typing a letter. Nothing of it is shared with the session itself but what is read.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec import Struct

from lamina.adapters.stores.scratch import ViewedStore
from lamina.apps.views.options import SessionOptions
from lamina.apps.views.previews import why_refused
from lamina.apps.views.session_opener import Rehearsal, open_runner
from lamina.apps.views.stored_session import StoredSession
from lamina.apps.web.attachment_names import attachments_of
from lamina.apps.web.defects import tell_defect
from lamina.apps.web.notices import KeptNotices
from lamina.apps.web.preview_rows import describe_preview, refused_preview
from lamina.apps.web.refusals import Refusal
from lamina.apps.web.shapes.previews import NewPreview, PreviewBody, RequestPreview
from lamina.apps.wiring.index import LazyIndex
from lamina.apps.wiring.workspaces import open_folder
from lamina.core.journal import Journal
from lamina.engine.runners.runner import ChatRunner
from lamina.errors import LaminaError

# How many are kept ready, and for how long after the last look.
KEPT_REHEARSALS = 4
IDLE_S = 120.0
# Of a message that is not typed yet, so that there is something to weigh.
BLANK = "…"


class ViewedSession(Struct, frozen=True):
    """A session that is only read, as it was a moment ago."""

    stored: StoredSession
    journal: Journal


class OpenRehearsal:
    """One that is ready. `state` is what it was opened for: when that changes, it is of no use."""

    def __init__(self, runner: ChatRunner, state: object, leaf: str) -> None:
        self.runner = runner
        self.state = state
        self.leaf = leaf
        self.lock = anyio.Lock()
        self.used_at = anyio.current_time()
        self.closing = anyio.Event()
        self.closed = anyio.Event()


class RehearsalRoom:
    """Those that are ready, by workspace and session, on the loop that it is entered on."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._open: dict[tuple[str, str], OpenRehearsal] = {}
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The time in which rehearsals can be ready. At its end all of them are closed."""
        async with anyio.create_task_group() as self._group:
            yield
            for ready in list(self._open.values()):
                ready.closing.set()

    async def look(
        self,
        key: tuple[str, str],
        options: SessionOptions,
        viewed: ViewedSession | None,
        body: PreviewBody | NewPreview,
    ) -> RequestPreview:
        """What a message would send: of a session as it was `viewed`, or of a new one."""
        state: object = options if viewed is None else viewed.journal.leaf
        ready = await self._ready(key, options, state, viewed)
        target = None if isinstance(body, NewPreview) else body.target
        return await _look(ready, options.workspace, body.text, body.attach, body.essential, target)

    async def _ready(
        self,
        key: tuple[str, str],
        options: SessionOptions,
        state: object,
        viewed: ViewedSession | None,
    ) -> OpenRehearsal:
        async with self._locks.setdefault(key, anyio.Lock()):
            ready = self._open.get(key)
            if ready is not None and (ready.state != state or ready.closing.is_set()):
                await self._close(ready)
                ready = None
            if ready is None:
                await self._make_room()
                if self._group is None:
                    raise Refusal(503, "stopping", "the server is about to end")
                ready = await self._group.start(self._own, key, options, state, viewed)
            ready.used_at = anyio.current_time()
            return ready

    async def _make_room(self) -> None:
        while len(self._open) >= KEPT_REHEARSALS:
            await self._close(min(self._open.values(), key=lambda ready: ready.used_at))

    async def _close(self, ready: OpenRehearsal) -> None:
        ready.closing.set()
        await ready.closed.wait()

    async def _own(
        self,
        key: tuple[str, str],
        options: SessionOptions,
        state: object,
        viewed: ViewedSession | None,
        *,
        task_status: TaskStatus[OpenRehearsal],
    ) -> None:
        """Opens a rehearsal and closes it, in one task."""
        store = None
        if viewed is not None:
            store = ViewedStore(viewed.stored.store, viewed.stored.session, viewed.journal)
        folder, index = open_folder(options.workspace), LazyIndex()
        ready: OpenRehearsal | None = None
        try:
            runner = await open_runner(
                options, KeptNotices(), workspace=folder,
                rehearsal=Rehearsal(index=index, store=store),
            )  # fmt: skip
            async with runner:
                ready = OpenRehearsal(runner, state, runner.session.state.leaf)
                self._open[key] = ready
                task_status.started(ready)
                await _wait(ready)
        except Exception as error:
            if ready is None:
                raise
            if not isinstance(error, LaminaError):
                tell_defect(error)
        finally:
            with anyio.CancelScope(shield=True), suppress(OSError):
                await index.aclose()
                await folder.aclose()
            if ready is not None:
                if self._open.get(key) is ready:
                    del self._open[key]
                ready.closing.set()
                ready.closed.set()


async def _wait(ready: OpenRehearsal) -> None:
    while not ready.closing.is_set():
        rest = IDLE_S - (anyio.current_time() - ready.used_at)
        if rest <= 0:
            ready.closing.set()
            break
        with anyio.move_on_after(rest):
            await ready.closing.wait()
    # Whoever looks now is not cut off.
    async with ready.lock:
        pass


async def _look(
    ready: OpenRehearsal,
    folder: Path,
    text: str,
    attach: tuple[str, ...],
    essential: tuple[str, ...],
    target: str | None,
) -> RequestPreview:
    session = ready.runner.session
    async with ready.lock:
        chosen = session.target(target)
        attachments = await attachments_of(session, folder, text, attach, essential)
        try:
            preview = await ready.runner.preview(
                text if text.strip() else BLANK, attach=attachments, target=target
            )
        except LaminaError as error:
            return refused_preview(error, chosen, session.settings, ready.leaf)
        refusals = await why_refused(session, preview)
        return describe_preview(preview, session, chosen, refusals, ready.leaf)
