"""Each extra, from the wheel in an environment of its own. `make test` tries one, `make long` all.

Law: with its extra, a command goes past the point at which it would have named it.
"""

import os
import tomllib
from pathlib import Path

import pytest
from tests.adapters.workspace.test_pdf_text import make_pdf
from tests.packaging.environment import ROOT, install

from lamina.adapters.files.extras import DISTRIBUTION, REQUIREMENTS, install_hint, require

IS_LONG = os.environ.get("LAMINA_EXTRAS") == "long"

# By extra: what is run, and a part of what it then says. Nothing of it needs a network.
COMMANDS: dict[str, dict[str, str]] = {
    "chat": {"ask hi -m local:./broken.gguf": "broken.gguf"},
    "openai": {"ask hi -m openai:gpt-5": "no key for 'openai'"},
    "anthropic": {"ask hi -m anthropic:claude-opus-5": "no key for 'anthropic'"},
    "gemini": {"ask hi -m gemini:gemini-3-pro": "no key for 'gemini'"},
    "search": {
        "notes search tide --lexical": "tide.md",
        "select tide --tools tools.json --lexical": "tides",
        "index --stats": "chunks",
    },
    "notes": {
        "context hi -a paper.pdf": "The water is high",
        "notes search tide --lexical": "tide.md",
    },
    "pages": {"context hi -a http://127.0.0.1:9/ --allow-host 127.0.0.1": "127.0.0.1"},
    "mcp": {"tools list --mcp mcp.json": "names no servers"},
    "web": {"web no-such-folder --no-open": "no-such-folder"},
    "emulate": {"emulate openai --fault nonsense": "nonsense"},
    "keyring": {},
}


def project() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return {name: extras[name] for name in extras if not name.startswith(("bench", "dev"))}


def test_the_table_of_needs_names_every_extra_and_no_other() -> None:
    extras = {requirement.extra for requirement in REQUIREMENTS.values()}
    assert extras == project().keys() - {"all"} == COMMANDS.keys()


def test_all_holds_every_extra() -> None:
    (everything,) = project()["all"]
    names = everything.removeprefix(f"{DISTRIBUTION}[").removesuffix("]").split(",")
    # Search comes with the notes.
    assert {*names, "search"} == COMMANDS.keys()
    assert f"{DISTRIBUTION}[search]" in project()["notes"]


def test_the_page_on_installing_explains_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    for extra in project():
        assert f"| `{extra}` |" in page


def test_hints_name_each_extra_once() -> None:
    assert install_hint("llamacpp", "line_editor") == "pip install 'lamina-context[chat]'"
    assert install_hint("pdf", "pages") == "pip install 'lamina-context[notes,pages]'"


def test_what_is_installed_is_not_refused() -> None:
    require("search", "llamacpp", "line_editor", "mcp", "emulator")


@pytest.mark.parametrize("extra", [*COMMANDS, "all"] if IS_LONG else ["emulate"])
def test_an_extra_brings_what_its_commands_need(wheel: Path, tmp_path: Path, extra: str) -> None:
    environment = install(wheel, tmp_path, extra)
    folder = environment.folder
    (folder / "broken.gguf").write_bytes(b"rubbish")
    (folder / "mcp.json").write_text('{"mcpServers": {}}')
    (folder / "tide.md").write_text("The tide is low at noon.")
    (folder / "paper.pdf").write_bytes(make_pdf("The water is high."))
    (folder / "tools.json").write_text('[{"name": "tides", "description": "Tells the tide."}]')
    names = COMMANDS if extra == "all" else (extra,)
    for name in names:
        for command, part in COMMANDS[name].items():
            done = environment.lamina(*command.split())
            said = done.stdout + done.stderr
            assert "not installed" not in said, said
            assert part in said, said
    needs = [need for need, what in REQUIREMENTS.items() if what.extra in names]
    script = f"from lamina.adapters.files.extras import require; require(*{needs!r})"
    done = environment.run("python", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    print(f"{extra}: {environment.size() / 1e6:.0f} MB, {', '.join(sorted(environment.names()))}")  # noqa: T201
