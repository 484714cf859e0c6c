"""The connection under a request, which ASGI has no word for: the server that calls us is asked."""

from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from starlette.requests import Request


async def hang_up(request: "Request") -> None:
    """Closes the connection in the middle of whatever it was doing, as a network does."""
    cycle: Any = getattr(request.receive, "__self__", None)
    cycle.transport.abort()
    # The server learns of it in its own time.
    while not cycle.disconnected:  # noqa: ASYNC110 - it tells in no other way
        await anyio.sleep(0.001)


async def wait_for_disconnect(request: "Request") -> None:
    """Waits until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
