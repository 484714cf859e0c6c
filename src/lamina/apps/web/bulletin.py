"""News of sessions for those who watch a workspace.

Law: a watcher that does not keep up loses news, and never holds up a turn; it then asks anew.
"""

from collections.abc import AsyncGenerator, Iterable

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from lamina.apps.web.event_log import PING, PING_S
from lamina.apps.web.route import ServerEvent
from lamina.apps.web.shapes.sessions import SessionNews
from lamina.apps.web.wire import encode_answer

_MOST_WAITING = 256


class Bulletin:
    """Who watches which workspace."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[MemoryObjectSendStream[SessionNews]]] = {}

    def tell(self, workspace: str, news: SessionNews) -> None:
        for watcher in list(self._watchers.get(workspace, ())):
            try:
                watcher.send_nowait(news)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._watchers[workspace].discard(watcher)
                watcher.close()

    async def follow(
        self, workspace: str, standing: Iterable[SessionNews]
    ) -> AsyncGenerator[ServerEvent]:
        """The news from now on, behind how things stand."""
        send, receive = anyio.create_memory_object_stream[SessionNews](_MOST_WAITING)
        self._watchers.setdefault(workspace, set()).add(send)
        try:
            for news in standing:
                yield _event(news)
            while True:
                try:
                    with anyio.fail_after(PING_S):
                        news = await receive.receive()
                except TimeoutError:
                    yield PING
                except anyio.EndOfStream:
                    return
                else:
                    yield _event(news)
        finally:
            self._watchers[workspace].discard(send)
            send.close()
            receive.close()


def _event(news: SessionNews) -> ServerEvent:
    return ServerEvent("session", encode_answer(news))
