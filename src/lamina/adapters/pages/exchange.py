"""Sends one request to one server and unpacks the response.

Laws: the connection goes only to an address that was judged; the name is used only in the Host
header, for TLS and to check the certificate. No proxy, cookie, login or environment variable
affects the destination. No more is unpacked than was requested, however small the compressed body
is.
"""

import ssl
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

import httpcore2
from anyio import CancelScope
from msgspec import Struct

from lamina.adapters.pages.addresses import Address
from lamina.adapters.pages.fetch_answers import FetchAnswer, fetch_failure

# Brotli and the like would need additional packages.
ACCEPTED_ENCODINGS = "gzip, deflate"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Unpacker(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> None:
        """Check that the body is complete.

        Raises:
            FetchFailure: part of it is missing.
        """
        ...


def find_unpacker(coding: str, limit: int, host: str) -> Unpacker:
    """Return an unpacker for up to `limit` bytes plus one, which reveals excess data.

    Raises:
        FetchFailure: `coding` is unknown.
    """
    match coding.strip().lower():
        case "" | "identity":
            return _PlainUnpacker()
        case "gzip" | "x-gzip":
            return _ZlibUnpacker(_GZIP, limit, host)
        case "deflate":
            return _ZlibUnpacker(_ZLIB, limit, host)
        case other:
            raise fetch_failure(
                "unreadable", f"{host} sends the encoding {other!r}, not {ACCEPTED_ENCODINGS}"
            )


class _PlainUnpacker:
    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        """Accept any end."""


class _ZlibUnpacker:
    def __init__(self, bits: int, limit: int, host: str) -> None:
        self._bits, self._host = bits, host
        self._remaining = limit + 1
        self._has_begun = False
        self._stream = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> bytes:
        out = []
        while data and self._remaining > 0:
            part = self._step(data)
            out.append(part)
            self._remaining -= len(part)
            # gzip may continue with another member; data after deflate has no meaning.
            data = self._stream.unused_data if self._bits == _GZIP else b""
            if data:
                self._stream = zlib.decompressobj(_GZIP)
        return b"".join(out)

    def _step(self, data: bytes) -> bytes:
        try:
            part = self._stream.decompress(data, self._remaining)
        except zlib.error:
            if self._has_begun or self._bits != _ZLIB:
                raise fetch_failure("unreadable", f"{self._host} sent a broken body") from None
            # Some servers send deflate without the zlib wrapper.
            self._bits, self._stream = _RAW, zlib.decompressobj(_RAW)
            return self._step(data)
        self._has_begun = True
        return part

    def end(self) -> None:
        if self._has_begun and self._remaining > 0 and not self._stream.eof:
            raise fetch_failure("unreadable", f"the body from {self._host} broke off")


# Connects to an address (never a name) and a port within the given number of seconds.
Connect = Callable[[str, int, float], Awaitable[httpcore2.AsyncNetworkStream]]

_AGENT = "Lamina (a person attached this page)"
_MEGABYTE = 1_000_000


class FetchRequest(Struct, frozen=True, kw_only=True):
    """A request for a body of up to `limit` bytes, if `accepts_type` accepts its media type. With a
    `body`, it is sent as a POST."""

    accept: str
    limit: int
    accepts_type: Callable[[str], bool]
    headers: Mapping[bytes | str, bytes | str] = {}
    body: bytes | None = None
    connect_s: float
    read_s: float


async def connect_tcp(ip: str, port: int, within: float) -> httpcore2.AsyncNetworkStream:
    return await httpcore2.AnyIOBackend().connect_tcp(ip, port, timeout=within)


async def exchange(
    address: Address,
    ips: Sequence[str],
    request: FetchRequest,
    *,
    connect: Connect,
    context: ssl.SSLContext | None,
) -> FetchAnswer:
    """Send a request for `address` to the first of `ips` that can be reached.

    Raises:
        FetchFailure: the response was invalid, or exceeded the limit.
    """
    with _translate_errors(address):
        async with _response(address, _PinnedBackend(ips, connect), request, context) as response:
            headers = _headers(response.headers)
            answer = FetchAnswer(address=address, status=response.status, headers=headers)
            if not answer.is_whole or not request.accepts_type(answer.media_type):
                return answer
            data = await _body(answer, response, request.limit)
            return FetchAnswer(address=address, status=response.status, headers=headers, data=data)


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the given addresses, whatever host is requested."""

    def __init__(self, ips: Sequence[str], connect: Connect) -> None:
        self._ips = ips
        self._connect = connect

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError("no address")
        for ip in self._ips:
            try:
                return await self._connect(ip, port, timeout or 0.0)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


@asynccontextmanager
async def _response(
    address: Address, backend: _PinnedBackend, request: FetchRequest, context: ssl.SSLContext | None
) -> AsyncIterator[httpcore2.Response]:
    scheme, host = address.scheme.encode(), address.host.encode()
    connection = httpcore2.AsyncHTTPConnection(
        httpcore2.Origin(scheme, host, address.port), ssl_context=context, network_backend=backend
    )
    read_s = request.read_s
    timeouts = {"connect": request.connect_s, "read": read_s, "write": read_s}
    http_request = httpcore2.Request(
        "GET" if request.body is None else "POST",
        httpcore2.URL(
            scheme=scheme, host=host, port=address.port, target=address.target.encode("ascii")
        ),
        headers={
            "Host": address.authority,
            "User-Agent": _AGENT,
            "Accept": request.accept,
            "Accept-Encoding": ACCEPTED_ENCODINGS,
            "Connection": "close",
            **({} if request.body is None else {"Content-Length": str(len(request.body))}),
            **request.headers,
        },
        content=request.body,
        extensions={"timeout": timeouts},
    )
    try:
        response = await connection.handle_async_request(http_request)
        try:
            yield response
        finally:
            with CancelScope(shield=True):
                await response.aclose()
    finally:
        with CancelScope(shield=True):
            await connection.aclose()


async def _body(answer: FetchAnswer, response: httpcore2.Response, limit: int) -> bytes:
    host = answer.address.host
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > limit:
        raise _too_large(host, limit)
    unpack = find_unpacker(answer.headers.get("content-encoding", ""), limit, host)
    received_bytes, size = 0, 0
    parts = []
    async for chunk in response.aiter_stream():
        received_bytes += len(chunk)
        parts.append(unpack.feed(chunk))
        size += len(parts[-1])
        if max(received_bytes, size) > limit:
            raise _too_large(host, limit)
    unpack.end()
    return b"".join(parts)


def _too_large(host: str, limit: int) -> Exception:
    return fetch_failure("unreadable", f"{host} sends more than {limit / _MEGABYTE:g} MB")


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name. Of duplicates the first counts, but encodings are
    joined."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("ascii", "replace").lower()
        text = value.decode("utf-8", "replace")
        if key == "content-encoding" and key in headers:
            headers[key] += f", {text}"
        headers.setdefault(key, text)
    return headers


@contextmanager
def _translate_errors(address: Address) -> Iterator[None]:
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise fetch_failure("unreadable", _problem(address, error)) from error


def _problem(address: Address, error: Exception) -> str:
    host = address.host
    match error:
        case httpcore2.ConnectTimeout():
            return f"{host} could not be reached in time"
        case httpcore2.TimeoutException():
            return f"{host} stopped answering"
        case httpcore2.ConnectError():
            return _connect_problem(address, error)
        case httpcore2.NetworkError():
            return f"the connection to {host} broke off"
        case _:
            return f"{host} did not answer as a web server does, or broke off"


def _connect_problem(address: Address, error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate of {address.host} is not valid: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"{address.host} could not be reached with encryption: {cause.reason}"
        if isinstance(cause, ConnectionRefusedError):
            return f"nothing answers at {address.host}, port {address.port}"
        cause = cause.__cause__ or cause.__context__
    return f"{address.host} could not be reached"
