"""Access control for the server: login tokens and cookies, and the checks that every request must
pass.

Laws: only loopback names are answered, so that no other site can point its own name here (DNS
rebinding). Changes come from our own page, as JSON. Other origins learn nothing, and sockets are
refused. Every answer carries the headers that restrict the page accordingly. A token works once,
and only a cookie's digest is stored; both come from the system's random source and are never
written to a log. Cookies outlive the server, so that an open tab still works after a restart.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Literal
from urllib.parse import parse_qs

from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.adapters.files.shared_file import SharedFile
from lamina.apps.web.http_answers import JSON_TYPE, ErrorAnswer, Refusal, encode_answer
from lamina.apps.wiring.folders import data_folder

# What a caller may do.
Right = Literal["read", "chat", "admin"]

LOGIN_S = 30 * 86_400
_MAX_LOGINS = 200


class WebLogin(Struct, frozen=True, kw_only=True):
    """A logged-in browser: the digest of its cookie, and when it logged in."""

    digest: str
    at: float


class WebLogins(Struct, kw_only=True):
    """The file of logged-in browsers."""

    version: int = 1
    logins: tuple[WebLogin, ...] = ()


class Door:
    """The names by which this server is reached, and the logged-in browsers."""

    def __init__(self, port: int) -> None:
        self.port = port
        # One person may run several servers; browsers separate cookies by host only.
        self.cookie = f"lamina_{port}"
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self._tokens: set[str] = set()
        self._file = SharedFile(
            data_folder() / "web-logins.json", WebLogins, "logins of the web app", "log in again"
        )
        self._logins: frozenset[str] | None = None

    def issue_token(self) -> str:
        """Return a token that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(_digest(token))
        return token

    def exchange(self, token: str) -> str | None:
        """Return the cookie for a token; None if the token is invalid or used."""
        digest = _digest(token)
        known = next((known for known in self._tokens if hmac.compare_digest(known, digest)), None)
        if known is None:
            return None
        self._tokens.discard(known)
        cookie = secrets.token_urlsafe(32)
        now = time.time()
        with self._file.locked():
            content = self._file.read()
            fresh = [login for login in content.logins if now - login.at < LOGIN_S]
            logins = (*fresh[-_MAX_LOGINS:], WebLogin(digest=_digest(cookie), at=now))
            self._file.write(replace(content, logins=logins))
        self._logins = None
        return cookie

    def admits(self, cookie: str) -> bool:
        """Return whether a cookie was issued here and has not expired."""
        if self._logins is None:
            now = time.time()
            logins = self._file.read().logins
            self._logins = frozenset(login.digest for login in logins if now - login.at < LOGIN_S)
        return bool(cookie) and _digest(cookie) in self._logins


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


MAX_BYTES = 32 * 1024 * 1024
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
    "Run `lamina web` to open this page: it prints an address that works once. Run it again "
    "in a terminal, and open the address it prints.\n"
)


class Guard:
    """Lets authorised requests through."""

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
        """Return the answer that refuses a request; None if it passes."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [headers.get("host", "")] or (
            headers.get("host", "").lower() not in self._door.hosts
        ):
            return PlainTextResponse("This server only answers at its own address.\n", 421)
        method, path = scope["method"], scope["path"]
        if (problem := self._check_origin(method, headers)) is not None:
            return problem
        if method == "GET" and path == "/" and b"token=" in scope.get("query_string", b""):
            return self._let_in(scope, headers)
        if not (path.startswith("/api") or path == "/"):
            # Files of the app, which are the same for everyone.
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
                return _refuse(403, "foreign_origin", "requests from other sites are refused")
            return None
        if site not in (None, "same-origin") or (origin is None and site is None):
            return _refuse(403, "foreign_origin", "changes are accepted only from the app's page")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if kind != JSON_TYPE and (has_body or method != "DELETE"):
            return _refuse(415, "not_json", f"the body must be {JSON_TYPE}, not {kind!r}")
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and (
            len(length) > 18 or int(length) > MAX_BYTES
        ):  # fmt: skip
            return _too_large()
        return None

    def _let_in(self, scope: Scope, headers: Headers) -> Response:
        """Exchange the token for the cookie, and remove it from the address."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        cookie = self._door.exchange("".join(query.get("token", [])))
        if cookie is None and not self._door.admits(self._cookie(headers)):
            return PlainTextResponse(f"This address has already been used. {NO_LOGIN}", 401)
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
    """Return the body, checking its size while it arrives.

    Raises:
        Refusal: it is too large, or incomplete.
    """
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BYTES:
                raise Refusal(413, "too_large", f"a body may have at most {MAX_BYTES:,} bytes")
            parts.append(part)
    except ClientDisconnect as error:
        raise Refusal(400, "cut_off", "the connection ended before the body did") from error
    return b"".join(parts)


def _too_large() -> Response:
    return _refuse(413, "too_large", f"a body may have at most {MAX_BYTES:,} bytes")


def _refuse(status: int, code: str, message: str) -> Response:
    body = ErrorAnswer(error=Refusal(status, code, message).body)
    return Response(encode_answer(body), status, media_type=JSON_TYPE)


async def _refuse_socket(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1008, "reason": "sockets are not supported"})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers
