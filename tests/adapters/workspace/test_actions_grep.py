"""Searching lines: what is found, what is said of the rest, and that it always ends."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in {
        "a.md": "Alpha\nbeta\ngamma\nALPHA beta\n",
        "notes/b.md": "nothing\r\nalpha.\r\n",
        "notes/c.py": "alpha = 1\n",
        ".hidden/d.md": "alpha\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    return tmp_path


@pytest.fixture
def actions(folder: Path) -> FileActions:
    return FileActions(Root(folder))


def test_case_is_ignored_unless_it_is_said_to_count(actions: FileActions) -> None:
    assert actions.grep("alpha") == snapshot("""\
a.md:1: Alpha
a.md:4: ALPHA beta
notes/b.md:2: alpha.
notes/c.py:1: alpha = 1\
""")
    assert actions.grep("ALPHA", ignore_case=False) == "a.md:4: ALPHA beta"


def test_finding_nothing_is_no_error(actions: FileActions) -> None:
    assert actions.grep("delta") == "(no matches in 3 files)"
    assert actions.grep("d.lta", regex=True) == "(no matches in 3 files)"
    assert actions.grep("alpha", glob="*.rs") == "(no matches in 0 files)"


def test_plain_text_is_taken_as_it_is(actions: FileActions) -> None:
    assert actions.grep("alpha.") == "notes/b.md:2: alpha."
    assert actions.grep("(") == "(no matches in 3 files)"


def test_a_regular_expression_is_matched_line_by_line(actions: FileActions) -> None:
    assert actions.grep("^alpha", regex=True, path="a.md") == "a.md:1: Alpha\na.md:4: ALPHA beta"
    assert actions.grep(r"a\s*=\s*\d", regex=True) == "notes/c.py:1: alpha = 1"
    assert actions.grep("^alpha", regex=True, ignore_case=False, glob="*.py").startswith("notes/c")


def test_a_search_can_be_kept_to_a_folder_a_file_or_a_glob(actions: FileActions) -> None:
    assert actions.grep("alpha", "notes").count("\n") == 1
    assert actions.grep("alpha", "notes/c.py") == "notes/c.py:1: alpha = 1"
    assert actions.grep("alpha", glob="*.py") == "notes/c.py:1: alpha = 1"
    assert actions.grep("alpha", "./notes/", glob="notes/*.md") == "notes/b.md:2: alpha."


def test_lines_around_are_shown_once(actions: FileActions) -> None:
    assert actions.grep("beta", context=1, path="a.md") == snapshot("""\
a.md-1- Alpha
a.md:2: beta
a.md-3- gamma
a.md:4: ALPHA beta
a.md-5- \
""")


def test_what_is_above_the_limit_is_counted(folder: Path, actions: FileActions) -> None:
    (folder / "many.md").write_text("alpha\n" * 250)
    result = actions.grep("alpha", limit=3).split("\n")
    assert len(result) == 4
    assert result[-1] == (
        "[251 more of 254 lines in 4 files that match; narrow the search by path or glob, or raise "
        "the limit]"
    )


def test_of_a_long_line_what_is_near_is_shown(folder: Path, actions: FileActions) -> None:
    (folder / "long.md").write_text("x" * 5000 + "needle" + "y" * 5000)
    result = actions.grep("NEEDLE")
    assert "xxx" + "needle" + "yyy" in result
    assert len(result) < 400


def test_what_was_not_searched_is_said(folder: Path, actions: FileActions) -> None:
    (folder / "bin.md").write_bytes(b"alpha\0")
    (folder / "latin.md").write_bytes(b"alpha \xe9\n")
    result = actions.grep("alpha", limit=1)
    assert result.endswith("[not searched: bin.md is not text]")
    assert "latin.md:1: alpha �" in actions.grep("alpha")


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b", r"(.*?,){20}z", r"(x+x+)+y"])
def test_a_hostile_expression_is_ended(folder: Path, pattern: str) -> None:
    (folder / "trap.md").write_text("a" * 60 + "!\n" + "1," * 60 + "\n" + "x" * 60 + "\n")
    actions = FileActions(Root(folder), seconds=0.3)
    with pytest.raises(UsageError, match=r"took longer than 0\.3 s and was ended"):
        actions.grep(pattern, regex=True)
    assert actions.grep("gamma") == "a.md:3: gamma"


@pytest.mark.parametrize("pattern", ["(", "[a", "a{99999999999}", "(?P<a", "*", "(" * 900, r"\1"])
def test_what_is_no_expression_is_said_to_be_none(actions: FileActions, pattern: str) -> None:
    with pytest.raises(UsageError, match="is no regular expression"):
        actions.grep(pattern, regex=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pattern": ""}, "empty"),
        ({"pattern": "a" * 1001}, "1,001 characters"),
        ({"pattern": "a\nb"}, "line by line"),
        ({"pattern": "a", "limit": 0}, "limit has to be 1 or more"),
        ({"pattern": "a", "context": 99}, "context 0 to 20"),
        ({"pattern": "a", "path": "no"}, "does not exist"),
        ({"pattern": "a", "path": "../"}, "not a path inside"),
        ({"pattern": "a", "path": ".hidden"}, "hidden"),
    ],
)
def test_a_search_that_cannot_be_is_an_error_in_words(
    actions: FileActions, options: dict[str, object], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        actions.grep(**options)  # type: ignore[arg-type]
