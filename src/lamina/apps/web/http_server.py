"""The web app's server: the table of routes as an ASGI app behind the guard, listening on the
loopback.

Laws: nothing listens beyond 127.0.0.1. A request is read as the type its route names, or refused;
an exception in a handler becomes an answer with a stable code; only routes in the table exist.
When the server stops, turns are stopped first, so that their partial answers are kept, then the
streams, and then the rest.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from lamina.apps.web.desk import Desk
from lamina.apps.web.guard import Door, Guard, read_body
from lamina.apps.web.http_answers import (
    JSON_TYPE,
    ErrorAnswer,
    ErrorBody,
    Refusal,
    describe_error,
    encode_answer,
    invalid,
    print_defect,
)
from lamina.apps.web.http_bodies import EventStream, SentFile
from lamina.apps.web.openapi import describe_api
from lamina.apps.web.routes import Call, Route, all_routes
from lamina.apps.web.server_events import EventResponse
from lamina.apps.web.static_files import StaticFiles
from lamina.engine.task_groups import single_errors
from lamina.errors import UsageError

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    desk: Desk,
    door: Door,
    *,
    routes: Iterable[Route] | None = None,
    static: StaticFiles | None = None,
) -> Guard:
    """Build the whole server; `routes` are all its routes, `static` the files of the web app."""
    table = tuple(all_routes() if routes is None else routes)
    static = static or StaticFiles()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with desk.working():
            yield

    async def openapi(_: Request) -> Response:
        return _json(200, describe_api(table))

    endpoints = [
        StarletteRoute(
            route.path.replace(":path}", ":whole}"), _endpoint(route, desk), methods=[route.method]
        )
        for route in table
    ]
    app = Starlette(
        routes=[
            *endpoints,
            StarletteRoute("/api/openapi.json", openapi),
            StarletteRoute("/api/{rest:whole}", _unknown, methods=list(_METHODS)),
            StarletteRoute("/{path:whole}", static.answer),
        ],
        exception_handlers={HTTPException: _on_http_error, Exception: _on_defect},
        lifespan=lifespan,
    )
    return Guard(app, door)


class _WholePath(PathConvertor):
    """Matches line feeds too, which file names may contain; Starlette's own pattern does not."""

    regex = "(?s:.*)"


register_url_convertor("whole", _WholePath())
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _endpoint(route: Route, desk: Desk) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            call = Call(
                desk=desk,
                path=_read_path(request),
                body=await _read_body(route, request, desk.stopping),
                query=_read_query(route, request),
                headers=request.headers,
            )
            result = await route.handler(call)
        except Exception as error:  # noqa: BLE001 - each becomes an answer
            return _refuse(error)
        except anyio.get_cancelled_exc_class():
            if not desk.stopping.is_set():
                raise
            # The server is stopping and has waited long enough.
            return _refuse(Refusal(503, "stopping", "the server is stopping"))
        if isinstance(result, EventStream):
            return EventResponse(result.events, desk.stopping)
        if isinstance(result, SentFile):
            return _file(result)
        if result is None:
            return Response(status_code=204)
        return Response(encode_answer(result), route.status, media_type=JSON_TYPE)

    return answer


