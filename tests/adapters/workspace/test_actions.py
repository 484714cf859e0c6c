"""What a model may do in a workspace, and what it is told when it may not (behaviours 23, 24)."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from lamina.adapters.files.root import Root
from lamina.adapters.tools.functions import FunctionTool
from lamina.adapters.workspace.file_actions.actions import WORKSPACE_PERSONA, FileActions
from lamina.adapters.workspace.file_actions.view import LONGEST_LINE, MAX_ENTRIES, MAX_LINES
from lamina.errors import UsageError

TOOLS = ("ls", "read", "write", "edit", "touch", "mv", "rm", "grep", "undo")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("one\ntwo\nthree\n")
    return tmp_path


@pytest.fixture
def actions(folder: Path) -> FileActions:
    return FileActions(Root(folder))


def short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def refused(act: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(UsageError) as caught:
        act(*args, **kwargs)
    return str(caught.value)


# -- edit ------------------------------------------------------------------------------------


def test_an_edit_replaces_one_place_and_tells_the_new_hash(
    folder: Path, actions: FileActions
) -> None:
    message = actions.edit("notes/a.md", "two", "2")
    assert (folder / "notes" / "a.md").read_text() == "one\n2\nthree\n"
    after = short(b"one\n2\nthree\n")
    assert message.startswith(f"edited notes/a.md: 12 bytes, hash {after}; undo id")
    assert message.endswith("(1 place, first in line 2)")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("four", "4", "is not there"),
        ("t", "T", "is there 2 times (first in lines 2, 3)"),
        ("", "x", "is empty"),
        ("two", "two", "nothing would change"),
        ("TWO", "2", "in other case"),
        ("one two", "2", "with other blanks or line breaks"),
        ("two\nfour", "2", "its first line stands in 1 line (first in line 2)"),
        ("two", "\ud800", "half a character"),
        ("two", "a\0b", "NUL"),
    ],
)
def test_an_edit_that_is_not_clear_leaves_the_file_untouched(
    folder: Path, actions: FileActions, old: str, new: str, problem: str
) -> None:
    before = (folder / "notes" / "a.md").stat()
    assert problem in refused(actions.edit, "notes/a.md", old, new)
    after = (folder / "notes" / "a.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (folder / "notes" / "a.md").read_text() == "one\ntwo\nthree\n"


def test_places_that_overlap_are_several(folder: Path, actions: FileActions) -> None:
    (folder / "b.md").write_text("aaa")
    assert "is there 2 times" in refused(actions.edit, "b.md", "aa", "b")


def test_every_place_is_replaced_if_that_is_asked_for(folder: Path, actions: FileActions) -> None:
    assert "(2 places, first in lines 2, 3)" in actions.edit(
        "notes/a.md", "t", "T", replace_all=True
    )
    assert (folder / "notes" / "a.md").read_text() == "one\nTwo\nThree\n"


def test_a_stale_hash_is_refused(folder: Path, actions: FileActions) -> None:
    stale = short(b"something else")
    message = refused(actions.edit, "notes/a.md", "two", "2", read_hash=stale)
    now = short(b"one\ntwo\nthree\n")
    assert f"changed since it was read (its hash is {now}, not {stale})" in message
    assert (folder / "notes" / "a.md").read_text() == "one\ntwo\nthree\n"


def test_a_forgotten_hash_protects_all_the_same(folder: Path, actions: FileActions) -> None:
    actions.read("notes/a.md", 1, 1)
    (folder / "notes" / "a.md").write_text("one\ntwo\nby a person\n")
    assert "read it again" in refused(actions.edit, "notes/a.md", "two", "2")
    assert "read it again" in refused(actions.write, "notes/a.md", "x", overwrite=True)
    actions.read("./notes//a.md")
    actions.edit("notes/a.md", "two", "2")
    actions.edit("notes/a.md", "2", "zwei")  # its own change is known
    assert (folder / "notes" / "a.md").read_text() == "one\nzwei\nby a person\n"


def test_what_was_read_is_known_under_a_new_name(folder: Path, actions: FileActions) -> None:
    actions.read("notes/a.md")
    actions.mv("notes", "texts")
    (folder / "texts" / "a.md").write_text("two, by a person")
    assert "read it again" in refused(actions.edit, "texts/a.md", "two", "2")


@pytest.mark.parametrize("wrong", ["zzzzzzzzzzzz", "abc", "ABCDEF012345", "0" * 65])
def test_what_is_no_hash_is_said_to_be_none(actions: FileActions, wrong: str) -> None:
    assert "is not a hash" in refused(actions.edit, "notes/a.md", "two", "2", read_hash=wrong)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc", "b", "x\ny", b"a\r\nx\r\ny\r\nc"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "z", b"z\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "b\n", "z\n", b"a\r\nz\nc\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("ä\u2028\x0cb\x85".encode(), "b", "c", "ä\u2028\x0cc\x85".encode()),
    ],
)
def test_the_rest_of_a_file_stays_byte_for_byte(
    folder: Path, actions: FileActions, before: bytes, old: str, new: str, after: bytes
) -> None:
    (folder / "x.md").write_bytes(before)
    actions.edit("x.md", old, new)
    assert (folder / "x.md").read_bytes() == after


@pytest.mark.parametrize("data", [b"caf\xe9 two", b"two\0", "two".encode("utf-16")])
def test_what_is_no_utf_8_text_is_not_edited(
    folder: Path, actions: FileActions, data: bytes
) -> None:
    (folder / "x.md").write_bytes(data)
    assert "is not UTF-8 text and is not edited" in refused(actions.edit, "x.md", "two", "2")
    assert (folder / "x.md").read_bytes() == data


def test_an_edit_keeps_the_mode_of_a_file(folder: Path, actions: FileActions) -> None:
    os.chmod(folder / "notes" / "a.md", 0o750)
    actions.edit("notes/a.md", "two", "2")
    assert (folder / "notes" / "a.md").stat().st_mode & 0o777 == 0o750


# -- write, touch ----------------------------------------------------------------------------


def test_a_file_is_written_with_the_folders_it_needs(folder: Path, actions: FileActions) -> None:
    assert actions.write("x/y/z.md", "text").startswith("made x/y/z.md: 4 bytes, hash")
    assert (folder / "x" / "y" / "z.md").read_bytes() == b"text"


def test_a_file_is_not_written_over_unless_that_is_asked_for(
    folder: Path, actions: FileActions
) -> None:
    assert "exists already (14 bytes)" in refused(actions.write, "notes/a.md", "new")
    assert (folder / "notes" / "a.md").read_text() == "one\ntwo\nthree\n"
    assert actions.write("notes/a.md", "new", overwrite=True).startswith("replaced notes/a.md")
    assert (folder / "notes" / "a.md").read_text() == "new"


def test_writing_for_a_file_that_is_gone_is_refused(folder: Path, actions: FileActions) -> None:
    (folder / "notes" / "a.md").unlink()
    message = refused(actions.write, "notes/a.md", "new", True, short(b"one\ntwo\nthree\n"))
    assert "it is gone" in message
    assert not (folder / "notes" / "a.md").exists()


@pytest.mark.parametrize("path", ["x/", "a\nb.md", "notes", "notes/a.md/b.md", ".x", "x/.y/z.md"])
def test_what_is_no_name_for_a_file_is_not_written(actions: FileActions, path: str) -> None:
    refused(actions.write, path, "x", True)
    refused(actions.touch, path)


def test_touch_makes_an_empty_file_and_leaves_one_that_is_there(
    folder: Path, actions: FileActions
) -> None:
    os.utime(folder / "notes" / "a.md", (1, 1))
    actions.touch("notes/a.md")
    actions.touch("new.md")
    assert (folder / "notes" / "a.md").read_text() == "one\ntwo\nthree\n"
    assert (folder / "notes" / "a.md").stat().st_mtime > 1
    assert (folder / "new.md").read_bytes() == b""


# -- mv, rm ----------------------------------------------------------------------------------


def test_a_file_and_a_folder_are_moved(folder: Path, actions: FileActions) -> None:
    actions.mv("notes/a.md", "notes/b.md")
    actions.mv("notes", "old/texts/")
    assert (folder / "old" / "texts" / "b.md").read_text() == "one\ntwo\nthree\n"
    assert not (folder / "notes").exists()


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("notes/a.md", "b.md", "exists already"),
        ("notes", "b.md", "exists already"),
        ("b.md", "notes", "exists already"),
        ("notes", "empty", "exists already"),
        ("notes", "notes/inner", "into itself"),
        ("notes", "notes/a.md/x", "into itself"),
        ("notes/a.md", "notes/a.md", "into itself"),
        ("no.md", "x.md", "does not exist"),
        ("notes/a.md", "b.md/c.md", "b.md exists already and is no folder"),
        ("notes/a.md", "../x.md", "not a path inside"),
    ],
)
def test_a_move_that_cannot_be_moves_nothing(
    folder: Path, actions: FileActions, source: str, target: str, problem: str
) -> None:
    (folder / "b.md").write_text("b")
    (folder / "empty").mkdir()
    assert problem in refused(actions.mv, source, target)
    assert (folder / "notes" / "a.md").read_text() == "one\ntwo\nthree\n"
    assert (folder / "b.md").read_text() == "b"
    assert list((folder / "empty").iterdir()) == []


def test_a_folder_that_is_not_empty_is_not_removed(folder: Path, actions: FileActions) -> None:
    (folder / "hid").mkdir()
    (folder / "hid" / ".keep").touch()
    assert "notes is not empty (1 entry" in refused(actions.rm, "notes")
    assert "hid is not empty (1 entry, hidden ones included)" in refused(actions.rm, "hid")
    assert (folder / "notes" / "a.md").exists()
    assert (folder / "hid" / ".keep").exists()


def test_a_link_is_listed_and_left_alone(folder: Path, actions: FileActions) -> None:
    (folder / "link.md").symlink_to("notes/a.md")
    assert actions.ls() == "link.md  (a link; links are not followed)\nnotes/"
    for act in (actions.read, actions.rm, actions.touch):
        assert "links are not followed" in refused(act, "link.md")
    assert "links are not followed" in refused(actions.mv, "link.md", "x.md")
    assert (folder / "link.md").is_symlink()


# -- ls, read --------------------------------------------------------------------------------


def test_a_folder_is_listed_without_what_is_hidden(folder: Path, actions: FileActions) -> None:
    (folder / ".git").mkdir()
    (folder / "b.md").write_text("b" * 1234)
    os.mkfifo(folder / "pipe")
    assert actions.ls() == "b.md  1,234\nnotes/\npipe  (not a regular file)"
    assert actions.ls(recursive=True) == "b.md  1,234\nnotes/a.md  14"
    assert actions.ls("notes/") == "a.md  14"
    assert "is a file" in refused(actions.ls, "b.md")


def test_a_name_with_a_line_break_stays_on_its_line(folder: Path, actions: FileActions) -> None:
    (folder / "a\nb.md").touch()
    assert actions.ls() == "a\\u000ab.md  0\nnotes/"


def test_a_long_list_says_what_is_left(folder: Path, actions: FileActions) -> None:
    for number in range(MAX_ENTRIES + 7):
        (folder / "notes" / f"{number:05}.md").touch()
    assert actions.ls("notes").endswith("[8 more of 508; list a folder further down]")


def test_a_file_is_read_with_its_hash(actions: FileActions) -> None:
    assert actions.read("notes/a.md") == snapshot("""\
