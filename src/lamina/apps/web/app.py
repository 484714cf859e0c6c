"""The server as an ASGI app: the table of routes, behind the guard, and the files of the web app.

Laws: what a request carries is read as the type that its route names, or refused; what a handler
raises becomes an answer with a stable code. Nothing is routed that is not in the table.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from lamina.apps.web.defects import tell_defect
from lamina.apps.web.desk import Desk
from lamina.apps.web.door import Door
from lamina.apps.web.event_response import EventResponse
from lamina.apps.web.guard import Guard, read_body
from lamina.apps.web.openapi import describe_api
from lamina.apps.web.refusals import ErrorAnswer, ErrorBody, Refusal, describe_error, invalid
from lamina.apps.web.route import Call, EventStream, Route, SentFile
from lamina.apps.web.routes import all_routes
from lamina.apps.web.static_files import StaticFiles
from lamina.apps.web.wire import JSON_TYPE, encode_answer
from lamina.engine.task_groups import single_errors

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    desk: Desk,
    door: Door,
    *,
    routes: Iterable[Route] | None = None,
    static: StaticFiles | None = None,
) -> Guard:
    """The whole server; `routes` are all there are, and `static` the files of the web app."""
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
    """Starlette's own pattern ends at a line feed, which the name of a file may hold."""

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
            # The server ends, and waited long enough.
            return _refuse(Refusal(503, "stopping", "the server is about to end"))
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
    """The body. When the server ends, nobody waits for the rest of it."""
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
        raise Refusal(503, "stopping", "the server is about to end")
    return data


def _read_path(request: Request) -> dict[str, str]:
    """The names in an address; no name of anything has a NUL in it."""
    for name, value in request.path_params.items():
        if "\0" in value:
            raise Refusal(404, "unknown_name", f"nothing has the name {value!r}", (name,))
    return dict(request.path_params)


def _read_query(route: Route, request: Request) -> Any:
    if route.query is None:
        return None
    for name, value in request.query_params.items():
        if "\0" in value:
            raise Refusal(422, "invalid", f"the query: {name} holds a NUL", (name,))
    try:
        return msgspec.convert(dict(request.query_params), route.query, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, "the query") from error


def _file(file: SentFile) -> Response:
    response = Response(file.data, media_type=file.media_type, headers=dict(file.headers))
    disposition = "inline" if file.inline else "attachment"
    if file.name:
        # Letters that a header cannot have go by their code; a quote cannot end the name.
        name = msgspec.json.encode(file.name).decode().strip('"').replace("\\", "_")
        plain = name.encode("ascii", "replace").decode().replace("?", "_")
        disposition += f'; filename="{plain}"'
    response.headers["content-disposition"] = disposition
    return response


def _json(status: int, value: Any) -> Response:
    return Response(encode_answer(value), status, media_type=JSON_TYPE)


def _refuse(error: Exception) -> Response:
    if (told := describe_error(error)) is not None:
        return _json(*told)
    # Nobody's fault but ours: standard error has what is needed to mend it.
    tell_defect(error)
    body = ErrorBody(code="defect", message=f"{type(error).__name__}: {error}")
    return _json(500, ErrorAnswer(error=body))


async def _unknown(request: Request) -> Response:
    return _refuse(Refusal(404, "unknown_route", f"there is nothing at {request.url.path}"))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refuse(Refusal(error.status_code, "http", f"{error.detail}: {request.method}"))


async def _on_defect(_: Request, error: Exception) -> Response:
    return _refuse(error)
