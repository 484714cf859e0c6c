"""The server on the loopback of this machine.

Laws: nothing listens beyond 127.0.0.1. When it ends, turns are stopped first, so that what came of
their answers is kept, then the streams, and then the rest.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import uvicorn

from lamina.apps.web.app import make_app
from lamina.apps.web.desk import Desk
from lamina.apps.web.door import Door
from lamina.apps.web.static_files import StaticFiles
from lamina.engine.task_groups import single_errors
from lamina.errors import UsageError

HOST = "127.0.0.1"
PREFERRED_PORT = 8417
# How long connections may take to end when the server does.
_END_S = 3


def open_listener(port: int | None) -> socket.socket:
    """A socket on the loopback: on `port`, or without one on the usual port, or else on a free one.

    Raises:
        UsageError: the port is taken, or cannot be had.
    """
    if port:
        return _bind(port)
    try:
        return _bind(PREFERRED_PORT) if port is None else _bind(0)
    except UsageError:
        return _bind(0)


def _bind(port: int) -> socket.socket:
    # With its protocol by name: otherwise answers wait for the other side, some 40 ms each.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Not where another server listens: only over what is left of one that has ended.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        # Bound is not enough: two can be bound to one port while none listens.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        problem = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {HOST}:{port}: {problem}; choose another port with --port, or none, "
            f"and a free one is taken"
        ) from error
    return listener


class RunningServer:
    """A server that listens: where, and who is let in."""

    def __init__(self, desk: Desk, door: Door, static: StaticFiles) -> None:
        self.desk = desk
        self.door = door
        self.static = static

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.door.port}"

    def entrance(self) -> str:
        """An address that lets one browser in, once."""
        return f"{self.address}/?token={self.door.issue_token()}"


@asynccontextmanager
async def serve_web(
    folder: Path | None = None,
    *,
    port: int | None = None,
    desk: Desk | None = None,
    static: StaticFiles | None = None,
) -> AsyncIterator[RunningServer]:
    """Serves the web app while the block runs. `folder` is the workspace to begin in.

    Raises:
        UsageError: the port is taken.
    """
    listener = open_listener(port)
    with listener, single_errors():
        door = Door(listener.getsockname()[1])
        running = RunningServer(desk or Desk(start=folder), door, static or StaticFiles())
        app = make_app(running.desk, door, static=running.static)
        config = uvicorn.Config(
            app, log_level="error", lifespan="on", ws="none", access_log=False,
            server_header=False, timeout_graceful_shutdown=_END_S,
        )  # fmt: skip
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as group:
            # What a signal means is up to the caller, hence not `serve`.
            group.start_soon(server._serve, [listener])
            try:
                while not server.started:  # noqa: ASYNC110 - there is no event for it
                    await anyio.sleep(0.01)
                yield running
            finally:
                with anyio.CancelScope(shield=True):
                    await running.desk.stop()
                    server.should_exit = True
