"""How a chat begins: which session, what is attached, and what is loaded for it."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.chats import answer, talk
from tests.apps.cli.inside import error
from tests.fakes.files import session_file

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.chat.startup import find_latest, read_attached
from lamina.apps.views.session_options import PromptOptions
from lamina.apps.wiring import default_store
from lamina.errors import UsageError


def test_the_latest_session_is_the_one_in_which_something_was_said_last(notes: Path) -> None:
    store = default_store(notes)
    assert anyio.run(find_latest, store) is None
    talk(notes, "One?", replies=[answer("1")])
    last = talk(notes, "Two?", replies=[answer("2")])
    # Opened and left without a word, and one that nobody can read.
    talk(notes)
    session_file(notes, "broken").write_bytes(b"\x00\xff\n")
    assert anyio.run(find_latest, store) == last.session.id


def test_what_is_attached_at_the_start_is_read_at_once(notes: Path) -> None:
    workspace = FolderWorkspace(notes)

    def attached(*paths: str, essential: tuple[str, ...] = ()) -> dict[str, bool]:
        prompt = PromptOptions(attach=paths, essential=essential)
        return anyio.run(read_attached, prompt, notes, workspace)[0]

    assert attached("plan.md") == {"plan.md": False}
    assert attached("plan.md", essential=("plan.md",)) == {"plan.md": True}
    assert attached(str(notes / "plan.md")) == {"plan.md": False}
    with pytest.raises(UsageError, match=r"cannot attach: gone\.md does not exist"):
        attached("gone.md")


def test_a_session_by_name_and_the_latest_exclude_one_another(notes: Path) -> None:
    said = error("chat", "--session", "x", "--continue", cwd=notes, code=2)
    assert "--session and --continue cannot be combined" in said


def test_an_unknown_session_model_or_path_is_an_error_before_anything_is_loaded(
    notes: Path,
) -> None:
    assert "no session 'x'" in error("chat", "--session", "x", cwd=notes)
    assert "target 'nope' is not 'provider:model'" in error("chat", "-m", "nope", cwd=notes)
    assert "gone.md does not exist" in error("chat", "-a", "gone.md", cwd=notes)
    assert anyio.run(default_store(notes).sessions) == ()


def test_what_only_a_terminal_needs_is_not_loaded_for_a_pipe() -> None:
    check = "import sys, lamina.apps.cli.chat.startup; sys.exit('prompt_toolkit' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
