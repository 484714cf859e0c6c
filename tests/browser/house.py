"""The app's own server for one test: in this process, or in one that can be killed."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Page
from tests.apps.cli.commands import LAMINA
from tests.browser.browser import BrowserThread, run_apart
from tests.browser.pages import Visitor
from tests.browser.served import free_port
from tests.browser.vendor import Vendor

from lamina.apps.web.guard import Door
from lamina.apps.web.http_server import serve_web
from lamina.apps.web.workspace_list import workspace_id
from lamina.apps.wiring.stores import default_store
from lamina.core.journal import Journal
from lamina.core.journal.journal import path_to
from lamina.core.values.entry import MessageEntry


class House:
    """A vault, the vendor behind it, the server in front of it, and who visits."""

    def __init__(self, vault: Path, vendor: Vendor, thread: BrowserThread) -> None:
        self.vault = vault
        self.vendor = vendor
        self.workspace = workspace_id(vault)
        self.visitors: list[Visitor] = []
        self.door: Door | None = None
        self._thread = thread
        self._stack = ExitStack()
        self._process: subprocess.Popen[str] | None = None
        self._port = free_port()
        self._address = ""

    # -- the server ------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Serves on a thread of its own, at the same address as before."""
        portal = self._stack.enter_context(start_blocking_portal())
        serving = portal.wrap_async_context_manager(serve_web(self.vault, port=self._port))
        self.door = self._stack.enter_context(serving).door

    def stop(self) -> None:
        """Ends the server, wherever it runs, as a person would."""
        self._stack.close()
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=20)
            self._process = None

    def start_process(self) -> None:
        """`lamina web` in a process of its own, at the same address."""
        self.stop()
        command = [str(LAMINA), "web", str(self.vault), "--port", str(self._port), "--no-open"]
        self._process = subprocess.Popen(
            command, cwd=self.vault, env=dict(os.environ), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if address := next((word for word in line.split() if "token=" in word), ""):
                self._address = address
                return
        raise AssertionError("lamina web printed no address")

    def kill(self) -> None:
        """As by a power cut: kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()
        self._process = None

    # -- who visits, on the browser's thread -----------------------------------------------------

    def visit(self, place: str = "", **options: Any) -> Page:
        """A browser of its own, let in, at a place of the app."""
        if self._process is not None:
            address, self._address = self._address, ""
        else:
            assert self.door is not None
            address = f"{self.url}?token={self.door.issue_token()}"
        visitor = Visitor(self._thread.browser, f"{address}{self.place(place)}", **options)
        self.visitors.append(visitor)
        return visitor.page

    def tab(self, place: str = "") -> Page:
        """One more tab of the latest browser."""
        return self.visitors[-1].new_page(f"{self.url}{self.place(place)}")

    def allow(self, *patterns: str) -> None:
        """What this test provokes on purpose."""
        for visitor in self.visitors:
            visitor.watch.allow(*patterns)

    def leave(self, *, has_passed: bool) -> None:
        visitors, self.visitors = self.visitors, []
        for visitor in visitors:
            visitor.finish(has_passed=has_passed)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """What the app's server says to the latest browser; `{w}` in the path is the workspace."""
        url = f"{self.url}api/{path.format(w=quote(self.workspace))}"
        answer = self.visitors[-1].context.request.fetch(
            url, method=method, data=None if body is None else msgspec.json.encode(body),
            headers={"origin": self.url.rstrip("/"), "content-type": "application/json"},
        )  # fmt: skip
        assert answer.ok, f"{method} {url}: {answer.status} {answer.text()}"
        return msgspec.json.decode(answer.body()) if answer.body() else None

    def new_session(self, **options: Any) -> str:
        """A session of the workspace, begun as the app would; gives its id."""
        session: str = self.api("POST", "workspaces/{w}/sessions", options)["session"]
        return session

    def journal(self, session: str) -> Journal:
        """What is kept of a session."""
        return run_apart(default_store(self.vault).read, session)

    def answers(self, session: str) -> list[str]:
        """The final answers of the active path, as the journal has them."""
        journal = self.journal(session)
        return [
            entry.message.text
            for entry in path_to(journal.leaf, journal.entries)
            if isinstance(entry, MessageEntry) and entry.message.role == "assistant"
        ]

    def place(self, place: str) -> str:
        """The address of a place; `{w}` in it is the workspace."""
        return f"#/{place.format(w=quote(self.workspace))}"
