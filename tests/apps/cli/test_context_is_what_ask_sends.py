"""`lamina context` beside `lamina ask`: the same arguments, and what a vendor on the loopback really
got for them."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from tests.apps.cli.inside import lamina

from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.openai.emulator import OpenAIEmulator

OPENAI, ANTHROPIC = OpenAIEmulator(), AnthropicEmulator()
TARGETS: dict[str, OpenAIEmulator | AnthropicEmulator] = {
    "openai:gpt-4o": OPENAI,
    "anthropic:claude-opus-5": ANTHROPIC,
}
QUESTION = "How many berths has the north quay?"
# How a client wants its answer; no part of what a model reads.
TRANSPORT = {"stream", "stream_options"}
SERVER = Path(__file__).parents[2] / "adapters" / "tools" / "odd_server.py"
FILES = {
    "plan.md": "# Plan\n\nThe pier opens in May.\n",
    "sea/harbour.md": "## Berths\n\nThe north quay has nine berths for ferries.\n",
    ".lamina/persona.md": "Answer like a harbour master.\n",
    "clerk/agent.yaml": "name: clerk\nsettings: {temperature: 0.2, max_tokens: 300}\n"
    "relations: {'rule:quays': ['reference:tides']}\n",
    "clerk/persona.md": "You are the clerk.\n",
    "clerk/memory.md": "The harbour master is called Ada.\n",
    "clerk/rules/plain.md": "---\ninclude: always\n---\nNo foreign words.\n",
    "clerk/rules/quays.md": "---\ninclude: agent\n---\nName the quay when you count berths.\n",
    "clerk/rules/hand.md": "Only if asked for.\n",
    "clerk/references/tides.md": "Low tide is at noon.\n",
    "clerk/projects/east/prompt.md": "The east pier.\n",
}


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_emulator(OPENAI)) as openai,
        portal.wrap_async_context_manager(serve_emulator(ANTHROPIC)) as anthropic,
    ):
        yield {"openai": f"{openai}/v1", "anthropic": anthropic}


@pytest.fixture
def folder(notes: Path, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    models = notes.parent / "models.toml"
    lines = [f'[providers.{name}]\nbase_url = "{url}"\n' for name, url in addresses.items()]
    models.write_text("".join(lines), "utf-8")
    monkeypatch.setenv("LAMINA_MODELS", str(models))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    for vendor in addresses:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "a-key")
    for path, text in FILES.items():
        (notes / path).parent.mkdir(parents=True, exist_ok=True)
        (notes / path).write_text(text, "utf-8")
    return notes


def ask(folder: Path, *arguments: str) -> str:
    """Asks; gives the id of the session."""
    code, out, said = lamina("ask", *arguments, "--json", cwd=folder)
    assert code == 0, said
    session: str = json.loads(out)["session"]
    return session


def compare(folder: Path, target: str, *arguments: str) -> dict[str, Any]:
    """Shows and asks with the same arguments; gives what was shown once it is what was sent."""
    given = (QUESTION, "-t", target, *arguments)
    vendor = TARGETS[target]
    count = len(vendor.report.rows)
    code, out, said = lamina("context", *given, "--wire", cwd=folder)
    assert (code, said) == (0, "")
    described = json.loads(lamina("context", *given, "--json", cwd=folder)[1])
    assert len(vendor.report.rows) == count
    session = ask(folder, *given)
    shown: dict[str, Any] = json.loads(out)
    first = vendor.bodies[count - len(vendor.report.rows)]
    # The key of a cache, unless sessions that begin alike share it: a session that is begun gets
    # an id of its own.
    key = shown.get("prompt_cache_key", "")
    key = key.removesuffix("-plan") if key != first.get("prompt_cache_key") else ""
    text = json.dumps(shown).replace(key, session) if key else json.dumps(shown)
    assert json.loads(text) == {name: v for name, v in first.items() if name not in TRANSPORT}
    if "request" not in described:
        journal = json.loads(lamina("log", session, "--json", cwd=folder)[1])["entries"]
        requests = [entry for entry in journal if entry["type"] == "request"]
        digests = [segment["digest"] for segment in described["segments"]]
        last = requests[-1]["entry"] if "entry" in requests[-1] else requests[-1]
        assert digests[-len(last["digests"]) :] == last["digests"]
    return shown


MATRIX: list[tuple[str, ...]] = [
    (),
    ("--system", "S", "--no-memory", "--max-tokens", "50"),
    ("-a", "plan.md", "--essential", "sea/harbour.md"),
    ("--active", "plan.md", "-a", "sea/"),
    ("--files", "--in", "sea"),
    ("--mode", "qa", "-a", "plan.md"),
    ("--mode", "plan", "--files"),
    ("--agent", "clerk", "-a", "plan.md"),
    ("--agent", "clerk", "--project", "east", "--mode", "qa"),
    ("--agent", "clerk", "--files"),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("arguments", MATRIX, ids=" ".join)
def test_what_is_shown_is_what_a_vendor_gets(
    folder: Path, target: str, arguments: tuple[str, ...]
) -> None:
    assert lamina("memory", "add", "The person sails.", cwd=folder)[0] == 0
    shown = json.dumps(compare(folder, target, *arguments))
    # Who plans is told about tools and the question alone.
    assert ("The person sails." in shown) == (not {"--no-memory", "plan"} & {*arguments})
    if "clerk" in arguments:
        assert "You are the clerk." in shown
        assert "No foreign words." in shown


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("arguments", [(), ("-a", "plan.md"), ("--files",), ("--mode", "qa")])
def test_a_session_that_goes_on_is_shown_as_it_would_go_on_and_stays_as_it_is(
    folder: Path, target: str, arguments: tuple[str, ...]
) -> None:
    session = ask(folder, "One?", "-t", target, "--agent", "clerk", "-a", "plan.md")
    ask(folder, "Two? @rule:hand", "--session", session)
    (folder / "plan.md").write_text("# Plan\n\nThe pier opens in June.\n", "utf-8")
    before = lamina("log", session, "--json", cwd=folder)[1]
    lamina("context", QUESTION, "--session", session, *arguments, "--wire", cwd=folder)
    assert lamina("log", session, "--json", cwd=folder)[1] == before
    shown = json.dumps(compare(folder, target, "--session", session, *arguments))
    assert "Only if asked for." in shown


def test_the_tools_of_servers_are_in_it(folder: Path) -> None:
    (folder / "words").write_text("Tells the tide.", "utf-8")
    arguments = [str(SERVER), "changing", str(folder / "words")]
    server = {"command": sys.executable, "args": arguments, "permission": "free"}
    (folder / "pier.json").write_text(json.dumps({"mcpServers": {"pier": server}}), "utf-8")
    shown = compare(folder, "openai:gpt-4o", "--mcp", "pier.json")
    assert [tool["function"]["name"] for tool in shown["tools"]] == ["read_result", "pier__echo"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("Q", "-a", "gone.md"),
        ("Q", "--active", "gone.md"),
        ("Q", "-a", "https://example.org/"),
        ("Q", "-w", "gone"),
        ("Q", "--agent", "nobody"),
        ("Q", "--agent", "clerk", "--project", "west"),
        ("Q", "--project", "east"),
        ("Q", "--trust"),
        ("Q", "--session", "none"),
        ("Q", "--in", "sea"),
        ("Q", "--mode", "qa", "--files"),
        ("Q", "--mode", "qa", "--mcp", "plan.md"),
        ("Q", "-t", "nobody:x"),
        ("Q", "--max-tokens", "0"),
        ("Q", "--mcp", "gone.json"),
        ("Q", "--system", "@gone.txt"),
        ("",),
    ],
    ids=" ".join,
)
def test_what_one_refuses_the_other_refuses_in_the_same_words(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    given = (*arguments, *(() if "-t" in arguments else ("-t", "openai:gpt-4o")))
    code, out, said = lamina("context", *given, cwd=folder)
    refused, _, words = lamina("ask", *given, cwd=folder)
    assert code == refused != 0
    assert out == ""
    assert said.replace("lamina context", "lamina ask") == words


def test_who_cannot_be_reached_is_no_reason_not_to_show_and_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAMINA_MODELS")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    code, out, said = lamina("context", "Q", "-t", "openai:gpt-4o", "--json", cwd=folder)
    assert (code, said) == (0, "")
    (warning,) = json.loads(out)["warnings"]
    assert warning.startswith("`lamina ask` would not send this: there is no key for 'openai'")
