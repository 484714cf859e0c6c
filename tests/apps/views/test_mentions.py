"""Mentions in a message: what they name, and how they are written."""

from pathlib import Path

import anyio
import pytest

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.views.mentions import find_mentions, mention, unfinished_mention, workspace_path


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "plan.md").write_text("x", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "paths", "unknown"),
    [
        ("@plan.md", ["plan.md"], []),
        ("See @plan.md.", ["plan.md"], []),
        ("(@plan.md, @plan.md?)", ["plan.md"], []),
        ('@"a b.md" and [@in/deep.txt]', ["a b.md", "in/deep.txt"], []),
        ("first\n@plan.md", ["plan.md"], []),
        ("me@plan.md", [], []),
        ("@ plan.md", [], []),
        ("ask @bob!", [], ["bob"]),
        ("@gone.md @a/b", ["gone.md", "a/b"], []),
        ("@ends.with.dot.", ["ends.with.dot."], []),
    ],
)
def test_mentions_name_paths(notes: Path, text: str, paths: list[str], unknown: list[str]) -> None:
    (notes / "in").mkdir()
    for name in ("a b.md", "in/deep.txt", "ends.with.dot."):
        (notes / name).write_text("x", "utf-8")
    found = anyio.run(find_mentions, text, FolderWorkspace(notes), notes)
    assert (list(found.paths), list(found.unknown)) == (paths, unknown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@", ("", 1)),
        ("see @pl", ("pl", 3)),
        ('see @"a b', ("a b", 5)),
        ("me@pl", None),
        ("@pl ", None),
        ("plain", None),
    ],
)
def test_a_mention_that_is_being_typed_is_found(text: str, found: tuple[str, int] | None) -> None:
    assert unfinished_mention(text) == found


def test_a_path_is_mentioned_so_that_it_is_found_again(notes: Path) -> None:
    for name in ("plain.md", "a b.md", "odd.", "ünï.md"):
        (notes / name).write_text("x", "utf-8")
        text = f"What of {mention(name)}?"
        assert anyio.run(find_mentions, text, FolderWorkspace(notes), notes).paths == (name,)


def test_a_path_from_the_root_of_the_machine_is_taken_if_it_is_inside(notes: Path) -> None:
    assert workspace_path(str(notes / "plan.md"), notes) == "plan.md"
    assert workspace_path("plan.md", notes) == "plan.md"
    assert workspace_path("/etc/hosts", notes) == "/etc/hosts"
