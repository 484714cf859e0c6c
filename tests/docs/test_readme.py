"""What the README and its pages show is run as it stands, through the vendor's own SDK."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.fakes.files import session_file

import lamina
from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.emulators.answers import EmulatedAnswer, EmulatedRequest, read_answers

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
# Pages that the README leads to; of those with tests of their own, what stands before a heading.
PAGES = {
    "library.md": "",
    "models.md": "",
    "agents.md": "\n## The folder\n",
    "workspaces.md": "\n## What can be attached\n",
    "hooks.md": "\n## ",
}


def _shown() -> str:
    texts = [README]
    for name, end in PAGES.items():
        page = (ROOT / "docs" / name).read_text("utf-8")
        texts.append(page.partition(end)[0] if end else page)
    return "\n".join(texts)


SHOWN = _shown()


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SHOWN, re.DOTALL | re.MULTILINE)


def test_the_front_page_is_short_and_links_to_every_page_by_way_of_the_index() -> None:
    assert len(README.splitlines()) <= 200
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index


@contextmanager
def chat_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on loopback that answers every chat completion and keeps what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            reply = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "gpt-5",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": f"Answer {len(asked)}."},
                    }
                ],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 3,
                    "total_tokens": 103,
                    "prompt_tokens_details": {"cached_tokens": 0},
                },
            }
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_library_example_runs_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "api-docs.md").write_text("# API\n\nPOST /login with a token.\n")
    example, *_ = code_blocks("python")
    with chat_server() as (url, asked):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", example],
            cwd=tmp_path,
            env={**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Answer 1." in done.stdout
    assert "Answer 2." in done.stdout
    first, second = (request["messages"] for request in asked)
    assert second[: len(first)] == first
    assert "POST /login" in first[-1]["content"]
    assert "POST /login" not in second[-1]["content"]
    assert "- api-docs.md" in second[-1]["content"]


def test_the_library_example_is_as_short_as_it_claims_to_be() -> None:
    example, *_ = code_blocks("python")
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 15


def test_every_other_python_block_runs() -> None:
    for block in code_blocks("python")[1:]:
        exec(compile(block, "README.md", "exec"), {})


def find_block(text: str) -> dict[str, Any]:
    """What the block that holds `text` defines."""
    (block,) = [block for block in code_blocks("python") if text in block]
    defined: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), defined)
    return defined


def test_a_session_is_taken_up_again_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path))

    async def body() -> None:
        async with await lamina.open_session("my-chat") as session:
            await session.prepare("What now?")
        await find_block("my-chat")["go_on"]()

    anyio.run(body)
    assert "not answered yet: What now?" in capsys.readouterr().out


def test_the_hooks_shown_do_what_is_said_of_them() -> None:
    async def body() -> None:
        store = lamina.MemoryStore()
        session = await lamina.open_session(store=store, hooks=find_block("say_the_time")["hooks"])
        turn = await session.prepare("Q")
        texts = [message["content"] for message in turn.request()["messages"]]
        assert texts == ["Be brief.", "Q", "It is noon."]
        with pytest.raises(lamina.LaminaError, match="dropped"):
            await session.prepare("my password is 1234")

    anyio.run(body)


async def make_session(folder: Path) -> Path:
    """The session that the README's commands are about; gives its file."""
    async with await lamina.open_session("my-chat", workspace=folder) as session:
        for question in ("How do I undo?", "And redo?"):
            turn = await session.prepare(question)
            await turn.commit({"choices": [{"message": {"content": "u"}, "finish_reason": "stop"}]})
    return session_file(folder, "my-chat")


def test_a_model_is_talked_to_as_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model_cache: Path,
) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "approach.md").write_text("Come in at high water.\n")
    anyio.run(find_block("def tide")["talk"])
    shown = capsys.readouterr().out
    assert "RequestStarted(" in shown
    assert "answered" in shown


def test_an_agent_chooses_as_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model_cache: Path,
    embedding_model: Path,
) -> None:
    (model_cache / "models" / embedding_model.name).symlink_to(embedding_model)
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "migrate.sql").write_text("DROP TABLE users;\n")
    folder = write_skeleton("reviewer", tmp_path / "code" / ".lamina" / "agents")
    rules = {
        "security": "include: manual\n---\nNever trust input.",
        "migrations": "include: agent\ndescription: Safe migrations\n---\nCan be undone.",
    }
    for name, text in rules.items():
        (folder / "rules" / f"{name}.md").write_text(f"---\nname: {name}\n{text}\n")
    anyio.run(find_block("def try_question")["try_question"], "Is this migration safe?")
    tried = capsys.readouterr().out
    assert re.search(r"rule:migrations 0\.\d+ fits 'Is this migration safe\?': ", tried)
    assert "rule:security" not in tried
    anyio.run(find_block("def review")["review"])
    shown = capsys.readouterr().out
    assert "rule:security manual None added by hand" in shown
    assert re.search(r"rule:migrations agent 0\.\d+ found by search", shown)


