"""A server on the loopback that says exactly what a test wants, and counts who comes."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import httpcore2
from msgspec import Struct

from lamina.adapters.pages.exchange import connect_tcp

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "1.1.1.1"
PUBLIC_V6 = "2606:2800:220:1:248:1893:25c8:1946"


class Asked(Struct, frozen=True, kw_only=True):
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes = b""


Route = Callable[[Asked], bytes | Iterable[bytes]]


class LocalServer:
    def __init__(self, routes: dict[str, Route], context: ssl.SSLContext | None = None) -> None:
        self.routes = routes
        self.asked: list[Asked] = []
        self.connections = 0
        self.closing = threading.Event()
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def close(self) -> None:
        self.closing.set()
        # Wakes the thread that waits for somebody to come.
        with socket.socket() as knock:
            knock.connect(("127.0.0.1", self.port))
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            if self.closing.is_set():
                connection.close()
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                self._answer(connection)
            except OSError:
                pass  # whoever asked went away
            finally:
                connection.close()

    def _answer(self, connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            received = connection.recv(65_536)
            if not received:
                return
            data += received
            if not data.startswith((b"GET ", b"POST ")):
                connection.sendall(b"HTTP/1.1 400 What?\r\n\r\n")
                return
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        while len(body) < int(headers.get("content-length", 0)):
            received = connection.recv(65_536)
            if not received:
                return
            body += received
        asked = Asked(path=first.split(" ")[1], headers=headers, body=body)
        self.asked.append(asked)
        route = self.routes.get(asked.path.partition("?")[0], _nothing)
        said = route(asked)
        for part in (said,) if isinstance(said, bytes) else said:
            connection.sendall(part)


def answer(status: int, body: bytes, **headers: str) -> bytes:
    """An answer as it is on the wire; `_` in the name of a header is a hyphen."""
    named = {"Content_Length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} Said"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _nothing(_: Asked) -> bytes:
    return answer(404, b"none")


def page(text: str, **headers: str) -> Route:
    said = answer(200, text.encode(), Content_Type="text/plain; charset=utf-8", **headers)
    return lambda _: said


def redirect(location: str, status: int = 302) -> Route:
    return lambda _: answer(status, b"", Location=location)


@contextmanager
def serving(
    routes: dict[str, Route], context: ssl.SSLContext | None = None
) -> Iterator[LocalServer]:
    server = LocalServer(routes, context)
    try:
        yield server
    finally:
        server.close()


class Names:
    """A name system of the test's own. Of a name that has several answers each is given once, and
    the last one from then on; what it does not know is this machine, which is the worst case."""

    def __init__(self, **known: list[tuple[str, ...]]) -> None:
        self.known = {
            name.replace("__", "-").replace("_", "."): said for name, said in known.items()
        }
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append(host)
        said = self.known.get(host, [("127.0.0.1",)])
        return said.pop(0) if len(said) > 1 else said[0]


class Line:
    """Leads to a local server whatever public address is connected to, as the internet would."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self.connected: list[tuple[str, int]] = []

    async def connect(self, ip: str, port: int, within: float) -> httpcore2.AsyncNetworkStream:
        self.connected.append((ip, port))
        assert ip in (PUBLIC, OTHER_PUBLIC, PUBLIC_V6), f"a connection to {ip}"
        return await connect_tcp("127.0.0.1", self._server.port, within)
