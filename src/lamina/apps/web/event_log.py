"""What happened in a turn or a job, numbered, for those who watch: now, later, or again.

Law: every watcher gets every event from the number it asks for on, once and in order, however
often it comes back. The last event is `end` or `failed`; a log that has it never grows.
"""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import msgspec

from lamina.apps.web.route import ServerEvent

PING_S = 15.0
PING = ServerEvent("ping", b"{}")
LAST_EVENTS = ("end", "failed")
_encoder = msgspec.json.Encoder()


class EventLog:
    """Events in memory."""

    def __init__(self) -> None:
        self._events: list[ServerEvent] = []
        self._news = anyio.Event()
        self.is_over = False

    @property
    def next_number(self) -> int:
        """The number that the next event will have; they count from 1."""
        return len(self._events) + 1

    def add(self, event: str, data: Any) -> None:
        """Adds one; nothing comes behind the last."""
        if self.is_over:
            return
        self._events.append(ServerEvent(event, _encoder.encode(data), self.next_number))
        self.is_over = event in LAST_EVENTS
        news, self._news = self._news, anyio.Event()
        news.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[ServerEvent]:
        """The events behind number `after`, until the last one; pings while nothing happens."""
        at = max(0, after)
        while True:
            news = self._news
            while at < len(self._events):
                at += 1
                yield self._events[at - 1]
            if self.is_over:
                return
            if news is self._news:
                with anyio.move_on_after(PING_S) as waiting:
                    await news.wait()
                if waiting.cancelled_caught:
                    yield PING


def number_after(headers: Any) -> int:
    """Where a watcher wants to go on: what its browser says it saw last."""
    text = headers.get("last-event-id", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
