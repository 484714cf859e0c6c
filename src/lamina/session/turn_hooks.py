"""Hooks at the moments of a turn."""

from lamina.assembly.page import Page
from lamina.errors import MessageDropped
from lamina.journal import State
from lamina.record.record import Record
from lamina.sources.hook_runs import run_context_hooks, run_message_hooks
from lamina.sources.hooks import HookReason, Hooks
from lamina.values.entry import CustomEntry
from lamina.values.message import Message, Text

DROPPED = "lamina.dropped"


class TurnHooks:
    """Runs the hooks of one session."""

    def __init__(self, record: Record, hooks: Hooks) -> None:
        self._record = record
        self._hooks = hooks

    async def on_context(
        self, reason: HookReason, page: Page, target: str, message: Message
    ) -> None:
        """Lets hooks change the context on `page`."""
        if self._hooks.context_hooks:
            await run_context_hooks(self._hooks, reason, page, target, message)

    async def on_message(self, message: Message, state: State) -> tuple[Message, tuple[str, ...]]:
        """A finalised message as hooks leave it, and what a person should know of them."""
        if not self._hooks.message_hooks:
            return message, ()
        return await run_message_hooks(self._hooks, self._record.id, message, state.envelope)

    async def on_question(self, page: Page, text: str) -> tuple[Message, tuple[str, ...]]:
        """A question as hooks leave it.

        Raises:
            MessageDropped: one dropped it, which is written down.
        """
        message = Message(role="user", blocks=(Text(text),))
        try:
            return await self.on_message(message, page.state)
        except MessageDropped as drop:
            # Nothing disappears silently: the journal says what was dropped and by whom.
            data = {"hook": drop.hook, "text": drop.text}
            await self._record.write(CustomEntry, kind=DROPPED, data=data)
            raise
