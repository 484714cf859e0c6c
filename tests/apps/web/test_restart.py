"""What a server leaves behind, and what the next one finds."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.apps.cli.commands import LAMINA
from tests.apps.web.served_house import ServedHouse, refused

LONG = " ".join(f"word{number}" for number in range(12))


class WebProcess:
    """`lamina web` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(LAMINA), "web", str(folder), "--no-open", *arguments],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ),
        )  # fmt: skip
        assert self.process.stderr is not None
        self.address = self.last_words = ""
        for line in self.process.stderr:
            if "token=" in line:
                self.address = line.strip()
                break

    def __enter__(self) -> "WebProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def base(self) -> str:
        return self.address.partition("/?")[0]

    @contextmanager
    def visit(self, house: ServedHouse, cookies: httpx2.Cookies | None = None) -> Iterator[None]:
        """The house has a browser here meanwhile: a new one, or one that was let in before."""
        headers = {"origin": self.base}
        with httpx2.Client(base_url=self.base, headers=headers, timeout=30) as house.client:
            if cookies is None:
                assert house.client.get(self.address).status_code == 303
            else:
                house.client.cookies = cookies
            yield

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.last_words = self.process.communicate(timeout=30)[1]
        return self.process.returncode


def test_a_server_that_was_killed_in_the_middle_of_an_answer_goes_on_after_a_restart(
    house: ServedHouse,
) -> None:
    house.stop()
    with WebProcess(house.folder, "--port", "0") as first, first.visit(house):
        session = house.begin()
        house.vendor.says(LONG)
        house.vendor.hold(after=3)
        house.post(session, "/turns", {"text": "Tell me."})
        house.vendor.wait_until_held()
        assert first.end(signal.SIGKILL) != 0
        cookies = house.client.cookies
    house.vendor.release()
    house.vendor.says("Here it is.")
    port = first.base.rpartition(":")[2]
    # The tab that stands open has its cookie still.
    with WebProcess(house.folder, "--port", port) as second, second.visit(house, cookies):
        head = house.get(session)
        assert (head["state"], head["interrupted"]) == ("interrupted", True)
        assert [row["text"] for row in house.rows(session)] == ["Tell me."]
        turn = house.post(session, "/resume")["turn"]
        assert house.watch(session, turn)[-1].data["answer"] == "Here it is."
        assert house.get(session)["state"] == "idle"
        answer = house.client.post(house.place(session, "/resume"), json={})
        assert refused(answer) == (409, "turn_state")
        assert second.end(signal.SIGTERM) == 0


def test_ending_the_server_keeps_what_came_of_an_answer(house: ServedHouse) -> None:
    house.stop()
    with WebProcess(house.folder, "--port", "0") as server, server.visit(house):
        session = house.begin()
        house.vendor.says(LONG)
        house.vendor.hold(after=5)
        turn = house.post(session, "/turns", {"text": "Tell me."})["turn"]
        house.vendor.wait_until_held()
        watcher = house.follow(session, turn)
        next(watcher)
        began = time.monotonic()
        assert server.end(signal.SIGINT) == 0
        assert time.monotonic() - began < 10
        # Whoever watches is told so, and nobody is told more.
        assert [event.event for event in watcher][-1] == "end"
        assert len(server.last_words.splitlines()) == 1
    house.vendor.release()
    house.start()
    answer = house.rows(session)[-1]
    assert answer["interrupted"]
    assert answer["text"]
    assert LONG.startswith(answer["text"])


def test_ending_the_server_during_an_upload_prints_no_traceback(house: ServedHouse) -> None:
    house.stop()
    with WebProcess(house.folder, "--port", "0") as server, server.visit(house):
        cookie = "; ".join(f"{name}={value}" for name, value in house.client.cookies.items())
        host, _, port = server.base.removeprefix("http://").partition(":")
        head = (
            f"POST /api/doctor HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {server.base}\r\n"
            f"Cookie: {cookie}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"
            f"Expect: 100-continue\r\n\r\n"
        )
        uploads = [socket.create_connection((host, int(port)), timeout=30) for _ in range(2)]
        for upload in uploads:
            upload.sendall(head.encode())
            # The server says so once it reads the body.
            assert upload.recv(100).startswith(b"HTTP/1.1 100")
            upload.sendall(b'{"files": [')
        uploads[0].close()
        assert server.end(signal.SIGINT) == 0
        assert len(server.last_words.splitlines()) == 1, server.last_words
        uploads[1].close()


def test_a_port_that_is_taken_is_said_so(house: ServedHouse) -> None:
    port = str(house.server.door.port)
    command = [str(LAMINA), "web", str(house.folder), "--no-open", "--port", port]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert f"127.0.0.1:{port}" in run.stderr
    assert "--port" in run.stderr


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    command = [str(LAMINA), "web", str(folder / "nowhere"), "--no-open"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert "nowhere" in run.stderr


def test_a_session_that_another_program_has_open_is_read_and_not_written(
    house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    del monkeypatch
    session = house.begin()
    house.ask(session, "Hello")
    house.restart()
    command = [str(LAMINA), "rpc", "--session", session, "--workspace", str(house.folder)]
    rpc = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert rpc.stdout is not None
    assert "ready" in rpc.stdout.readline()
    try:
        head = house.get(session)
        assert head["busy_elsewhere"]
        assert len(house.rows(session)) == 2
        assert house.post(session, "/preview", {"text": "And then?"})["tokens"] > 0
        answer = house.client.post(house.place(session, "/turns"), json={"text": "And then?"})
        assert refused(answer) == (409, "session_busy")
        assert "lamina chat" in answer.json()["error"]["message"]
        # A copy of it can be gone on with.
        fork = house.post(session, "/fork", {})["session"]
        assert house.ask(fork, "And then?")[-1].data["ending"] == "answered"
    finally:
        rpc.communicate("", timeout=20)
    assert not house.get(session)["busy_elsewhere"]
    assert house.ask(session, "And now?")[-1].data["ending"] == "answered"


def test_a_session_that_nobody_uses_is_let_go_of(folder: Path, house: ServedHouse) -> None:
    house.stop()
    house.idle_s = 0.05
    house.start()
    session = house.begin()
    house.ask(session, "Hello")
    desk = house.server.desk
    opened = desk.find_open(house.workspace, session)
    if opened is not None:
        house.portal.call(opened.closed.wait)
    command = [str(LAMINA), "log", session, "--workspace", str(folder)]
    assert subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    assert house.ask(session, "Again")[-1].data["ending"] == "answered"
