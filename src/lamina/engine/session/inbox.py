"""Messages that were sent while no turn was under way.

Law: such a message is in the journal before its sender is told so, and it leaves the inbox with the
write that holds it as a message or a question: it is neither lost nor sent twice.
"""

import anyio

from lamina.core.assembly.page import Page
from lamina.core.codec import require_text
from lamina.core.values.entry import Delivery, InboxEntry
from lamina.engine.record.record import Record


class SessionInbox:
    def __init__(self, record: Record, lock: anyio.Lock) -> None:
        self._record = record
        self._lock = lock

    def waiting(self, deliver: Delivery) -> tuple[InboxEntry, ...]:
        """The messages that wait, in the order they were sent in."""
        messages = self._record.state.inbox.values()
        return tuple(message for message in messages if message.deliver == deliver)

    async def keep(self, text: str, deliver: Delivery) -> None:
        """Keeps a message for the next turn."""
        require_text(text, "the message")
        async with self._lock:
            await self._record.write(InboxEntry, text=text, deliver=deliver)

    async def discard(self, message: InboxEntry) -> None:
        """Takes a message out that cannot be asked."""
        async with self._lock:
            if message.id in self._record.state.inbox:
                await self._record.write(InboxEntry, taken=message.id)


def take_out(page: Page, message: InboxEntry) -> None:
    """Writes down that a message is sent on this page, where it may have another id. It stays so
    if its request is left for another one."""
    for key, waiting in page.state.inbox.items():
        if (waiting.text, waiting.deliver) == (message.text, message.deliver):
            page.write(InboxEntry, taken=key)
            page.began_at = page.state.leaf
            return
