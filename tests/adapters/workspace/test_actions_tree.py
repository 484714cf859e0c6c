"""The tree of a workspace, as a model asks for it."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lamina.adapters.files.root import Root
from lamina.adapters.tools.functions import FunctionTool
from lamina.adapters.workspace.file_actions import view as trees
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.adapters.workspace.file_actions.view import MAX_TREE_LINES as MAX_LINES
from lamina.adapters.workspace.file_actions.view import show_tree
from lamina.errors import UsageError


def make(folder: Path, *paths: str) -> FileActions:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            file.write_text("x")
        else:
            file.mkdir(exist_ok=True)
    return FileActions(Root(folder))


def test_the_tree_shows_folders_with_their_counts_and_leaves_hidden_files_out(
    tmp_path: Path,
) -> None:
    actions = make(
        tmp_path, "readme.md", "sea/harbour.md", "sea/logs/2026/may.md", "sea/logs/2026/june.md",
        "empty/", ".git/config", ".lamina/trash/x", ".env",
    )  # fmt: skip
    (tmp_path / "link").symlink_to(tmp_path)
    assert actions.tree() == snapshot("""\
./ (4 files)
  empty/ (empty)
  sea/ (3 files)
    logs/ (2 files)
      2026/ (2 files)
    harbour.md
  readme.md\
""")
    assert actions.tree("sea/logs", depth=5) == snapshot("""\
sea/logs/ (2 files)
  2026/ (2 files)
    june.md
    may.md\
""")
    assert actions.tree(".", depth=1) == snapshot("""\
./ (4 files)
  empty/ (empty)
  sea/ (3 files)
  readme.md\
""")


def test_a_large_folder_shows_its_first_names_and_counts_the_others(tmp_path: Path) -> None:
    names = [f"pictures/{number:03}.png" for number in range(60)]
    actions = make(tmp_path, *names, "pictures/zz.txt", "pictures/zz")
    lines = actions.tree().split("\n")
    assert lines[:3] == ["./ (62 files)", "  pictures/ (62 files)", "    000.png"]
    assert lines[-1] == "    [22 more files: 20 png, 1 no suffix, 1 txt]"


def test_what_is_asked_for_wrongly_is_told(tmp_path: Path) -> None:
    actions = make(tmp_path, "a.md")
    for path, depth, problem in (
        ("a.md", 3, "a.md is a file"),
        ("gone", 3, "gone does not exist"),
        ("../", 3, "workspace|outside|leaves|\\.\\."),
        ("", 0, "`depth` is from 1 to 20, not 0"),
        ("", 99, "`depth` is from 1 to 20, not 99"),
    ):
        with pytest.raises(UsageError, match=problem):
            actions.tree(path, depth)


def test_a_name_cannot_draw_lines_of_its_own(tmp_path: Path) -> None:
    actions = make(tmp_path, "a\nb.md")
    assert len(actions.tree().split("\n")) == 2


def test_a_tree_that_is_too_long_is_shown_less_deep_and_says_so() -> None:
    files = [f"{a}/{b}/{c}.md" for a in range(20) for b in range(20) for c in range(5)]
    tree = show_tree("", (), files, 3)
    assert tree.count("\n") < MAX_LINES
    assert tree.endswith("[shown 1 level deep: more would be too long; name a folder]")


def test_a_folder_without_end_is_not_walked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MAX_FILES", 100)
    endless = (f"{number}.md" for number in iter(int, 1))
    tree = show_tree("", (), endless, 3)
    assert tree.endswith("[there are more than 100 files; the others are not counted]")


PATHS = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5).map("/".join),
                 max_size=200)  # fmt: skip


@given(PATHS, st.integers(1, 6))
def test_every_file_is_named_or_counted(paths: list[str], depth: int) -> None:
    files = sorted({f"{path}.md" for path in paths})
    tree = show_tree("", (), files, depth)
    lines = tree.split("\n")
    assert len(lines) <= MAX_LINES + 1
    count = "empty" if not files else "1 file" if len(files) == 1 else f"{len(files)} files"
    assert lines[0] == f"./ ({count})"
    if depth == 6 and "[" not in tree:
        assert sum(line.endswith(".md") for line in lines) == len(files)


def test_the_tool_is_named_as_the_original_names_it(tmp_path: Path) -> None:
    tool = FunctionTool(make(tmp_path, "a.md").tree, name="getFileTree", permission="free")
    output = anyio.run(tool.run, {"depth": 1})
    assert (tool.name, output.text) == ("getFileTree", "./ (1 file)\n  a.md")
