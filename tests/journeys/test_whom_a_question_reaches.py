"""Issue 16, A.2: a session that was had with one vendor, and a person who names another one. Real
processes; both vendors listen on the loopback and keep what reaches them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from tests.adapters.formats.samples import SAMPLES
from tests.apps.cli.forks import run_fork

from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.openai.emulator import OpenAIEmulator

NAMED = "openai:gpt-4o"
OPENAI, ANTHROPIC = OpenAIEmulator(), AnthropicEmulator()


class Office:
    """A folder with an imported session `x`, and two vendors that can be reached from it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self._rows = self._counts()

    def run(self, *arguments: str, stdin: str = "", **changes: str) -> str:
        done = run_fork(*arguments, cwd=self.folder, env=self.environment | changes, stdin=stdin)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def _counts(self) -> tuple[int, int]:
        return len(OPENAI.report.rows), len(ANTHROPIC.report.rows)

    @property
    def reached(self) -> tuple[int, int]:
        """How many requests the named vendor got, and how many the one of the import."""
        now = self._counts()
        return now[0] - self._rows[0], now[1] - self._rows[1]


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_emulator(OPENAI)) as openai,
        portal.wrap_async_context_manager(serve_emulator(ANTHROPIC)) as anthropic,
    ):
        yield openai, anthropic


@pytest.fixture
def office(tmp_path: Path, urls: tuple[str, str]) -> Office:
    openai, anthropic = urls
    models = tmp_path / "models.toml"
    models.write_text(
        f'[providers.openai]\nbase_url = "{openai}/v1"\n'
        f'[providers.anthropic]\nbase_url = "{anthropic}"\n',
        "utf-8",
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
    environment = kept | {
        "LAMINA_DATA": str(tmp_path / "data"), "LAMINA_CACHE": str(tmp_path / "cache"),
        "LAMINA_MODELS": str(models), "LAMINA_TARGET": NAMED, "HOME": str(tmp_path),
        "OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "a-key", "NO_COLOR": "1", "TERM": "dumb",
    }  # fmt: skip
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "cc.jsonl").write_bytes(SAMPLES["claude_code"])
    office = Office(folder, environment)
    office.run("import", "cc.jsonl", "-s", "x")
    return office


def test_without_a_name_an_imported_session_goes_on_with_its_own_vendor(office: Office) -> None:
    """Otherwise the tests below would show nothing. LAMINA_TARGET is for sessions without one."""
    office.run("ask", "Hello?", "--session", "x")
    assert office.reached == (0, 1)


def test_ask_goes_to_the_model_it_names(office: Office) -> None:
    office.run("ask", "Hello?", "--session", "x", "-m", NAMED)
    assert office.reached == (1, 0)
    office.run("ask", "And now?", "--session", "x")
    assert office.reached == (2, 0)


def test_a_chat_goes_to_the_model_it_names(office: Office) -> None:
    office.run("chat", "--session", "x", "-m", NAMED, stdin="Hello?\n/resume\n")
    assert office.reached == (1, 0)


def test_rpc_goes_to_the_model_it_names(office: Office) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "prompt", "params": {"text": "Hello?"}}
    office.run("rpc", "--session", "x", "-m", NAMED, stdin=json.dumps(call) + "\n")
    assert office.reached[1] == 0
    once = call | {"params": {"text": "Hello?", "target": NAMED}}
    office.run("rpc", "--session", "x", stdin=json.dumps(once) + "\n")
    assert office.reached[1] == 0


def test_a_failed_try_leaves_no_question_for_the_next_vendor(office: Office) -> None:
    """Neither one without a key nor one without a server."""
    broken = office.folder / "broken.toml"
    broken.write_text('[providers.openai]\nbase_url = "http://127.0.0.1:1/v1"\n', "utf-8")
    no_key = office.run(
        "ask", "Secret one?", "-s", "x", ANTHROPIC_API_KEY="", LAMINA_MODELS=str(broken)
    )
    assert "there is no key for 'anthropic'" in no_key
    office.run("ask", "Secret two?", "-s", "x", "-m", NAMED, LAMINA_MODELS=str(broken))
    assert office.reached == (0, 0)
    office.run("ask", "Hello?", "-s", "x", "-m", NAMED)
    assert office.reached == (1, 0)
    body = json.loads(office.run("log", "x", "--json"))
    path = json.dumps([entry for entry in body["entries"] if entry.get("active")])
    assert "Secret one?" not in json.dumps(body)
    assert "Secret two?" not in path


def test_going_on_with_a_question_asks_whom_it_names(office: Office) -> None:
    broken = office.folder / "broken.toml"
    broken.write_text('[providers.anthropic]\nbase_url = "http://127.0.0.1:1"\n', "utf-8")
    office.run("ask", "Hello?", "-s", "x", LAMINA_MODELS=str(broken))
    office.run("ask", "-s", "x", "--resume", "-m", NAMED)
    assert office.reached == (1, 0)
