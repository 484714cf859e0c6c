"""Shared parts of the emulators: a clock that can be moved ahead, faults, answers, a report,
connections, serving.
"""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lamina.adapters.providers.model_book import load_book
from lamina.core.ports import TargetBook
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.emulators.answers import AnswerSource, EchoAnswers
from lamina.emulators.cost_report import CostReport
from lamina.emulators.faults import EmulatedFault, FaultKind, FaultQueue, parse_fault
from lamina.engine.task_groups import single_errors
from lamina.errors import LaminaError, UsageError


async def hang_up(request: Request) -> None:
    """Close the connection in the middle of an exchange, like a failing network."""
    cycle: Any = getattr(request.receive, "__self__", None)
    cycle.transport.abort()
    # The server takes a moment to notice.
    while not cycle.disconnected:  # noqa: ASYNC110 - there is no event for it
        await anyio.sleep(0.001)


async def wait_for_disconnect(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


Handler = Callable[[Request], Awaitable[Response]]
BAD_GATEWAY_HTML = "<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"


class MovableClock:
    """The time of day, which can be moved ahead: caches live for minutes, tests do not."""

    def __init__(self) -> None:
        self._offset_s = 0.0

    def now(self) -> float:
        return time.time() + self._offset_s

    def move(self, seconds: float) -> None:
        if seconds < 0:
            raise UsageError(f"a clock is moved ahead, not by {seconds!r} s")
        self._offset_s += seconds


class Emulator(ABC):
    """A vendor's server. Subclasses add the vendor's routes to `/report` (`?format=text`) and, for
    POST, `/emulator/clock` (`{"move": seconds}`) and `/emulator/fault` (`{"fault": "429*2"}`).
    `abandoned_count` counts the clients that left before their answer was complete."""

    vendor: ClassVar[str]
    # The media type of an empty answer.
    empty_type: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        answers: AnswerSource | None = None,
        faults: Iterable[EmulatedFault] = (),
        clock: MovableClock | None = None,
        book: TargetBook | None = None,
    ) -> None:
        self.answers: AnswerSource = answers or EchoAnswers()
        self.faults = FaultQueue(faults)
        self.clock = clock or MovableClock()
        self.book = book or load_book()
        self.report = CostReport()
        self.abandoned_count = 0

    @abstractmethod
    def routes(self) -> Sequence[Route]:
        """Return the routes of the vendor's own API."""

    def refuse_path(self, request: Request, status: int) -> Response:
        """Return the vendor's answer for an unknown path (404) or method (405)."""
        return JSONResponse({"error": f"{request.method} {request.url.path}"}, status)

    async def _refuse_path(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return self.refuse_path(request, status)

    def app(self) -> Starlette:
        return Starlette(
            exception_handlers={404: self._refuse_path, 405: self._refuse_path},
            routes=[
                *self.routes(),
                Route("/report", self._report),
                Route("/emulator/clock", self._clock, methods=["GET", "POST"]),
                Route("/emulator/fault", self._fault, methods=["POST"]),
            ],
        )

    async def _report(self, request: Request) -> Response:
        if request.query_params.get("format") == "text":
            return PlainTextResponse(self.report.as_text() + "\n")
        return Response(self.report.as_json(), media_type="application/json")

    async def _clock(self, request: Request) -> Response:
        if request.method == "POST":
            try:
                body = msgspec.json.decode(await request.body(), type=dict[str, float])
                self.clock.move(body["move"])
            except (msgspec.MsgspecError, KeyError, LaminaError) as error:
                return JSONResponse({"error": f'POST {{"move": seconds}}: {error}'}, 400)
        return JSONResponse({"now": self.clock.now()})

    async def _fault(self, request: Request) -> Response:
        try:
            body = msgspec.json.decode(await request.body(), type=dict[str, str])
            self.faults.add(parse_fault(body["fault"]))
        except (msgspec.MsgspecError, KeyError, LaminaError) as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse({"ok": True})

    def note_refusal(self, target: Target, status: int, reason: str = "") -> None:
        self.report.add(self.clock.now(), target, Usage(), status=status, missed=reason)

    async def fail(self, fault: FaultKind | None, request: Request) -> Response | None:
        """Return the response that any vendor's server sends instead of an answer; None for other
        faults."""
        match fault:
            case "html":
                return HTMLResponse(BAD_GATEWAY_HTML)
            case "empty":
                return Response(b"", media_type=self.empty_type)
            case "hang" | "reset":
                if fault == "reset":
                    await hang_up(request)
                await wait_for_disconnect(request)
                self.abandoned_count += fault == "hang"
                return Response(b"")
            case _:
                return None


@asynccontextmanager
async def serve_emulator(
    emulator: Emulator, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serve an emulator while the block runs; yield its address.

    Raises:
        UsageError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    config = uvicorn.Config(emulator.app(), log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    # The caller decides what a signal means.
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with listener, single_errors():
        async with anyio.create_task_group() as group:
            group.start_soon(server._serve, [listener])
            try:
                while not server.started:  # noqa: ASYNC110 - there is no event for it
                    await anyio.sleep(0.01)
                yield f"http://{host}:{listener.getsockname()[1]}"
            finally:
                server.should_exit = server.force_exit = True
