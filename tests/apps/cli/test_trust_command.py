"""`lamina trust`, and who is asked when an agent is named (issue 16, A.3)."""

import io
import json
import sys
from pathlib import Path

import pytest
from tests.adapters.agents.files import write
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.test_ask_modes import ClientsFake
from tests.fakes.providers import ProviderFake
from tests.terminal import Terminal

ODD = str(Path(__file__).parents[2] / "adapters" / "tools" / "odd_server.py")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    entry = {
        "command": sys.executable, "args": ["./server.py"],
        "env": {"STARTS": str(tmp_path / "starts")},
    }  # fmt: skip
    return write(
        tmp_path / "clone",
        {
            ".mcp.json": json.dumps({"mcpServers": {"odd": entry}}),
            "server.py": f"import runpy\nrunpy.run_path({ODD!r}, run_name='__main__')\n",
            "AGENTS.md": "Be kind.",
        },
    )


def answer(
    clone: Path, *arguments: str, keys: str, question: str = "Trust its current contents?"
) -> str:
    """What a person sees who runs a command on a terminal and types that."""
    with Terminal([str(LAMINA), *arguments], cwd=clone, columns=200, is_forked=True) as terminal:
        terminal.wait_for(f"{question} [y/N]")
        terminal.type(keys)
        terminal.wait_for_end()
        return terminal.everything


def test_a_person_sees_what_would_run_trusts_it_and_takes_that_back(clone: Path) -> None:
    starts = clone.parent / "starts"
    shown = answer(clone, "trust", keys="y\r")
    assert f"runs {sys.executable} ./server.py" in shown
    assert f"with STARTS={starts}" in shown
    assert f"file {clone / 'server.py'} (" in shown
    assert "Trusted. You will be asked again when any of this changes." in shown
    assert "You trust its current contents." in output("trust", cwd=clone)
    assert "trusted" in output("trust", "--list", cwd=clone)
    write(clone, {"server.py": "raise SystemExit"})
    assert "changed since" in output("trust", "--list", cwd=clone)
    shown = answer(clone, "trust", keys="n\r")
    assert f"-  file {clone / 'server.py'} (" in shown
    assert f"+  file {clone / 'server.py'} (" in shown
    assert "It is not trusted." in shown
    assert str(clone) in output("trust", "--revoke", ".", cwd=clone)
    assert "is not trusted" in error("trust", "--revoke", ".", cwd=clone)
    assert "You trust no folders." in output("trust", "--list", cwd=clone)
    assert not starts.exists()


@pytest.mark.parametrize("keys", ["\r", "n\r", "yess\r", "\x04"])
def test_only_a_clear_yes_is_one(clone: Path, keys: str) -> None:
    assert "It is not trusted." in answer(clone, "trust", keys=keys)
    assert json.loads(output("trust", "--list", "--json", cwd=clone)) == []


def test_what_is_piped_in_is_nobodys_word(clone: Path) -> None:
    code, out, err = lamina("trust", cwd=clone)
    assert (code, "server odd" in out) == (1, True)
    assert "only a person can trust a folder" in err
    code, out, _ = lamina("trust", "--json", cwd=clone)
    folder = json.loads(out)
    assert (code, folder["standing"], folder["counts"]) == (1, "new", False)
    assert [Path(file["path"]).name for file in folder["files"]] == ["server.py"]
    # A program that holds its output is no terminal, whatever it types.
    with Terminal(["sh", "-c", f"yes | {LAMINA} trust"], cwd=clone) as terminal:
        assert terminal.wait_for_end() == 1
    assert json.loads(output("trust", "--list", "--json", cwd=clone)) == []


def test_an_agent_that_is_named_in_a_chat_is_asked_about_first(clone: Path) -> None:
    starts = clone.parent / "starts"
    chat = [str(LAMINA), "chat", "--agent", ".", "-m", "openai:gpt-5"]
    with Terminal(chat, cwd=clone, columns=200, is_forked=True) as terminal:
        terminal.wait_for("Trust its current contents? [y/N]")
        assert f"runs {sys.executable} ./server.py" in terminal.everything
        terminal.type("n\r")
        assert "! withheld: odd (untrusted): the folder" in terminal.say("/tools")
        assert not starts.exists()
        terminal.enter("/quit")
        terminal.wait_for_end()
    with Terminal(chat, cwd=clone, columns=200, is_forked=True) as terminal:
        terminal.wait_for("Trust its current contents? [y/N]")
        terminal.type("y\r")
        assert "odd · echo" in terminal.say("/tools")
        assert starts.exists()
        terminal.enter("/quit")
        terminal.wait_for_end()
    # It is not asked twice.
    with Terminal(chat, cwd=clone, columns=200, is_forked=True) as terminal:
        terminal.wait_for_prompt()
        assert "Trust it" not in terminal.everything


def test_ctrl_c_at_the_question_trusts_nothing_and_ends_the_command(clone: Path) -> None:
    ask = [str(LAMINA), "ask", "Hello?", "--agent", "."]
    with Terminal(ask, cwd=clone, columns=200, is_forked=True) as terminal:
        terminal.wait_for("Trust its current contents? [y/N]")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 130
    assert json.loads(output("trust", "--list", "--json", cwd=clone)) == []
    assert not (clone.parent / "starts").exists()


def test_a_script_says_so_for_one_command_and_nothing_is_remembered(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, provider = clone.parent / "starts", ProviderFake()
    monkeypatch.setattr(
        "lamina.apps.views.session_opener.Clients", lambda **_: ClientsFake(provider)
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for name in ("LAMINA_TRUST", "LAMINA_YES", "CI"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    ask = ("ask", "Hello?", "--agent", ".", "-m", "openai:gpt-4o")
    for flags in ((), ("--allow-tools",)):
        code, _, err = lamina(*ask, *flags, cwd=clone)
        assert (code, starts.exists()) == (0, False)
        assert "its servers (odd) are not started; see what it brings, and trust it" in err
        assert "Be kind." in str(provider.bodies[-1])
        assert "tools" not in provider.bodies[-1]
    code, _, err = lamina(*ask, "--trust", cwd=clone)
    assert (code, starts.exists(), "not started" in err) == (0, True, False)
    assert "odd__echo" in str(provider.bodies[-1]["tools"])
    assert json.loads(output("trust", "--list", "--json", cwd=clone)) == []


def test_trust_needs_something_to_trust(clone: Path) -> None:
    assert "--trust needs --agent" in error("ask", "Hello?", "--trust", cwd=clone)
    assert "cannot be combined" in error("trust", "--list", ".", cwd=clone, code=2)
    assert "--revoke needs a folder" in error("trust", "--revoke", cwd=clone, code=2)
