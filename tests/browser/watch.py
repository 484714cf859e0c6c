"""What a page must not do while it is tested, written down as it happens.

Law: a violation of the content security policy, an error on the console, an exception, a dialog, a
request that fails or leaves this machine fails the test at its end, unless the test said before
that it would provoke it.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    WebSocket,
)

VIOLATIONS = """
document.addEventListener('securitypolicyviolation', (event) => {
  window.tellViolation(
    `${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ` +
    event.sample);
});
"""
# A page that is left ends its requests, and its streams most of all.
LEFT = "net::ERR_ABORTED"


class Watch:
    """What the pages of a context did. `allow` names what a test provokes, by patterns."""

    def __init__(self, context: BrowserContext) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        context.expose_binding("tellViolation", self._violation)
        context.add_init_script(VIOLATIONS)
        context.on("page", self._page)
        context.on("request", self._request)
        context.on("requestfailed", self._request_failed)
        context.on("response", self._response)
        context.on("console", self._console)
        context.on("dialog", self._dialog)

    def allow(self, *patterns: str) -> None:
        self._allowed += [re.compile(pattern) for pattern in patterns]

    def require_clean(self) -> None:
        left = [
            fault
            for fault in self.faults
            if not any(pattern.search(fault) for pattern in self._allowed)
        ]
        assert not left, "\n".join(left)

    def _violation(self, source: Any, text: str) -> None:
        self.faults.append(f"violation: {text}")

    def _page(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error.stack or error}"))
        page.on("crash", lambda _: self.faults.append("crash: the page"))
        page.on("websocket", self._socket)

    def _socket(self, socket: WebSocket) -> None:
        self.faults.append(f"socket: {socket.url}")

    def _request(self, request: Request) -> None:
        self.requests.append(f"{request.method} {request.url}")
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob") and place.hostname != "127.0.0.1":
            self.faults.append(f"request: {request.url}")

    def _request_failed(self, request: Request) -> None:
        if request.failure != LEFT:
            self.faults.append(f"failed: {request.method} {request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.faults.append(
                f"status {response.status}: {response.request.method} {response.url}"
            )

    def _console(self, message: ConsoleMessage) -> None:
        # Statuses are written down with what was asked for; the console only repeats them.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            place = message.location
            self.faults.append(f"console: {message.text} ({place.get('url')})")

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.type} {dialog.message}")
        dialog.dismiss()
