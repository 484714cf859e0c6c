"""A person asks a folder of notes from a shell, and a program does over rpc: real processes, the
real embedded model."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.forks import run_fork
from tests.apps.cli.rpc_client import serving
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run

from lamina.adapters.tools.mcp_client.config import read_servers
from lamina.adapters.tools.mcp_client.mcp_servers import McpServers

ODD = Path(__file__).parents[1] / "adapters" / "tools" / "odd_server.py"
DOCS = Path(__file__).parents[2] / "docs" / "rpc.md"
LIMIT_S = 300
# Cheap, and long enough to be stopped in the middle.
SHORT = ("--max-tokens", "8")
LONG = ("--max-tokens", "200")

pytestmark = pytest.mark.usefixtures("model_cache")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes, and a place of its own for sessions."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_COLOR", "1")
    folder = tmp_path / "notes"
    folder.mkdir()
    text = "The pier opens in May and closes in October. Tickets are sold at the north gate.\n"
    (folder / "plan.md").write_text(f"# Plan\n\n{text}", "utf-8")
    return folder


def ask(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run_fork("ask", *arguments, cwd=cwd, env=os.environ, stdin=stdin)


def log(session: str, cwd: Path) -> Any:
    done = run_fork("log", session, "--json", cwd=cwd, env=os.environ, stdin="")
    return json.loads(done.stdout)


def require_sound(session: str, cwd: Path) -> None:
    done = run_fork("verify", session, cwd=cwd, env=os.environ, stdin="")
    assert done.returncode == 0, done.stdout


class Rpc:
    """A client of a real process."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [str(LAMINA), "rpc", *arguments],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0
        self.seen: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self.ready = self.read()["params"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.process.kill()
        out, err = self.process.communicate(timeout=LIMIT_S)
        for line in out.splitlines():
            self.seen.append(json.loads(line))
        if kind is None:
            assert self.process.returncode == 0, err.decode()
            assert err == b""

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        self._number += 1
        call = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.write(json.dumps(call).encode())
        return self._number

    def read(self) -> dict[str, Any]:
        """The next message. Every line of standard output is one, or this fails."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else b""
        message: dict[str, Any] = json.loads(line)
        self.seen.append(message)
        return message

    def event(self, kind: str) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("method") == "event" and message["params"]["type"] == kind:
                params: dict[str, Any] = message["params"]
                return params

    def answer(self, number: int) -> dict[str, Any]:
        while (message := self.read()).get("id") != number:
            pass
        return message

    def call(self, method: str, **params: Any) -> Any:
        message = self.answer(self.send(method, **params))
        assert "result" in message, message
        return message["result"]


def test_a_person_asks_twice_in_one_session_and_no_bytes_move(notes: Path) -> None:
    first = ask("When does the pier open?", "--attach", "plan.md", *SHORT, cwd=notes)
    assert first.returncode == 0, first.stderr
    found = re.fullmatch(r"session ([0-9a-f]{16})\n(?:cut off: .*\n)?", first.stderr)
    assert found, first.stderr
    session = found[1]
    answers = [
        entry["message"]["blocks"][0]["text"]
        for entry in log(session, notes)["entries"]
        if entry["type"] == "message" and entry["message"]["role"] == "assistant"
    ]
    assert [answer.rstrip("\n") + "\n" for answer in answers] == [first.stdout]

    second = ask(
        "And when does it close?", "--attach", "plan.md", "--session", session[:6], "--json",
        cwd=notes,
    )  # fmt: skip
    assert (second.returncode, second.stderr) == (0, "")
    shown = json.loads(second.stdout)
    assert shown["session"] == session
    assert set(shown) >= {"session", "answer", "usage", "layers", "context", "warnings"}
    assert [each["id"] for each in shown["layers"]] == ["L1", "L2", "L3", "L4", "L5"]
    assert [each["label"] for each in shown["context"]] == ["plan.md"]
    # The bytes did not move, and what the model of the other process read of them is there again.
    assert shown["context"][0]["placement"] == "above"
    assert sum(layer["agree"] for layer in shown["layers"]) > 0
    assert 0 < sum(layer["cached"] for layer in shown["layers"]) <= shown["usage"]["cached"]
    require_sound(session, notes)


def test_what_is_piped_in_is_part_of_the_question(notes: Path) -> None:
    done = ask("Repeat this.", *SHORT, "--json", cwd=notes, stdin="north gate\n")
    assert done.returncode == 0, done.stderr
    entries = log(json.loads(done.stdout)["session"], notes)["entries"]
    asked = [e for e in entries if e["type"] == "message" and e["message"]["role"] == "user"]
    text = "Repeat this.\n\n<stdin>\nnorth gate\n</stdin>"
    assert asked[0]["message"]["blocks"] == [{"type": "text", "text": text}]


def test_ctrl_c_keeps_what_came_and_the_session_goes_on(notes: Path) -> None:
    process = subprocess.Popen(
        [str(LAMINA), "ask", "Tell a long story about a pier.", *LONG],
        cwd=notes,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    came = b""
    while len(came.split()) < 3:
        came += os.read(process.stdout.fileno(), 100)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    lines = err.decode().splitlines()
    assert lines[1:] == ["stopped: the partial answer is kept"]
    session = lines[0].removeprefix("session ")
    kept = [
        entry
        for entry in log(session, notes)["entries"]
        if entry["type"] == "message" and entry["message"]["role"] == "assistant"
    ]
    assert [entry["interrupted"] for entry in kept] == [True]
    written = (came + rest).decode()
    assert kept[0]["message"]["blocks"][0]["text"] + "\n" == written
    again = ask("--session", session, "--resume", cwd=notes)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == ("error: the last turn is complete: there is nothing to continue\n")
    require_sound(session, notes)


def test_a_program_talks_stops_resumes_and_looks(notes: Path) -> None:
    with Rpc(*LONG, cwd=notes) as rpc:
        session = rpc.ready["session"]
        number = rpc.send("prompt", text="Tell a long story about the pier.", attach=["plan.md"])
        # While it reads nothing has come: the request stays open.
        rpc.event("reading")
        assert rpc.call("abort") == {"aborted": True}
        assert rpc.answer(number)["result"]["ending"] == "aborted"

        number = rpc.send("resume")
        for _ in range(5):
            rpc.event("block_delta")
        looked = rpc.call("get_context", full=True)
        assert looked["problems"] == []
        assert "The pier opens in May" in json.dumps(looked["segments"])
        rpc.send("abort")
        stopped = rpc.answer(number)["result"]
        assert stopped["ending"] == "aborted"
        assert stopped["answer"].strip()

        rpc.call("update_settings", window=4096)
        number = rpc.send("prompt", text="When does it open?", attach=["plan.md"])
        rpc.event("block_delta")
        rpc.send("abort")
        rpc.answer(number)
        context = rpc.call("get_context")
        assert context["usage"]["cached"] > 0
        assert sum(layer["cached"] for layer in context["layers"]) > 0
        assert [item["placement"] for item in context["items"]] == ["above"]
        tree = rpc.call("tree")
        questions = [each for each in tree["entries"] if each["kind"] == "user"]
        assert [question["summary"] for question in questions] == [
            "Tell a long story about the pier.",
            "When does it open?",
        ]
        position = rpc.call("navigate", entry=questions[1]["id"])
        assert position["text"] == "When does it open?"
        rpc.write(b"garbage")
        assert rpc.read()["error"]["code"] == -32700
        assert rpc.call("shutdown") is None
    require_sound(session, notes)


def test_the_end_of_the_input_ends_the_process_and_keeps_what_came(notes: Path) -> None:
    with Rpc(*LONG, cwd=notes) as rpc:
        number = rpc.send("prompt", text="Tell a long story about a pier.")
        for _ in range(3):
            rpc.event("block_delta")
        # Leaving closes the input.
    result = next(each["result"] for each in rpc.seen if each.get("id") == number)
    assert result["ending"] == "aborted"
    assert result["answer"].strip()
    require_sound(rpc.ready["session"], notes)


def servers_file(folder: Path) -> Path:
    """Tools from a real process, as a person would configure them."""
    server = {"command": sys.executable, "args": [str(ODD), "plain"]}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"odd": server}}), "utf-8")
    return path


def test_a_tool_of_a_real_server_runs_once_it_is_approved(notes: Path) -> None:
    async def body() -> None:
        host = McpServers(read_servers(servers_file(notes)))
        async with serving(host=host) as client:
            await client.read()
            offered = {tool.label: tool.definition.name for tool in (await host.toolset()).tools}
            name = next(name for label, name in offered.items() if label.endswith("echo"))
            client.provider.scripts += [calling(("c1", name, {"say": "May"})), saying("May.")]
            number = await client.send("prompt", text="Say May.")
            assert (await client.event("approval"))["call"]["name"] == name
            await client.call("decide", call_id="c1", decision="allow_once")
            result = await client.event("tool_result")
            assert result["result"]["text"] == '{"say": "May"}'
            assert (await client.answer(number))["result"]["answer"] == "May."

    run(body())


def test_tools_of_a_configured_server_are_offered_by_the_process(notes: Path) -> None:
    with Rpc("--mcp", str(servers_file(notes)), *SHORT, cwd=notes) as rpc:
        number = rpc.send("prompt", text="Say May.")
        layers = {each["layer"]: each["tokens"] for each in rpc.event("request")["layers"]}
        assert layers["tools"] > 0
        rpc.send("abort")
        assert rpc.answer(number)["result"]["ending"] == "aborted"


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-"])
def test_a_process_that_is_started_without_streams_works(notes: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{LAMINA}" ask "Say hi." --max-tokens 2 {closed}'],
        cwd=notes,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rb"session [0-9a-f]{16}\ncut off: .*\n", done.stderr)


def dialogue() -> list[tuple[str, dict[str, Any]]]:
    """The one in the documentation: arrows and messages."""
    block = DOCS.read_text("utf-8").partition("## A dialogue")[2].split("```")[1]
    return [(line[:2], json.loads(line[3:])) for line in block.strip().splitlines()]


def fits(pattern: Any, value: Any) -> bool:
    """Whether a message is the documented one, where `…` stands for anything."""
    if pattern == "…":
        return True
    if isinstance(pattern, dict) and isinstance(value, dict):
        return pattern.keys() == value.keys() and all(fits(pattern[k], value[k]) for k in pattern)
    return bool(pattern == value)


def kind_of(message: dict[str, Any]) -> object:
    return message.get("method") == "event" and message["params"]["type"]


def test_the_dialogue_in_the_documentation_is_what_happens(notes: Path) -> None:
    lines = dialogue()
    process = Rpc(*SHORT, cwd=notes)
    assert lines[0][0] == "<-"
    last: dict[str, Any] = {}
    with process as rpc:
        assert fits(lines[0][1], rpc.seen[0])
        for arrow, message in lines[1:]:
            if arrow == "->":
                rpc.write(json.dumps(message).encode())
                continue
            got = rpc.read()
            while kind_of(got) and kind_of(got) == kind_of(last):
                got = rpc.read()
            assert fits(message, got), (message, got)
            last = got