async def _read_body(route: Route, request: Request, stopping: anyio.Event) -> Any:
    data = await _receive_body(request, stopping) if route.method != "GET" else b""
    if route.body is None:
        return None
    try:
        return msgspec.json.decode(data or b"{}", type=route.body)
    except msgspec.ValidationError as error:
        raise invalid(error, "the body") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(422, "invalid", f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise Refusal(422, "invalid", "the body is nested too deeply") from error


async def _receive_body(request: Request, stopping: anyio.Event) -> bytes:
    """Return the body. When the server stops, its rest is not awaited."""
    data: bytes | None = None
    with single_errors():
        async with anyio.create_task_group() as group:

            async def end_with_server() -> None:
                await stopping.wait()
                group.cancel_scope.cancel()

            group.start_soon(end_with_server)
            data = await read_body(request)
            group.cancel_scope.cancel()
    if data is None:
        raise Refusal(503, "stopping", "the server is stopping")
    return data


def _read_path(request: Request) -> dict[str, str]:
    """Return the names in an address; no name contains a NUL."""
    for name, value in request.path_params.items():
        if "\0" in value:
            raise Refusal(404, "unknown_name", f"nothing is named {value!r}", (name,))
    return dict(request.path_params)


def _read_query(route: Route, request: Request) -> Any:
    if route.query is None:
        return None
    for name, value in request.query_params.items():
        if "\0" in value:
            raise Refusal(422, "invalid", f"the query: {name} contains a NUL", (name,))
    try:
        return msgspec.convert(dict(request.query_params), route.query, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, "the query") from error


def _file(file: SentFile) -> Response:
    response = Response(file.data, media_type=file.media_type, headers=dict(file.headers))
    disposition = "inline" if file.inline else "attachment"
    if file.name:
        # Letters that a header cannot contain are encoded; a quote cannot end the name.
        name = msgspec.json.encode(file.name).decode().strip('"').replace("\\", "_")
        plain = name.encode("ascii", "replace").decode().replace("?", "_")
        disposition += f'; filename="{plain}"'
    response.headers["content-disposition"] = disposition
    return response


def _json(status: int, value: Any) -> Response:
    return Response(encode_answer(value), status, media_type=JSON_TYPE)


def _refuse(error: Exception) -> Response:
    if (answer := describe_error(error)) is not None:
        return _json(*answer)
    # A defect of our own: standard error has what is needed to fix it.
    print_defect(error)
    body = ErrorBody(code="defect", message=f"{type(error).__name__}: {error}")
    return _json(500, ErrorAnswer(error=body))


async def _unknown(request: Request) -> Response:
    return _refuse(Refusal(404, "unknown_route", f"there is nothing at {request.url.path}"))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refuse(Refusal(error.status_code, "http", f"{error.detail}: {request.method}"))


async def _on_defect(_: Request, error: Exception) -> Response:
    return _refuse(error)


HOST = "127.0.0.1"
PREFERRED_PORT = 8417
# How long connections may take to close when the server stops.
_END_S = 3


def open_listener(port: int | None) -> socket.socket:
    """Return a socket on the loopback: on `port`, or else on the usual port or a free one.

    Raises:
        UsageError: the port is taken or not allowed.
    """
    if port:
        return _bind(port)
    try:
        return _bind(PREFERRED_PORT) if port is None else _bind(0)
    except UsageError:
        return _bind(0)


def _bind(port: int) -> socket.socket:
    # With its protocol by name: without it, answers wait for the other side, some 40 ms each.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # This reuses the address of a server that has stopped, not that of a running one.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        # Binding is not enough: two sockets can be bound to one port while neither listens.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        problem = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {HOST}:{port}: {problem}; choose another port with --port, or "
            f"leave it out to use a free one"
        ) from error
    return listener


class RunningServer:
    """A listening server: its address, and how browsers log in."""

    def __init__(self, desk: Desk, door: Door, static: StaticFiles) -> None:
        self.desk = desk
        self.door = door
        self.static = static

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.door.port}"

    def entrance(self) -> str:
        """Return an address that lets one browser in, once."""
        return f"{self.address}/?token={self.door.issue_token()}"


@asynccontextmanager
async def serve_web(
    folder: Path | None = None,
    *,
    port: int | None = None,
    desk: Desk | None = None,
    static: StaticFiles | None = None,
) -> AsyncIterator[RunningServer]:
    """Serve the web app while the block runs. `folder` is the initial workspace.

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
            # The caller decides what signals mean, so `serve` is not used.
            group.start_soon(server._serve, [listener])
            try:
                while not server.started:  # noqa: ASYNC110 - there is no event for it
                    await anyio.sleep(0.01)
                yield running
            finally:
                with anyio.CancelScope(shield=True):
                    await running.desk.stop()
                    server.should_exit = True
