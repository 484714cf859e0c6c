"""Previews: what a message would send, shown while a person types.

Laws: nothing is written to any session, and the preview matches what is sent afterwards, digest
for digest. A preview runner is kept open while its session is unchanged, since opening one takes
longer than typing a letter; it shares nothing with the session except what it reads. All this
runs on its own thread: measuring a history far above the window takes a while and must not block
anything else.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec import Struct, convert

from lamina.adapters.stores.scratch import ViewedStore
from lamina.apps.views.answer_json import why_refused
from lamina.apps.views.session_opener import Rehearsal, open_runner
from lamina.apps.views.session_options import SessionOptions
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.web.completions import attachments_of
from lamina.apps.web.http_answers import Refusal, print_defect
from lamina.apps.web.http_bodies import RequestBody
from lamina.apps.web.journal_views import JournalViews
from lamina.apps.web.kept_opening import KeptNotices, read_opening
from lamina.apps.web.session_records import NewSession
from lamina.apps.wiring.folders import open_folder
from lamina.apps.wiring.index import LazyIndex
from lamina.core.journal import Journal
from lamina.core.layers import measure_layers
from lamina.core.ledger import CostRange
from lamina.core.ledger.cost import CacheRewrite, price_request
from lamina.core.values.prompt import Layer, LayerSize, Segment, WireRole
from lamina.core.values.request import Agreement, Boundary, ContextItem, ContextTool, LeftOut
from lamina.core.values.settings import Settings, Target
from lamina.engine.runners.answer import PlanPreview, Preview
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import Session
from lamina.errors import BudgetError, LaminaError


class PreviewBody(RequestBody, frozen=True, kw_only=True):
    """The message as typed so far."""

    text: str = ""
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class NewPreview(NewSession, frozen=True, kw_only=True):
    """The first message of a session that does not exist yet."""

    text: str = ""
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()


class SegmentView(Struct, frozen=True, kw_only=True):
    """A run of bytes on the wire, identified by its digest."""

    layer: Layer
    role: WireRole
    source: str
    tokens: int
    cached: bool
    digest: str


class RequestPreview(Struct, frozen=True, kw_only=True):
    """What would be sent. `cached` is how many tokens a provider should find in its cache, `new`
    the rest; both are None if unknown. `refusal` says why it would not be sent; the other fields
    are then filled as far as known. For a planned question (`only_plan`) this is the request for
    the plan."""

    target: str
    tokens: int
    window: int
    reserve: int
    exact: bool
    layers: tuple[LayerSize, ...]
    items: tuple[ContextItem, ...]
    tools: tuple[ContextTool, ...]
    left_out: tuple[LeftOut, ...]
    cached: int | None
    new: int | None
    cost_range: CostRange | None
    rewrite: CacheRewrite | None
    agreement: Agreement
    boundaries: tuple[Boundary, ...]
    warnings: tuple[str, ...]
    segments: tuple[SegmentView, ...]
    digest: str
    only_plan: bool
    refusal: str
    leaf: str


def describe_preview(
    preview: Preview | PlanPreview,
    session: Session,
    target: Target,
    refusals: Sequence[str],
    leaf: str,
) -> RequestPreview:
    """Return what would be sent, and how much of it a provider should have in its cache."""
    if isinstance(preview, PlanPreview):
        return _describe_plan(preview, session.settings, refusals, leaf)
    turn = preview.turn
    context = turn.context
    price = price_request(context, turn.options, session.settings, target)
    cached = price.cached
    if context.warm is not None:
        # Another session sent the same beginning recently.
        cached = max(cached, min(context.warm.tokens, context.fit.tokens))
    return RequestPreview(
        target=context.target,
        tokens=context.fit.tokens,
        window=context.fit.window,
        reserve=context.fit.reserve,
        exact=target.exact_tokens,
        layers=turn.layers,
        items=context.items,
        tools=context.tools,
        left_out=context.left_out,
        cached=cached,
        new=max(0, context.fit.tokens - cached),
        cost_range=turn.cost_range,
        rewrite=turn.rewrite,
        agreement=context.agreement,
        boundaries=context.boundaries,
        warnings=tuple(dict.fromkeys((*turn.warnings, *preview.warnings))),
        segments=_segment_views(turn.prompt),
        digest=turn.prompt.digest,
        only_plan=False,
        refusal="; ".join(refusals),
        leaf=leaf,
    )


def _describe_plan(
    preview: PlanPreview, settings: Settings, refusals: Sequence[str], leaf: str
) -> RequestPreview:
    prompt, target = preview.prompt, preview.target
    return RequestPreview(
        target=target.name,
        tokens=prompt.tokens,
        window=settings.window or target.window,
        reserve=0,
        exact=target.exact_tokens,
        layers=measure_layers(prompt),
        items=(),
        tools=(),
        left_out=preview.left_out,
        cached=None,
        new=None,
        cost_range=preview.cost_range,
        rewrite=None,
        agreement=Agreement(first=True),
        boundaries=(),
        warnings=preview.warnings,
        segments=_segment_views(prompt),
        digest=prompt.digest,
        only_plan=True,
        refusal="; ".join(refusals),
        leaf=leaf,
    )


def refused_preview(
    error: LaminaError, target: Target, settings: Settings, leaf: str
) -> RequestPreview:
    """Return the preview of a message that cannot be prepared, with its sizes if too long."""
    tokens = sum(error.sizes.values()) if isinstance(error, BudgetError) else 0
    return RequestPreview(
        target=target.name, tokens=tokens, window=settings.window or target.window, reserve=0,
        exact=target.exact_tokens, layers=(), items=(), tools=(), left_out=(), cached=None,
        new=None, cost_range=None, rewrite=None, agreement=Agreement(first=True), boundaries=(),
        warnings=(), segments=(), digest="", only_plan=False, refusal=str(error), leaf=leaf,
    )  # fmt: skip


def _segment_views(prompt: Iterable[Segment]) -> tuple[SegmentView, ...]:
    return tuple(convert(segment, SegmentView, from_attributes=True) for segment in prompt)


# How many are kept ready, and how long after their last use.
KEPT_REHEARSALS = 4
IDLE_S = 120.0
# Stands for a message without text yet, so that there is something to measure.
BLANK = "…"


class ViewedSession(Struct, frozen=True):
    """A session that is only read, as of a moment ago."""

    stored: StoredSession
    journal: Journal


class OpenRehearsal:
    """A runner that is ready. `state` is what it was opened for; a change makes it obsolete."""

    def __init__(self, runner: ChatRunner, state: object, leaf: str) -> None:
        self.runner = runner
        self.state = state
        self.leaf = leaf
        self.lock = anyio.Lock()
        self.used_at = anyio.current_time()
        self.closing = anyio.Event()
        self.closed = anyio.Event()


class RehearsalRoom:
    """Ready runners by workspace and session, on the loop where this is entered."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._open: dict[tuple[str, str], OpenRehearsal] = {}
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Keep runners ready within this context; close all of them at its end."""
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
        """Return what a message would send: in the session as `viewed`, or in a new one."""
        state: object = options if viewed is None else viewed.journal.leaf
        ready = await self._ready(key, options, state, viewed)
        target = None if isinstance(body, NewPreview) else body.target
        return await _preview_with(
            ready, options.workspace, body.text, body.attach, body.essential, target
        )

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
                    raise Refusal(503, "stopping", "the server is stopping")
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
        """Open a preview runner and close it, in the same task."""
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
                await _wait_until_idle(ready)
        except Exception as error:
            if ready is None:
                raise
            if not isinstance(error, LaminaError):
                print_defect(error)
        finally:
            with anyio.CancelScope(shield=True), suppress(OSError):
                await index.aclose()
                await folder.aclose()
            if ready is not None:
                if self._open.get(key) is ready:
                    del self._open[key]
                ready.closing.set()
                ready.closed.set()


async def _wait_until_idle(ready: OpenRehearsal) -> None:
    while not ready.closing.is_set():
        rest = IDLE_S - (anyio.current_time() - ready.used_at)
        if rest <= 0:
            ready.closing.set()
            break
        with anyio.move_on_after(rest):
            await ready.closing.wait()
    # A preview in progress is not cut off.
    async with ready.lock:
        pass


async def _preview_with(
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


# How many previews may wait for the thread.
_MAX_WAITING = 16


class Rehearsals:
    """Access to the preview thread, which starts with the first preview."""

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
        """Return what a message of a session would send.

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
        """Return what the first message of a session would send."""
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
            self._limiter = anyio.CapacityLimiter(_MAX_WAITING)
            room = self._portal.wrap_async_context_manager(self._room.working())
            self._thread.enter_context(room)
        return await anyio.to_thread.run_sync(
            partial(self._portal.call, self._room.look, key, options, viewed, body),
            limiter=self._limiter,
            abandon_on_cancel=True,
        )

    async def close(self) -> None:
        """Close all preview runners and end the thread."""
        await anyio.to_thread.run_sync(self._thread.close)
        self._portal = None
