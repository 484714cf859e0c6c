"""Events for browsers: the numbered log of a turn or a job, changes to the sessions of a
workspace, and server-sent events over one long answer.

Laws: a follower of a log gets every event from the requested number on, once and in order, however
often it reconnects; the last event is `end` or `failed`, and nothing follows it. A watcher of a
workspace that does not keep up loses updates, never delays a turn, and asks again. Events are sent
whole; when the server stops, every stream ends as complete, so nothing waits for a browser that
stays.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, suppress
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lamina.apps.web.http_answers import encode_answer
from lamina.apps.web.http_bodies import ServerEvent
from lamina.apps.web.session_records import SessionNews

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
        """Return the number of the next event; events count from 1."""
        return len(self._events) + 1

    def add(self, event: str, data: Any) -> None:
        """Add an event; nothing follows the last one."""
        if self.is_over:
            return
        self._events.append(ServerEvent(event, _encoder.encode(data), self.next_number))
        self.is_over = event in LAST_EVENTS
        news, self._news = self._news, anyio.Event()
        news.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[ServerEvent]:
        """Yield the events after number `after`, until the last one; pings while idle."""
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
    """Return the number of the last event that the browser saw, where it resumes."""
    text = headers.get("last-event-id", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


_MAX_NEWS = 256


class Bulletin:
    """The watchers of each workspace."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[MemoryObjectSendStream[SessionNews]]] = {}

    def publish(self, workspace: str, news: SessionNews) -> None:
        for watcher in list(self._watchers.get(workspace, ())):
            try:
                watcher.send_nowait(news)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._watchers[workspace].discard(watcher)
                watcher.close()

    async def follow(
        self, workspace: str, standing: Iterable[SessionNews]
    ) -> AsyncGenerator[ServerEvent]:
        """Yield the current state, then every update."""
        send, receive = anyio.create_memory_object_stream[SessionNews](_MAX_NEWS)
        self._watchers.setdefault(workspace, set()).add(send)
        try:
            for news in standing:
                yield _news_event(news)
            while True:
                try:
                    with anyio.fail_after(PING_S):
                        news = await receive.receive()
                except TimeoutError:
                    yield PING
                except anyio.EndOfStream:
                    return
                else:
                    yield _news_event(news)
        finally:
            self._watchers[workspace].discard(send)
            send.close()
            receive.close()


def _news_event(news: SessionNews) -> ServerEvent:
    return ServerEvent("session", encode_answer(news))


_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_MAX_FRAMES = 64
# Sent at once: it shows the browser that the stream is open, and when to reconnect.
_OPENING = b"retry: 1000\n\n"


class EventResponse(StreamingResponse):
    """Sends `events` until they end, the browser leaves, or `stopping` is set."""

    def __init__(self, events: AsyncGenerator[ServerEvent], stopping: anyio.Event) -> None:
        super().__init__((), media_type="text/event-stream", headers=_HEADERS)
        self._events = events
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sender, frames = anyio.create_memory_object_stream[bytes](_MAX_FRAMES)
        pumping = anyio.CancelScope()

        async def end_with_server() -> None:
            await self._stopping.wait()
            pumping.cancel()

        async def pump() -> None:
            with pumping:
                await _pump(self._events, sender)
            sender.close()

        self.body_iterator = _read_frames(frames)
        async with anyio.create_task_group() as group, frames, sender:
            group.start_soon(pump)
            group.start_soon(end_with_server)
            await super().__call__(scope, receive, send)
            group.cancel_scope.cancel()


async def _pump(events: AsyncGenerator[ServerEvent], sender: MemoryObjectSendStream[bytes]) -> None:
    # A browser that leaves closes the other side.
    with suppress(anyio.BrokenResourceError):
        async with aclosing(events):
            await sender.send(_OPENING)
            async for event in events:
                await sender.send(write_event(event))


async def _read_frames(frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for frame in frames:
        yield frame


def write_event(event: ServerEvent) -> bytes:
    """Encode one event for the wire. Its data is JSON, so it has no line breaks."""
    number = b"" if event.number is None else b"id: %d\n" % event.number
    return number + b"event: %b\ndata: %b\n\n" % (event.event.encode(), event.data)