notes/a.md: lines 1-3 of 3, hash b6285c57e879
one
two
three\
""")
    assert actions.read("notes/a.md", 2, 2) == snapshot("""\
notes/a.md: lines 2-2 of 3, hash b6285c57e879
two\
""")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "x.md: empty, hash e3b0c44298fc"),
        (b"a", "x.md: lines 1-1 of 1, hash ca978112ca1b, no line break at the end\na"),
        (b"\n", "x.md: lines 1-1 of 1, hash 01ba4719c80b\n"),
        (b"a\r\nb\r\n", "x.md: lines 1-2 of 2, hash {}, line ends are CRLF, which edit keeps\n"
         "a\nb"),
        (b"\xe9\n", "x.md: lines 1-1 of 1, hash {}, not UTF-8; what cannot be read is shown as �"
         "\n�"),
        (b"\xef\xbb\xbfa\n", "x.md: lines 1-1 of 1, hash {}\na"),
    ],
)  # fmt: skip
def test_what_is_odd_about_a_file_is_said(
    folder: Path, actions: FileActions, data: bytes, shown: str
) -> None:
    (folder / "x.md").write_bytes(data)
    assert actions.read("x.md") == shown.format(short(data))


@pytest.mark.parametrize(("start", "end"), [(0, None), (4, None), (3, 2), (-1, 1), (9, 12)])
def test_lines_that_are_not_there_are_an_error(
    actions: FileActions, start: int, end: int | None
) -> None:
    assert "notes/a.md has 3 lines" in refused(actions.read, "notes/a.md", start, end)


def test_what_is_cut_off_is_said(folder: Path, actions: FileActions) -> None:
    (folder / "x.md").write_text("".join(f"{number}\n" for number in range(1, 2501)))
    message = actions.read("x.md").split("\n")
    assert len(message) == MAX_LINES + 2
    assert message[-2:] == ["1000", "[1,500 more lines of 2,500; read on with start = 1001]"]
    assert actions.read("x.md", 1001).split("\n")[1] == "1001"
    (folder / "y.md").write_text("a" * (LONGEST_LINE + 5))
    assert actions.read("y.md").endswith("a [… 5 more characters in this line]")


@pytest.mark.parametrize("path", ["no.md", "notes", "../x", "/etc/passwd", ".git/config", "bin"])
def test_what_cannot_be_read_is_an_error_in_words(
    folder: Path, actions: FileActions, path: str
) -> None:
    (folder / "bin").write_bytes(b"\x7fELF\0")
    assert path.split("/")[-1] in refused(actions.read, path)


# -- as tools --------------------------------------------------------------------------------


def test_every_action_is_a_tool_with_words_for_each_parameter(actions: FileActions) -> None:
    for name in TOOLS:
        definition = FunctionTool(getattr(actions, name)).offered.definition
        assert definition.name == name
        assert len(definition.description) > 40
        for parameter in definition.parameters["properties"].values():
            assert len(parameter["description"]) > 10


def test_an_error_is_the_result_of_a_call(actions: FileActions) -> None:
    output = anyio.run(FunctionTool(actions.read).run, {"path": "../secret.md"})
    assert output.is_error
    assert output.text == "UsageError: '../secret.md' is not a path inside the workspace"


def test_whoever_wants_is_told_of_every_change(folder: Path) -> None:
    changed: list[str] = []
    actions = FileActions(Root(folder), on_change=changed.append)
    actions.write("x.md", "x")
    actions.edit("x.md", "x", "y")
    actions.mv("x.md", "y.md")
    actions.rm("y.md")
    actions.undo()
    actions.touch("notes/a.md")
    refused(actions.write, "y.md", "z")
    assert changed == ["x.md", "x.md", "x.md", "y.md", "y.md", "y.md", "notes/a.md"]


def test_the_persona_says_to_look_first_and_holds_nothing_that_changes() -> None:
    for word in ("`ls`", "`grep`", "`read`", "`edit`", "`undo`", "Explore before"):
        assert word in WORKSPACE_PERSONA
    assert not any(character.isdigit() for character in WORKSPACE_PERSONA)
