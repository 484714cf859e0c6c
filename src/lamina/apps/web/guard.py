"""What every request has to pass before it is looked at.

Laws: only names of the loopback are answered to, so that no other site can point its own name here
(DNS rebinding). What changes something comes from our own page, as JSON. No other origin is told
anything, and no socket is opened. Every answer carries the headers that hold the page to this.
"""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.apps.web.door import LOGIN_S, Door
from lamina.apps.web.refusals import ErrorAnswer, Refusal
from lamina.apps.web.wire import JSON_TYPE, encode_answer

MOST_BYTES = 32 * 1024 * 1024
_SAFE = ("GET", "HEAD", "OPTIONS")
_POLICY = "; ".join(
    (
        "default-src 'self'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:",
        "connect-src 'self'", "object-src 'none'", "base-uri 'none'", "form-action 'self'",
        "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html dompurify",
    )
)  # fmt: skip
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
        "magnetometer=(), microphone=(), midi=(), payment=(), usb=()"
    ),
}
NO_LOGIN = (
    "This page is opened by `lamina web`, which prints an address that works once. Type it again "
    "in a terminal, and open the address it prints.\n"
)


class Guard:
    """Lets through what may come in."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await _refuse_socket(receive, send)
        elif (refusal := self._check(scope)) is not None:
            await refusal(scope, receive, _with_headers(send))
        else:
            await self._app(scope, receive, _with_headers(send))

    def _check(self, scope: Scope) -> Response | None:
        """Why a request does not pass, as an answer; None if it does."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [headers.get("host", "")] or (
            headers.get("host", "").lower() not in self._door.hosts
        ):
            return PlainTextResponse("This server answers to its own address only.\n", 421)
        method, path = scope["method"], scope["path"]
        if (problem := self._check_origin(method, headers)) is not None:
            return problem
        if method == "GET" and path == "/" and b"token=" in scope.get("query_string", b""):
            return self._let_in(scope, headers)
        if not (path.startswith("/api") or path == "/"):
            # Files of the app, which are the same for everybody.
            return None
        if not self._door.admits(self._cookie(headers)):
            if path == "/":
                return PlainTextResponse(NO_LOGIN, 401)
            return _refuse(401, "login", NO_LOGIN.strip())
        return None

    def _check_origin(self, method: str, headers: Headers) -> Response | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin not in self._door.origins:
            return _refuse(403, "foreign_origin", f"requests from {origin!r} are refused")
        if method in _SAFE:
            if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
                return _refuse(403, "foreign_origin", "requests from other pages are refused")
            return None
        if site not in (None, "same-origin") or (origin is None and site is None):
            return _refuse(403, "foreign_origin", "changes are only made from the app's own page")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if kind != JSON_TYPE and (has_body or method != "DELETE"):
            return _refuse(415, "not_json", f"the body has to be {JSON_TYPE}, not {kind!r}")
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and (
            len(length) > 18 or int(length) > MOST_BYTES
        ):  # fmt: skip
            return _too_large()
        return None

    def _let_in(self, scope: Scope, headers: Headers) -> Response:
        """The token for the cookie, and out of the address."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        cookie = self._door.exchange("".join(query.get("token", [])))
        if cookie is None and not self._door.admits(self._cookie(headers)):
            return PlainTextResponse(f"This address was used already. {NO_LOGIN}", 401)
        answer = RedirectResponse("/", 303, headers={"cache-control": "no-store"})
        if cookie is not None:
            answer.set_cookie(
                self._door.cookie, cookie, max_age=LOGIN_S, httponly=True, samesite="strict"
            )
        return answer

    def _cookie(self, headers: Headers) -> str:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[self._door.cookie].value if self._door.cookie in cookies else ""


async def read_body(request: Request) -> bytes:
    """The body, counted while it comes in.

    Raises:
        Refusal: it is too large, or was not sent to its end.
    """
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise Refusal(413, "too_large", f"a body may have {MOST_BYTES:,} bytes at most")
            parts.append(part)
    except ClientDisconnect as error:
        raise Refusal(400, "cut_off", "the connection ended before the body did") from error
    return b"".join(parts)


def _too_large() -> Response:
    return _refuse(413, "too_large", f"a body may have {MOST_BYTES:,} bytes at most")


def _refuse(status: int, code: str, message: str) -> Response:
    body = ErrorAnswer(error=Refusal(status, code, message).body)
    return Response(encode_answer(body), status, media_type=JSON_TYPE)


async def _refuse_socket(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1008, "reason": "there are no sockets here"})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers
