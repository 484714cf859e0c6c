"""Taking changes back: what is restored, what is refused, and what a restart or damage costs."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.md").write_bytes(b"one\r\ntwo")
    return root


@pytest.fixture
def actions(folder: Path) -> FileActions:
    return FileActions(Root(folder))


def seen(folder: Path) -> dict[str, bytes | None]:
    """Files and folders a person would see."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        if ".lamina" not in path.parts
    }


def refused(act: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(UsageError) as caught:
        act(*args)
    return str(caught.value)


def undo_id(message: str) -> str:
    return message.partition("undo id ")[2][:8]


CHANGES: dict[str, Callable[[FileActions], str]] = {
    "a file made": lambda actions: actions.write("x/y/z.md", "text"),
    "a file replaced": lambda actions: actions.write("notes/a.md", "text", overwrite=True),
    "an edit": lambda actions: actions.edit("notes/a.md", "one", "eins"),
    "an empty file": lambda actions: actions.touch("x/new.md"),
    "a file moved": lambda actions: actions.mv("notes/a.md", "x/y/b.md"),
    "a folder moved": lambda actions: actions.mv("notes", "x/texts"),
    "a file removed": lambda actions: actions.rm("notes/a.md"),
    "an empty folder removed": lambda actions: actions.rm("empty"),
}


@pytest.mark.parametrize("trash", ["inside", "elsewhere"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_taken_back_also_after_a_restart(
    folder: Path, tmp_path: Path, change: str, trash: str
) -> None:
    place = None if trash == "inside" else tmp_path / "data" / "trash"
    (folder / "empty").mkdir()
    os.chmod(folder / "notes" / "a.md", 0o640)
    before = seen(folder)
    CHANGES[change](FileActions(Root(folder), trash=place))
    assert seen(folder) != before
    assert (folder / ".lamina").exists() == (place is None)
    restarted = FileActions(Root(folder), trash=place)
    restarted.undo()
    assert seen(folder) == before
    assert (folder / "notes" / "a.md").stat().st_mode & 0o777 == 0o640
    assert "nothing to undo" in refused(restarted.undo)


def test_changes_are_taken_back_one_after_the_other(folder: Path, actions: FileActions) -> None:
    states = [seen(folder)]
    for change in ("an edit", "a file replaced", "a folder moved", "a file made"):
        CHANGES[change](actions)
        states.append(seen(folder))
    for state in reversed(states[:-1]):
        actions.undo()
        assert seen(folder) == state


def test_a_change_is_taken_back_by_its_id(folder: Path, actions: FileActions) -> None:
    first = undo_id(actions.edit("notes/a.md", "one", "eins"))
    second = actions.write("b.md", "b")
    actions.undo(first)
    assert (folder / "notes" / "a.md").read_bytes() == b"one\r\ntwo"
    assert (folder / "b.md").exists()
    assert "was undone already" in refused(actions.undo, first)
    assert "there is no change 'nonsense'" in refused(actions.undo, "nonsense")
    actions.undo()
    assert not (folder / "b.md").exists()
    assert undo_id(second) != first


@pytest.mark.parametrize(
    ("change", "path", "problem"),
    [
        ("a file made", "x/y/z.md", "was changed since"),
        ("a file replaced", "notes/a.md", "was changed since"),
        ("an edit", "notes/a.md", "was changed since"),
        ("a file moved", "x/y/b.md", "was changed since"),
        ("a file moved", "notes/a.md", "exists already"),
        ("a folder moved", "notes", "exists already"),
        ("a file removed", "notes/a.md", "something else is at notes/a.md by now"),
    ],
)
def test_what_a_person_changed_since_is_left_alone(
    folder: Path, actions: FileActions, change: str, path: str, problem: str
) -> None:
    CHANGES[change](actions)
    (folder / path).write_text("by a person")
    now = seen(folder)
    assert problem in refused(actions.undo)
    assert seen(folder) == now


def test_what_was_there_before_is_kept_where_the_refusal_says(
    folder: Path, actions: FileActions
) -> None:
    actions.edit("notes/a.md", "one", "eins")
    (folder / "notes" / "a.md").unlink()
    message = refused(actions.undo)
    assert "was removed or moved since" in message
    assert Path(message.partition("is kept in ")[2]).read_bytes() == b"one\r\ntwo"


def test_a_torn_line_is_named_and_costs_only_itself(folder: Path, actions: FileActions) -> None:
    actions.edit("notes/a.md", "one", "eins")
    changes = folder / ".lamina" / "trash" / "changes.jsonl"
    with changes.open("ab") as file:
        file.write(b'{"id":"torn","do":"wri')
    actions.write("b.md", "b")
    again = FileActions(Root(folder))
    message = again.undo()
    assert "[line 2 of .lamina/trash/changes.jsonl is damaged and was skipped]" in message
    again.undo()
    assert seen(folder) == {"notes": None, "notes/a.md": b"one\r\ntwo"}


def test_a_change_that_was_written_down_and_never_made_is_done_with(
    folder: Path, actions: FileActions
) -> None:
    """As after a crash between the two."""
    actions.edit("notes/a.md", "one", "eins")
    (folder / "notes" / "a.md").write_bytes(b"one\r\ntwo")
    assert actions.undo() == "notes/a.md is already as it was before"
    assert "nothing to undo" in refused(actions.undo)


def test_a_change_that_failed_is_nothing_to_undo(folder: Path, actions: FileActions) -> None:
    (folder / "b.md").write_text("b")
    assert "is no folder" in refused(actions.write, "b.md/c.md", "c")
    refused(actions.mv, "notes/a.md", "b.md/c.md")
    assert "nothing to undo" in refused(actions.undo)


def test_what_was_kept_and_damaged_is_not_put_back(folder: Path, actions: FileActions) -> None:
    message = actions.edit("notes/a.md", "one", "eins")
    (folder / ".lamina" / "trash" / "kept" / undo_id(message)).write_text("rubbish")
    assert "is damaged" in refused(actions.undo)
    assert (folder / "notes" / "a.md").read_bytes() == b"eins\r\ntwo"


def test_an_undo_keeps_what_it_takes_away(folder: Path, actions: FileActions) -> None:
    actions.write("b.md", "only here")
    actions.undo()
    kept = folder / ".lamina" / "trash" / "kept"
    assert [path.read_text() for path in kept.iterdir()] == ["only here"]


def test_the_trash_is_no_part_of_a_repository_or_of_a_list(
    folder: Path, actions: FileActions
) -> None:
    actions.rm("notes/a.md")
    assert (folder / ".lamina" / "trash" / ".gitignore").read_text() == "*\n"
    assert actions.ls() == "notes/"
    assert actions.grep("one") == "(no matches in 0 files)"


def test_a_trash_on_another_disk_takes_copies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr("lamina.adapters.files.file_place.put_new", _put_plainly)
    actions = FileActions(Root(folder), trash=tmp_path / "trash")
    actions.rm("notes/a.md")
    assert not (folder / "notes" / "a.md").exists()
    actions.undo()
    assert (folder / "notes" / "a.md").read_bytes() == b"one\r\ntwo"


def _put_plainly(place: Any, data: bytes) -> None:
    handle = os.open(place.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=place.folder)
    os.write(handle, data)
    os.close(handle)
