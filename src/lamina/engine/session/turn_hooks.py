"""Hooks at the moments of a turn."""

from collections.abc import Callable

from msgspec import Struct

from lamina.core.assembly.draft import NOTHING_ADDED, Ephemera
from lamina.core.assembly.page import Page
from lamina.core.assembly.report import read_attachments
from lamina.core.journal import State
from lamina.core.values.entry import CustomEntry, RequestEntry
from lamina.core.values.envelope import SystemParts
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, Text
from lamina.core.values.settings import Promotion, Target
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.sources.hook_calls import LateHooks
from lamina.engine.sources.hook_events import HookReason, turn_items
from lamina.engine.sources.hook_runs import (
    HookedMessage,
    HookScene,
    run_context_hooks,
    run_ephemeral_hooks,
    run_message_hooks,
)
from lamina.engine.sources.hooks import Hooks
from lamina.errors import MessageDropped

DROPPED = "lamina.dropped"
# How long a hook may take for what is kept of an answer that was stopped: somebody waits for that.
HURRY_S = 1.0


class TurnFrame(Struct, frozen=True, kw_only=True):
    """What holds for a turn: whom it goes to, how it is laid out, and what applies to it."""

    target: Target
    promotion: Promotion
    attachments: tuple[Attachment, ...] = ()


class TurnHooks:
    """Runs the hooks of one session."""

    def __init__(self, record: Record, layouts: Layouts, hooks: Hooks) -> None:
        self._record = record
        self._layouts = layouts
        self._hooks = hooks
        self._late = LateHooks()

    def tell_late(self) -> tuple[str, ...]:
        """What a person should know of hooks that run on though nobody waits for them, once."""
        return self._late.tell()

    async def on_context(
        self,
        reason: HookReason,
        page: Page,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> None:
        """Lets hooks change the context on `page`; `foresee` gives the request's system prompt."""
        if self._hooks.for_context(reason):
            scene = self._scene(frame, message, foresee)
            await run_context_hooks(self._hooks, reason, page, scene)

    async def on_end(self, page: Page, request: RequestEntry, answer: Message) -> None:
        """Lets hooks change the context once a turn is over."""
        if self._hooks.for_context("turn_end"):
            await self.on_context("turn_end", page, self._frame_of(request, page.state), answer)

    async def for_request(
        self,
        page: Page,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> Ephemera:
        """What hooks add to one request only."""
        if not self._hooks.for_context("ephemeral"):
            return NOTHING_ADDED
        return await run_ephemeral_hooks(self._hooks, page, self._scene(frame, message, foresee))

    async def on_message(self, message: Message, state: State, frame: TurnFrame) -> HookedMessage:
        """A finalised message as hooks leave it."""
        if not self._hooks.message_hooks:
            return HookedMessage(message=message)
        return await run_message_hooks(self._hooks, state, self._scene(frame, message))

    async def on_reply(
        self, message: Message, state: State, request: RequestEntry | None, *, hurry: bool = False
    ) -> HookedMessage:
        """The answer to a request, or the results of its calls, as hooks leave it; None if it is
        not known which one. With `hurry` a hook gets little time."""
        if not self._hooks.message_hooks:
            return HookedMessage(message=message)
        scene = HookScene(message=message, late=self._late)
        if request is not None:
            scene = self._scene(self._frame_of(request, state), message)
        return await run_message_hooks(self._hooks, state, scene, HURRY_S if hurry else None)

    async def on_question(self, page: Page, frame: TurnFrame, text: str) -> HookedMessage:
        """A question as hooks leave it.

        Raises:
            MessageDropped: one dropped it, which is written down.
        """
        message = Message(role="user", blocks=(Text(text),))
        try:
            return await self.on_message(message, page.state, frame)
        except MessageDropped as drop:
            # Nothing disappears silently: the journal says what was dropped and by whom.
            data = {"hook": drop.hook, "text": drop.text}
            await self._record.write(CustomEntry, kind=DROPPED, data=data)
            raise

    def _frame_of(self, request: RequestEntry, state: State) -> TurnFrame:
        out = {item.item for item in request.context.items if item.placement == "left_out"}
        attachments = read_attachments(request.context, state.library.items)
        return TurnFrame(
            target=self._layouts.book.find(request.target),
            promotion=request.promotion,
            attachments=tuple(a for a in attachments if a.item.id not in out),
        )

    def _scene(
        self,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> HookScene:
        # The same counts as the request is planned with, each made once.
        assembler = self._layouts.assembler_for(frame.target, frame.promotion)
        items = turn_items(frame.attachments, assembler.item_tokens)
        return HookScene(
            message=message,
            target=frame.target.name,
            items=items,
            late=self._late,
            foresee=foresee,
        )
