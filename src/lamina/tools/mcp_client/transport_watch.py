"""A transport that tells when the other side has gone, also while nobody is waiting for it.

Law: messages pass through as they are."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


@asynccontextmanager
async def watch_end(
    transport: AbstractAsyncContextManager["TransportStreams"], over: anyio.Event
) -> AsyncIterator["TransportStreams"]:
    """The transport; `over` comes when no more messages will."""
    async with transport as (inbox, outbox):
        yield _Watched(inbox, over), outbox


class _Watched:
    """A stream of what comes in."""

    def __init__(self, inner: Any, over: anyio.Event) -> None:
        self._inner = inner
        self._over = over

    @property
    def last_context(self) -> Any:
        """The SDK asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except anyio.EndOfStream:
            self._over.set()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
