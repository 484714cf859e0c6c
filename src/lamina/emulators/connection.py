"""The connection under a request, which ASGI does not expose: it is taken from the server."""

from typing import Any

import anyio
from starlette.requests import Request


async def hang_up(request: Request) -> None:
    """Closes the connection in the middle of an exchange, as a network does."""
    cycle: Any = getattr(request.receive, "__self__", None)
    cycle.transport.abort()
    # It takes the server a moment to notice.
    while not cycle.disconnected:  # noqa: ASYNC110 - there is no event for it
        await anyio.sleep(0.001)


async def wait_for_disconnect(request: Request) -> None:
    """Waits until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
