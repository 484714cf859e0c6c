"""Keeps messages that a person sends to a runner until they are asked.

Laws: during a turn they wait here. Messages sent while nothing is running, and those left when a
turn ends, are stored in the journal and sent with the next question or the resumed turn. Steering
messages come first.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from lamina.core.values.entry import Delivery, InboxEntry
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.errors import LaminaError, UsageError


class Inbox:
    """The messages of one runner. `taken` is the message from the journal that is being asked, and
    `is_asking` is true while a message is being asked. `takes_kept` is true if those in the journal
    belong to the current, resumed turn; otherwise they wait for the next question.
    """

    def __init__(self, session: Session) -> None:
        self.taken: InboxEntry | None = None
        self.is_asking = False
        self.takes_kept = False
        self._session = session
        self._kept = core_of(session).inbox
        self._queues: dict[Delivery, deque[str]] = {"steer": deque(), "follow_up": deque()}

    async def add(self, text: str, deliver: Delivery, *, is_running: bool) -> None:
        """Accept a message; it is stored when this returns, unless a turn is in progress."""
        if not text.strip():
            raise UsageError("the message is blank; give it a text")
        if deliver not in self._queues:
            raise UsageError(f"deliver={deliver!r} is not 'steer' or 'follow_up'")
        if is_running:
            self._queues[deliver].append(text)
        else:
            await self._kept.keep(text, deliver)

    @property
    def steers(self) -> bool:
        """Whether a message is waiting to be sent with the next request."""
        return bool(self._waiting("steer") or self._queues["steer"])

    async def take(self, begin: Callable[[str], Awaitable[Turn]]) -> Turn | None:
        """Return the request for the next message; None if there is no message. If this is stopped
        before the message is stored, the message stays here.
        """
        self.is_asking = True
        try:
            return await self._take(begin)
        finally:
            self.is_asking = False

    async def _take(self, begin: Callable[[str], Awaitable[Turn]]) -> Turn | None:
        for deliver, queue in self._queues.items():
            if waiting := self._waiting(deliver):
                self.taken = message = waiting[0]
                try:
                    return await begin(message.text)
                except LaminaError:
                    # It would block all later messages.
                    await self._kept.discard(message)
                    raise
                finally:
                    self.taken = None
            if queue:
                return await self._take_new(queue, begin)
        return None

    def _waiting(self, deliver: Delivery) -> tuple[InboxEntry, ...]:
        return self._kept.waiting(deliver) if self.takes_kept else ()

    async def _take_new(self, queue: deque[str], begin: Callable[[str], Awaitable[Turn]]) -> Turn:
        text = queue.popleft()
        try:
            return await begin(text)
        except anyio.get_cancelled_exc_class():
            if not self._session.interrupted:
                queue.appendleft(text)
            raise

    async def settle(self) -> None:
        """Store the remaining messages, because no turn is in progress any more."""
        for deliver, queue in self._queues.items():
            while queue:
                await self._kept.keep(queue[0], deliver)
                queue.popleft()
