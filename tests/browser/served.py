"""ASGI apps on the loopback, for as long as a block runs."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn


@asynccontextmanager
async def serve(app: Any, port: int = 0) -> AsyncIterator[int]:
    """Serves an app; gives the port."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", ws="none"))
    # What a signal means is up to the tests.
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with listen(port) as listener:
        async with anyio.create_task_group() as group:
            group.start_soon(server._serve, [listener])
            try:
                while not server.started:  # noqa: ASYNC110 - there is no event for it
                    await anyio.sleep(0.01)
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True


def free_port() -> int:
    with listen(0) as listener:
        port: int = listener.getsockname()[1]
        return port


def listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener
