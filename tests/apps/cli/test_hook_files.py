"""Hooks from a file on the command line: only once a person trusts it as it is."""

import io
import json
import sys
from pathlib import Path

import pytest
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.test_ask_modes import ClientsFake
from tests.fakes.providers import ProviderFake, saying
from tests.terminal import Terminal

HOOKS = """
from pathlib import Path
from lamina import Hooks
from lamina.ops import SystemPartSet

Path("ran").touch()
hooks = Hooks()


@hooks.context
def tone(event):
    return SystemPartSet(name="tone", text="Be brief.", reason="people are busy")
"""
CONTEXT = ("context", "Q", "-m", "openai:gpt-4o", "--hooks", "hooks.py")
ASK = ("ask", "Q", "-m", "openai:gpt-4o", "--hooks", "hooks.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "hooks.py").write_text(HOOKS, "utf-8")
    # What a file writes where it runs is not left behind.
    monkeypatch.chdir(tmp_path)
    return folder


def answer(folder: Path, *arguments: str, keys: str) -> str:
    """What a person sees who runs a command on a terminal and types that."""
    with Terminal([str(LAMINA), *arguments], cwd=folder, columns=120, is_forked=True) as terminal:
        terminal.wait_for("Trust its current contents? [y/N]")
        terminal.type(keys)
        terminal.wait_for_end()
        return terminal.everything


def sessions_of(folder: Path) -> list[str]:
    sessions: list[str] = json.loads(output("sessions", "--json", cwd=folder))
    return sessions


@pytest.mark.parametrize("command", [CONTEXT, ASK, ("rpc", "--hooks", "hooks.py")])
def test_a_file_that_nobody_trusts_is_not_run_and_leaves_no_session(
    folder: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_TARGET", "openai:gpt-4o")
    said = error(*command, cwd=folder)
    assert "hooks.py' is not trusted: its hooks are not run" in said
    assert f"`lamina trust {folder / 'hooks.py'}`" in said
    assert "--trust" in said
    assert not (folder / "ran").exists()
    assert sessions_of(folder) == []


def test_a_person_trusts_a_file_and_is_asked_again_when_it_changes(folder: Path) -> None:
    shown = answer(folder, "trust", "hooks.py", keys="y\r")
    assert f"hooks {folder / 'hooks.py'}" in shown
    assert "12 lines of Python (" in shown
    assert not (folder / "ran").exists()
    assert "Be brief." in output(*CONTEXT, cwd=folder)
    assert (folder / "ran").exists()
    assert "You trust its current contents." in output("trust", "hooks.py", cwd=folder)
    assert "trusted" in output("trust", "--list", cwd=folder)
    (folder / "hooks.py").write_text(HOOKS.replace("brief", "long"), "utf-8")
    assert "changed since you trusted it" in error(*CONTEXT, cwd=folder)
    assert "changed since" in output("trust", "--list", cwd=folder)
    shown = answer(folder, "trust", "hooks.py", keys="n\r")
    assert "It has changed since you trusted it:" in shown
    assert "It is not trusted." in shown
    (folder / "hooks.py").write_text(HOOKS, "utf-8")
    assert "Be brief." in output(*CONTEXT, cwd=folder)
    assert "No longer trusted" in output("trust", "--revoke", "hooks.py", cwd=folder)
    assert "is not trusted" in error(*CONTEXT, cwd=folder)


def test_trust_for_one_command_is_kept_for_no_other(folder: Path) -> None:
    assert "Be brief." in output(*CONTEXT, "--trust", cwd=folder)
    assert "is not trusted" in error(*CONTEXT, cwd=folder)
    code, out, _ = lamina("trust", "hooks.py", "--json", cwd=folder)
    folder_trust = json.loads(out)
    assert (code, folder_trust["standing"]) == (1, "new")
    assert folder_trust["hooks"] == [str(folder / "hooks.py")]


def test_ask_runs_the_hooks_and_the_session_goes_on_without_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ProviderFake(saying("Yes."), saying("Still."))
    monkeypatch.setattr(
        "lamina.apps.views.session_opener.Clients", lambda **_: ClientsFake(provider)
    )
    code, out, err = lamina(*ASK, "--trust", cwd=folder)
    assert (code, out) == (0, "Yes.\n")
    session = err.split()[1]
    # What hooks decided is in the journal: nothing of theirs is run to go on.
    code, out, _ = lamina("ask", "And now?", "-s", session, cwd=folder)
    assert (code, out) == (0, "Still.\n")
    for body in provider.bodies:
        assert body["messages"][0]["content"].endswith("Be brief.")
    assert "people are busy (by hooks.tone)" in output("log", session, cwd=folder)


def test_several_files_run_in_the_order_in_which_they_are_named(folder: Path) -> None:
    for name in ("b", "a"):
        text = HOOKS.replace("tone", name).replace("Be brief.", f"I am {name}.")
        (folder / f"{name}.py").write_text(text, "utf-8")
    shown = output(
        "context", "Q", "-m", "openai:gpt-4o", "--hooks", "b.py", "--hooks", "a.py", "--trust",
        cwd=folder,
    )  # fmt: skip
    assert shown.index("I am b.") < shown.index("I am a.")


BROKEN = {
    "no python": ("hooks = (\n", "SyntaxError", "(line 1 of 'hooks.py')"),
    "fails": ("x = 1\n\n1 / 0\n", "ZeroDivisionError", "(line 3 of 'hooks.py')"),
    "fails further in": ("def f():\n    return {}['x']\n\nf()\n", "KeyError", "(line 2 of"),
    "imports a neighbour": ("import beside\n", "ModuleNotFoundError", "(line 1 of 'hooks.py')"),
    "leaves": ("raise SystemExit(3)\n", "SystemExit: 3", "(line 1 of 'hooks.py')"),
    "no hooks": ("x = 1\n", "defines no `hooks`", ""),
    "other hooks": ("hooks = 7\n", "defines no `hooks`", ""),
    "empty hooks": ("from lamina import Hooks\nhooks = Hooks()\n", "registers nothing", ""),
    "null": ("\0", "Error", ""),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_with_a_file_is_named_with_its_line(folder: Path, broken: str) -> None:
    text, problem, line = BROKEN[broken]
    (folder / "hooks.py").write_text(text, "utf-8")
    (folder / "beside.py").write_text("raise SystemExit", "utf-8")
    said = error(*CONTEXT, "--trust", cwd=folder)
    assert said.startswith("error: hook 'hooks.py': ")
    assert problem in said
    assert line in said
    assert sessions_of(folder) == []


def test_what_goes_wrong_in_a_hook_is_named_with_its_line(folder: Path) -> None:
    text = HOOKS.replace("return SystemPartSet", 'event.items["x"]; return SystemPartSet')
    (folder / "hooks.py").write_text(text, "utf-8")
    said = error(*CONTEXT, "--trust", cwd=folder)
    assert "hook 'hooks.tone': TypeError: " in said
    assert "(line 12 of 'hooks.py')" in said


@pytest.mark.parametrize("name", ["gone.py", "."])
def test_a_file_that_is_none_is_refused(folder: Path, name: str) -> None:
    said = error("context", "Q", "-m", "openai:gpt-4o", "--hooks", name, cwd=folder)
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1


def test_a_file_that_changes_while_a_person_looks_at_it_runs_as_it_was_shown(
    folder: Path,
) -> None:
    from lamina.apps.wiring.hook_files import load_hook_file, read_hook_file

    file = read_hook_file(folder / "hooks.py", folder, trust=True)
    (folder / "hooks.py").write_text("raise SystemExit", "utf-8")
    (hook,) = load_hook_file(file).context_hooks
    assert hook.name == "hooks.tone"


def test_trust_alone_is_refused(folder: Path) -> None:
    said = error("context", "Q", "-m", "openai:gpt-4o", "--trust", cwd=folder)
    assert "--trust needs --agent or --hooks" in said


def test_dataclasses_work_in_a_file(folder: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text += "@dataclass\nclass Row:\n    name: str\n" + HOOKS
    (folder / "hooks.py").write_text(text, "utf-8")
    assert "Be brief." in output(*CONTEXT, "--trust", cwd=folder)
