"""Lamina without extras, from its wheel in an empty environment."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.packaging.environment import Environment

# Everything that `pip install lamina-context` brings. A new line here is a decision.
BASE = {
    "lamina-context",
    "anyio", "idna", "typing-extensions",
    "jsonschema", "attrs", "jsonschema-specifications", "referencing", "rpds-py",
    "markdown-it-py", "mdurl",
    "msgspec",
    "platformdirs",
    "pyyaml",
    "splintr-rs",
    "typer", "annotated-doc", "pydantic", "pydantic-core", "annotated-types", "typing-inspection",
    "pygments", "rich", "shellingham",
}  # fmt: skip
LIMIT = 65_000_000

TALK = """
import anyio, sys
import lamina

async def main():
    session = await lamina.open_session(
        "talk", system="Answer briefly.", target="openai:gpt-5", agent="agent", workspace="."
    )
    async with session:
        for question in ("What is the tide?", "And tomorrow?"):
            turn = await session.prepare(question, attach=["tide.md"])
            assert turn.request()["messages"]
            reply = {"choices": [{"message": {"role": "assistant", "content": "Low."},
                     "finish_reason": "stop"}], "usage": {"prompt_tokens": 40,
                     "completion_tokens": 2}}
            turn = await turn.commit(reply)
            print(turn.answer, *turn.context.warnings)

anyio.run(main)
heavy = {"numpy", "prompt_toolkit", "pydantic", "typer", "rich", "openai"} & sys.modules.keys()
assert not heavy, heavy
"""
RULE = "---\ninclude: agent\ndescription: tides\n---\nSay when the water is high.\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.fixture(scope="module")
def talk(base: Environment) -> str:
    """What a script prints that prepares and commits two turns, with a rule that search would
    choose."""
    agent = {"agent/agent.yaml": "name: harbour\n", "agent/rules/tides.md": RULE}
    write(base.folder, {"tide.md": "Low at noon.", "talk.py": TALK, **agent})
    done = base.run("python", "talk.py")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_base_install_brings_just_these_packages(base: Environment) -> None:
    assert base.names() == BASE


def test_the_base_install_stays_small(base: Environment) -> None:
    assert base.size() < LIMIT


def test_a_script_prepares_and_commits_and_is_told_what_search_needs(talk: str) -> None:
    hint = "search is not installed: pip install 'lamina-context[search]'"
    # Once: it is no news for the second question.
    assert talk == f"Low. 1 items are chosen by search, and {hint}\nLow.\n"


@pytest.mark.parametrize(
    "command",
    [
        "--help", "--version", "info", "info --json", "sessions", "sessions --json",
        "log talk", "log talk --request last",
        "verify talk", "why talk", "export talk", "context hi -a tide.md", "context hi --files",
        "context hi --mode plan", "notes check", "notes query LIST", "notes tags",
        "agent check agent", "agent usage", "targets", "models list", "memory",
        "trust --list", "tools changes",
        "demo --no-model", "demo --show-script", "emulate openai --list-faults",
        "doctor", "doctor --sample", "doctor --sample --json", "doctor --sample --findings",
    ],
)  # fmt: skip
def test_what_needs_no_extra_works(talk: str, base: Environment, command: str) -> None:
    done = base.lamina(*command.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_chat_is_exported_and_imported(talk: str, base: Environment) -> None:
    assert base.lamina("export", "talk", "-o", "chat.md").returncode == 0
    done = base.lamina("import", "chat.md", "--json")
    assert (done.returncode, done.stderr) == (0, "")


def test_info_tells_what_is_missing_and_which_versions_are_here(base: Environment) -> None:
    info = json.loads(base.lamina("info", "--json").stdout)
    hints = {extra["extra"]: extra["hint"] for extra in info["extras"]}
    assert hints["chat"] == "pip install 'lamina-context[chat]'"
    assert all(hints.values())
    assert {"anyio", "msgspec", "typer"} <= info["packages"].keys()


def test_a_session_is_deleted(talk: str, base: Environment) -> None:
    assert base.lamina("export", "talk", "-o", "copy.md").returncode == 0
    assert base.lamina("import", "copy.md", "--session", "copy").returncode == 0
    done = base.lamina("sessions", "delete", "copy", "--yes")
    assert (done.returncode, done.stdout) == (0, "Deleted: 1 session.\n")


def test_a_request_without_search_says_that_no_tool_searches(talk: str, base: Environment) -> None:
    shown = json.loads(base.lamina("context", "hi", "--files", "--json").stdout)
    warnings = shown["context"]["warnings"]
    assert any("no tool searches the notes: search is not" in line for line in warnings)


MISSING = {
    "chat": "chat",
    "ask hi": "chat",
    "rpc": "chat",
    "demo": "chat",
    "ask hi --mode qa": "chat,search",
    "ask hi -m openai:gpt-5": "openai",
    "ask hi -m compatible:any": "openai",
    "ask hi -m anthropic:claude-opus-5": "anthropic",
    "chat -m gemini:gemini-3-pro": "gemini",
    "ask hi -m openai:gpt-5 --mcp mcp.json": "openai,mcp",
    "context hi --mode qa": "search",
    "context hi -a paper.pdf": "notes",
    "context hi -a https://example.org/ --allow-host example.org": "pages",
    "notes search tide": "search",
    "notes index": "search",
    "search tide": "search",
    "select tide": "search",
    "index --stats": "search",
    "tools list --mcp mcp.json": "mcp",
    "web --no-open": "web",
    "emulate openai": "emulate",
    "emulate openai --answers model": "emulate,chat",
    "models pull minilm": "search",
    "models pull smollm2-135m": "chat",
}


@pytest.mark.parametrize("command", MISSING)
def test_a_command_names_its_extra_before_it_fetches_or_writes(
    base: Environment, tmp_path: Path, command: str
) -> None:
    fresh = replace(base, data=tmp_path / "data", cache=tmp_path / "cache", folder=tmp_path)
    write(tmp_path, {"mcp.json": '{"mcpServers": {}}', "paper.pdf": "%PDF-1.4"})
    done = fresh.lamina(*command.split())
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(f": pip install 'lamina-context[{MISSING[command]}]'")
    assert not done.stdout
    assert fresh.kept_files() == []


OPENERS = {
    "open_chat()": "chat",
    "open_chat('new')": "chat",
    "open_agent(target='openai:gpt-5')": "openai",
    "open_agent(agent='agent', trust=True)": "anthropic",
    "open_plan()": "chat",
    "open_agent(target='anthropic:claude-opus-5', mcp='mcp.json')": "anthropic,mcp",
    "open_qa(target='openai:gpt-5')": "openai,search",
    "open_workspace('agent')": "search",
}


@pytest.mark.parametrize("opener", OPENERS)
def test_a_runner_names_its_extra_before_there_is_a_session(
    base: Environment, tmp_path: Path, opener: str
) -> None:
    fresh = replace(base, data=tmp_path / "data", cache=tmp_path / "cache", folder=tmp_path)
    agent = "name: a\nmodel: anthropic:claude-opus-5\n"
    write(tmp_path, {"agent/agent.yaml": agent, "mcp.json": '{"mcpServers": {}}'})
    script = (
        "import anyio, lamina\n"
        "from lamina.errors import ExtraMissing\n"
        f"async def main():\n    await lamina.{opener}\n"
        "try:\n    anyio.run(main)\n"
        "except ExtraMissing as error:\n    print(error.code, error)\n"
    )
    done = fresh.run("python", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("extra_missing ")
    assert f"pip install 'lamina-context[{OPENERS[opener]}]'" in done.stdout
    assert fresh.kept_files() == []
