"""Events for a browser: server-sent events over one answer that stays open.

Law: an event that was sent is whole; when the server stops, the stream ends as one that is
complete, so that nothing waits for a browser that stays.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lamina.apps.web.route import ServerEvent

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_MOST_WAITING = 64
# Sent at once: a browser then knows that the stream is open, and how soon it may come back.
_OPENING = b"retry: 1000\n\n"


class EventResponse(StreamingResponse):
    """Sends `events` until they end, the browser leaves, or `stopping` is set."""

    def __init__(self, events: AsyncGenerator[ServerEvent], stopping: anyio.Event) -> None:
        super().__init__((), media_type="text/event-stream", headers=_HEADERS)
        self._events = events
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sender, frames = anyio.create_memory_object_stream[bytes](_MOST_WAITING)
        pumping = anyio.CancelScope()

        async def end_with_server() -> None:
            await self._stopping.wait()
            pumping.cancel()

        async def pump() -> None:
            with pumping:
                await _pump(self._events, sender)
            sender.close()

        self.body_iterator = _read(frames)
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


async def _read(frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for frame in frames:
        yield frame


def write_event(event: ServerEvent) -> bytes:
    """One event as it goes over the wire. Its data is JSON, so it has no line breaks."""
    number = b"" if event.number is None else b"id: %d\n" % event.number
    return number + b"event: %b\ndata: %b\n\n" % (event.event.encode(), event.data)
