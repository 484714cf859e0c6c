"""The server of the web app on the loopback, with an emulated vendor behind it and a client that
was let in: one for each test."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from tests.browser.vendor import Vendor

from lamina.apps.web.desk import Desk
from lamina.apps.web.http_server import RunningServer, serve_web
from lamina.apps.web.workspace_list import workspace_id

Json = dict[str, Any]
LAST = ("end", "failed")


class ServedHouse:
    """A folder, the vendor, the server, and who calls it."""

    def __init__(self, folder: Path, vendor: Vendor) -> None:
        self.folder = folder
        self.vendor = vendor
        self.workspace = workspace_id(folder)
        self._stack = ExitStack()
        self.server: RunningServer
        self.client: httpx2.Client
        self.portal: BlockingPortal
        self.desk: Desk
        self.idle_s = 60.0

    def start(self, port: int = 0) -> "ServedHouse":
        self.portal = self._stack.enter_context(start_blocking_portal())
        self.desk = self.portal.call(lambda: Desk(start=self.folder, idle_s=self.idle_s))
        serving = self.portal.wrap_async_context_manager(serve_web(port=port, desk=self.desk))
        self.server = self._stack.enter_context(serving)
        self.client = self.connect()
        return self

    def stop(self) -> None:
        self._stack.close()

    def restart(self) -> None:
        """Another server at the same address, which remembers nothing but what was kept."""
        port = self.server.door.port
        self.stop()
        self.start(port)

    def connect(self, *, let_in: bool = True) -> httpx2.Client:
        """A browser of its own."""
        address = self.server.address
        client = httpx2.Client(base_url=address, headers={"origin": address}, timeout=30)
        self._stack.enter_context(client)
        if let_in:
            answer = client.get(self.server.entrance().removeprefix(address))
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        return client

    # -- calls -----------------------------------------------------------------------------------

    def place(self, session: str = "", rest: str = "") -> str:
        inside = f"/sessions/{session}" if session else ""
        return f"/api/workspaces/{self.workspace}{inside}{rest}"

    def get(self, session: str = "", rest: str = "", **query: Any) -> Json:
        return told(self.client.get(self.place(session, rest), params=query))

    def post(self, session: str, rest: str, body: Json | None = None, **headers: str) -> Json:
        place = self.place(session, rest)
        return told(self.client.post(place, json=body or {}, headers=headers))

    def begin(self, **options: Any) -> str:
        """A new session; gives its id."""
        session: str = self.post("", "/sessions", options)["session"]
        return session

    def ask(self, session: str, text: str, **more: Any) -> list["Told"]:
        """Asks, and waits for the end; gives the events."""
        return self.watch(session, self.post(session, "/turns", {"text": text, **more})["turn"])

    def watch(self, session: str, turn: str, after: int = 0) -> list["Told"]:
        return list(self.follow(session, turn, after))

    def follow(self, session: str, turn: str, after: int = 0) -> Iterator["Told"]:
        """The events of a turn as they come, from behind a number on."""
        place = self.place(session, f"/turns/{turn}/events")
        yield from read_events(self.client, place, after)

    def read_text(self, session: str, turn: str) -> list["Told"]:
        """The events of a turn up to the first text of its answer: the server has that now."""
        events = []
        for event in self.follow(session, turn):
            events.append(event)
            if event.event == "block_delta":
                break
        return events

    def rows(self, session: str, **query: Any) -> list[Json]:
        rows: list[Json] = self.get(session, "/messages", **query)["rows"]
        return rows


class Told:
    """One event that came over the wire."""

    def __init__(self, number: int | None, event: str, data: Json) -> None:
        self.number = number
        self.event = event
        self.data = data

    def __repr__(self) -> str:
        return f"{self.number} {self.event} {str(self.data)[:60]}"


def read_events(client: httpx2.Client, place: str, after: int = 0) -> Iterator[Told]:
    headers = {"last-event-id": str(after)} if after else {}
    with client.stream("GET", place, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                number = int(fields["id"]) if "id" in fields else None
                yield Told(number, fields["event"], json.loads(fields["data"]))
                fields = {}
            else:
                fields = {}


def told(answer: httpx2.Response) -> Json:
    assert answer.status_code < 300, (answer.status_code, answer.text)
    body: Json = answer.json()
    return body


def refused(answer: httpx2.Response) -> tuple[int, str]:
    """The status and the code of a refusal."""
    error = answer.json()["error"]
    assert error["message"]
    return answer.status_code, error["code"]


def kinds(events: list[Told]) -> list[str]:
    return [event.event for event in events]


def text_of(events: list[Told]) -> str:
    return "".join(event.data["text"] for event in events if event.event == "block_delta")
