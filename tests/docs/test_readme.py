"""What the README shows is run as it stands, through the vendor's own SDK."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


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


def test_the_commands_that_the_readme_shows_exist(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "vim.md").write_text("u undoes.\n")
    (tmp_path / "notes" / "rules.md").write_text("Be brief.\n")
    shown = [
        line.removeprefix("$ ")
        for block in code_blocks("console")
        for line in block.splitlines()
        if line.startswith("$ lamina")
    ]
    assert shown
    lamina = Path(sys.executable).with_name("lamina")
    for line in shown:
        command = line.replace("lamina", str(lamina), 1)
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout.strip()
