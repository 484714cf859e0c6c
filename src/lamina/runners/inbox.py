"""Messages that a person sends while a turn is under way, until they are taken up."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio

from lamina.errors import UsageError
from lamina.session.session import Session
from lamina.session.turn import Turn

Delivery = Literal["steer", "follow_up"]


class Inbox:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.steering: deque[str] = deque()
        self.following: deque[str] = deque()

    def add(self, text: str, deliver: Delivery) -> None:
        if deliver not in ("steer", "follow_up"):
            raise UsageError(f"a message is delivered as 'steer' or 'follow_up', not {deliver!r}")
        (self.steering if deliver == "steer" else self.following).append(text)

    async def take(self, begin: Callable[[str], Awaitable[Turn]]) -> Turn | None:
        """The request for the next message, those that steer first; None if there is no message.
        Stopped before it was written down, a message stays here."""
        queue = self.steering or self.following
        if not queue:
            return None
        text = queue.popleft()
        try:
            return await begin(text)
        except anyio.get_cancelled_exc_class():
            if not self._session.interrupted:
                queue.appendleft(text)
            raise