def test_notes_are_searched_as_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embedding_cache: Path,
) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes" / "runbooks").mkdir(parents=True)
    text = "# Keys\n\nRotate the signing key every month.\n"
    (tmp_path / "notes" / "runbooks" / "keys.md").write_text(text)
    (tmp_path / "notes" / "elsewhere.md").write_text(text)
    anyio.run(find_block("def find_passages")["find_passages"], "key rotation")
    shown = capsys.readouterr().out
    place, why = r"runbooks/keys\.md#L1-L3 Keys 0\.\d+", r"is 0\.\d+ like the question and shares"
    assert re.fullmatch(rf"{place} {why} 'key', 'rotation'\nby meaning and words\n", shown)


def require_serving(line: str) -> None:
    """A server that serves until it is interrupted, and then says what it did."""
    arguments = shlex.split(re.sub(r"--port \d+", "--port 0", line), comments=True)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True) as serving:
        assert serving.stderr is not None
        assert "Ctrl-C stops it" in serving.stderr.readline()
        serving.send_signal(signal.SIGINT)
        out, _ = serving.communicate(timeout=30)
    assert serving.returncode == 0
    assert "read from the cache" in out


def require_open(line: str, folder: Path) -> None:
    """The web app, which serves until it is interrupted; no browser is opened here."""
    arguments = shlex.split(re.sub(r"\s*#.*", " --no-open --port 0", line))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, cwd=folder, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as serving:
        assert serving.stdout is not None
        lines = iter(serving.stdout.readline, "")
        assert any("token=" in printed for printed in lines)
        serving.send_signal(signal.SIGINT)
        serving.communicate(timeout=30)
    assert serving.returncode == 0


# What a person would type.
TYPED = {"lamina chat": "/help\n", "lamina sessions delete": "y\n"}


def test_the_commands_that_the_readme_shows_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_cache: Path, embedding_model: Path
) -> None:
    (model_cache / "models" / embedding_model.name).symlink_to(embedding_model)
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    (tmp_path / "notes").mkdir()
    (tmp_path / "chats").mkdir()
    (tmp_path / "notes" / "vim.md").write_text("u undoes.\n")
    (tmp_path / "notes" / "rules.md").write_text("Be brief.\n")
    (tmp_path / "notes" / "berths.md").write_text("A berth costs 4 a night.\n")
    for path in ("projects/boat.md", "today.md", "runbooks/keys.md"):
        (tmp_path / "notes" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "notes" / path).write_text("Rotate the keys in May. #draft #project\n")
    (tmp_path / "notes" / "log.md").write_text("line\n" * 12)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    tools = [{"name": "book_flight", "description": "Books a flight."}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    (tmp_path / "chat.md").write_text("**user**: hi\n\n**ai**: hello\n")
    old = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    (tmp_path / "old.jsonl").write_text(json.dumps(old) + "\n")
    journal = anyio.run(make_session, tmp_path)
    shown = [
        line.removeprefix("$ ")
        for block in code_blocks("console")
        for line in block.splitlines()
        if line.startswith("$ lamina")
    ]
    assert shown
    command = Path(sys.executable).with_name("lamina")
    for line in shown:
        if line.startswith("lamina emulate"):
            require_serving(line.replace("lamina", str(command), 1))
            continue
        if line.startswith("lamina web"):
            require_open(line.replace("lamina", str(command), 1), tmp_path)
            continue
        if line.startswith("lamina repair"):
            with journal.open("ab") as file:
                file.write(b"rubbish\n")
        done = subprocess.run(
            line.replace("lamina", str(command), 1),
            shell=True, cwd=tmp_path, capture_output=True, text=True, check=False,
            input=next((typed for begins, typed in TYPED.items() if line.startswith(begins)), ""),
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout.strip()


def test_the_answers_that_are_shown_are_those_that_an_emulator_takes(tmp_path: Path) -> None:
    (shown,) = (block for block in code_blocks("json") if '"calls"' in block)
    (tmp_path / "answers.json").write_text(shown, "utf-8")
    script = read_answers(tmp_path / "answers.json")
    request = EmulatedRequest(messages=(("user", "What opens?"),))

    async def body() -> list[EmulatedAnswer]:
        return [await script.answer(request) for _ in range(4)]

    first, second, third, again = anyio.run(body)
    assert (first.text, third.text, again) == ("Hello!", "The pier opens in May.", first)
    assert [(call.name, call.arguments) for call in second.calls] == [
        ("read_file", {"path": "plan.md"})
    ]
    assert second.thinking
