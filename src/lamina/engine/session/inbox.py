"""Stores messages without a request of their own: added to history, or waiting for the next turn.

Law: a waiting message is in the journal before its sender gets a confirmation, and it leaves the
inbox in the same write that stores it as a message or a question: it is neither lost nor sent
twice.
"""

import anyio

from lamina.core.assembly.request_draft import Page
from lamina.core.codec import require_text
from lamina.core.journal import awaits_results
from lamina.core.values.entry import Delivery, InboxEntry
from lamina.core.values.message import Message, Role, Text
from lamina.core.values.patch import MessagesCachedAppend, Patch
from lamina.engine.record.record import Record
from lamina.errors import TurnStateError, UsageError


class SessionInbox:
    def __init__(self, record: Record, lock: anyio.Lock) -> None:
        self._record = record
        self._lock = lock

    def waiting(self, deliver: Delivery) -> tuple[InboxEntry, ...]:
        """Return the waiting messages, in the order in which they were sent."""
        messages = self._record.state.inbox.values()
        return tuple(message for message in messages if message.deliver == deliver)

    async def keep(self, text: str, deliver: Delivery) -> None:
        """Store a message for the next turn."""
        require_text(text, "the message")
        async with self._lock:
            await self._record.write(InboxEntry, text=text, deliver=deliver)

    async def discard(self, message: InboxEntry) -> None:
        """Remove a message that cannot be asked."""
        async with self._lock:
            if message.id in self._record.state.inbox:
                await self._record.write(InboxEntry, taken=message.id)


def take_out(page: Page, message: InboxEntry) -> None:
    """Record that a message is sent on this page, where it may have another id. This stays recorded
    even if its request is left for another one.
    """
    for key, waiting in page.state.inbox.items():
        if (waiting.text, waiting.deliver) == (message.text, message.deliver):
            page.write(InboxEntry, taken=key)
            page.began_at = page.state.leaf
            return


ADDED = "session.add_message"


def add_message(page: Page, text: str, *, role: Role, custom_type: str, shown: bool) -> None:
    """Write a message onto `page`, behind the history.

    Raises:
        TurnStateError: a turn is in progress.
        UsageError: the message is blank, or its role is that of a tool.
    """
    require_text(text, "the message")
    if not text.strip():
        raise UsageError("the message is blank; give it a text")
    if role not in ("user", "assistant"):
        raise UsageError(f"message role {role!r} is not 'user' or 'assistant'")
    if page.state.requests.open is not None or awaits_results(page.state):
        problem = "a turn is in progress, and nothing can be added to it; send it with a runner's"
        raise TurnStateError(f"{problem} `send_message`, or add it after the answer")
    message = Message(role=role, blocks=(Text(text),), custom_type=custom_type, shown=shown)
    page.transform(ADDED, Patch(ops=(MessagesCachedAppend(messages=(message,)),)))
