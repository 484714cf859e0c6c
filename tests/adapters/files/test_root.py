"""The root of a workspace: what it finds, reads, makes and moves."""

import errno
import hashlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.adapters.files.paths import (
    LONGEST_PATH,
    FileChanged,
    PathRefused,
    PathTaken,
    clean_path,
    is_hidden,
)
from lamina.adapters.files.root import Root
from lamina.errors import UsageError


def put(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def reason(refusal: pytest.ExceptionInfo[PathRefused]) -> tuple[str, str]:
    return refusal.value.reason, refusal.value.detail


@pytest.mark.parametrize("name", ["no", "file.md", "a\0b", "file.md/x"])
def test_a_root_must_be_a_folder(tmp_path: Path, name: str) -> None:
    put(tmp_path, "file.md")
    with pytest.raises(UsageError, match="is not a folder"):
        Root(f"{tmp_path}/{name}")


def test_a_folder_has_one_id_by_whatever_way_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "My notes").mkdir()
    (tmp_path / "link").symlink_to("My notes")
    root = Root(tmp_path / "My notes")
    digest = hashlib.sha256(str(tmp_path.resolve() / "My notes").encode()).hexdigest()
    assert (root.name, root.id) == ("My notes", f"My notes-{digest[:12]}")
    assert Root(tmp_path / "link").id == Root(f"{tmp_path}/link/../My notes/").id == root.id


def test_files_are_found_in_the_order_of_their_paths(tmp_path: Path) -> None:
    paths = ["a-b.md", "a.md", "a/b.md", "a/b/c.md", "a0.md", "b/é.md", "b/z.md", "b&c.md"]
    put(tmp_path, *paths, ".hidden/x.md", "a/.x.md")
    (tmp_path / "link.md").symlink_to("a.md")
    (tmp_path / "linked").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    root = Root(tmp_path)
    assert [entry.path for entry in root.walk()] == sorted(paths)
    assert [entry.path for entry in root.walk("a")] == ["a/b.md", "a/b/c.md"]
    assert root.folders() == ("a", "a/b", "b")
    assert {entry.status.st_size for entry in root.walk("a/b")} == {len("a/b/c.md")}


def test_what_cannot_be_walked_is_remembered(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "back\\slash.md")
    (tmp_path / os.fsdecode(b"latin-\xe9.md")).touch()
    unread: list[str] = []
    assert [entry.path for entry in Root(tmp_path).walk("", unread)] == ["a.md"]
    assert len(unread) == 2
    assert all("its name is not UTF-8, or has a backslash" in problem for problem in unread)


def test_a_folder_that_becomes_a_link_during_a_walk_is_not_entered(tmp_path: Path) -> None:
    put(tmp_path, "root/a.md", "root/b/c.md", "outside/secret.md")
    unread: list[str] = []
    walk = Root(tmp_path / "root").walk("", unread)
    assert next(walk).path == "a.md"
    (tmp_path / "root" / "b").rename(tmp_path / "elsewhere")
    (tmp_path / "root" / "b").symlink_to(tmp_path / "outside")
    assert list(walk) == []
    assert [problem.partition(":")[0] for problem in unread] == ["b"]


def test_a_deep_tree_costs_no_handles(tmp_path: Path) -> None:
    root = Root(tmp_path)
    deep = "/".join(["d"] * 100)
    root.make_folder(deep)
    root.write(f"{deep}/a.md", b"deep", replace=False)
    before = len(os.listdir("/dev/fd"))
    walk = root.walk()
    assert next(walk).path == f"{deep}/a.md"
    assert len(os.listdir("/dev/fd")) == before
    assert root.read(f"{deep}/a.md")[0] == b"deep"


def test_hidden_files_are_read_only_if_a_person_named_them(tmp_path: Path) -> None:
    put(tmp_path, ".env", "a/.b/c.md")
    root = Root(tmp_path)
    for path in (".env", "a/.b/c.md"):
        with pytest.raises(PathRefused) as refusal:
            root.read(path)
        assert reason(refusal) == (
            "refused",
            f"{path} is hidden; hidden files and folders are left alone",
        )
        assert root.read(path, hidden=True)[0] == path.encode()
    assert [entry.path for entry in root.list()] == ["a"]
    assert [entry.path for entry in root.list(hidden=True)] == [".env", "a"]


def test_a_file_is_made_only_where_nothing_is(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.write("a.md", b"first", replace=False)
    with pytest.raises(PathTaken):
        root.write("a.md", b"second", replace=False)
    assert os.listdir(tmp_path) == ["a.md"]
    assert (tmp_path / "a.md").read_bytes() == b"first"


def test_of_many_who_make_a_file_at_once_one_succeeds(tmp_path: Path) -> None:
    root = Root(tmp_path)
    start = threading.Barrier(8)
    made: list[int] = []

    def make(number: int) -> None:
        start.wait()
        try:
            root.write("a.md", str(number).encode(), replace=False)
        except PathTaken:
            return
        made.append(number)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(tmp_path / "a.md").read_bytes()] == [str(number).encode() for number in made]
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_file_is_replaced_if_it_holds_what_was_expected(tmp_path: Path) -> None:
    put(tmp_path, "a.md")
    os.chmod(tmp_path / "a.md", 0o604)
    root = Root(tmp_path)
    with pytest.raises(FileChanged):
        root.write("a.md", b"new", replace=True, expected="0" * 64)
    assert (tmp_path / "a.md").read_text() == "a.md"
    root.write("a.md", b"new", replace=True, expected=hashlib.sha256(b"a.md").hexdigest()[:12])
    assert (tmp_path / "a.md").read_bytes() == b"new"
    assert (tmp_path / "a.md").stat().st_mode & 0o777 == 0o604
    with pytest.raises(FileChanged):
        root.write("gone.md", b"new", replace=True, expected="00000000")
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_move_never_takes_the_place_of_something(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "b.md", "f/x.md")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    root = Root(tmp_path)
    for source, target in (
        ("a.md", "b.md"), ("a.md", "f"), ("a.md", "empty"), ("f", "a.md"), ("f", "empty"),
        ("a.md", "link"), ("f", "link"),
    ):  # fmt: skip
        with pytest.raises(PathTaken):
            root.rename(source, target)
    with pytest.raises(PathRefused, match="into itself"):
        root.rename("f", "f/g")
    root.rename("f", "g")
    root.rename("a.md", "g/a.md")
    assert sorted(entry.path for entry in root.walk()) == ["b.md", "g/a.md", "g/x.md"]
    assert os.readlink(tmp_path / "link") == "nowhere"


def test_where_there_are_no_hard_links_nothing_is_overwritten_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    put(tmp_path, "a.md", "b.md")
    root = Root(tmp_path)
    root.write("c.md", b"c", replace=False)
    with pytest.raises(PathTaken):
        root.write("a.md", b"x", replace=False)
    with pytest.raises(PathTaken):
        root.rename("a.md", "b.md")
    root.rename("a.md", "d.md")
    found = {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)}
    assert found == {"b.md": "b.md", "c.md": "c", "d.md": "a.md"}


def test_only_files_and_empty_folders_are_removed(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "f/x.md")
    (tmp_path / "link").symlink_to("a.md")
    root = Root(tmp_path)
    for path in ("f", "link", "no.md"):
        with pytest.raises(PathRefused):
            root.remove(path)
    root.remove("f/x.md")
    root.remove("f")
    assert sorted(os.listdir(tmp_path)) == ["a.md", "link"]


def test_whether_something_is_there_is_said_of_links_themselves(tmp_path: Path) -> None:
    put(tmp_path, "a/b.md")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "inner").symlink_to("a")
    root = Root(tmp_path)
    names = ("a", "a/b.md", "link", "", ".", "no", "inner/b.md", "../x", "a/b.md/c")
    assert [root.exists(name) for name in names] == [True] * 5 + [False] * 4
    assert [entry.kind for entry in root.list()] == ["folder", "link", "link"]


@thorough
@given(st.text(st.sampled_from("a./\\\0:C \u200b．é"), max_size=12))
def test_a_clean_path_stays_below_and_says_itself(text: str) -> None:
    try:
        path = clean_path(text)
    except PathRefused:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert os.path.normpath(f"/top/{path}").startswith("/top/")
    assert clean_path(str(path)) == path
    assert is_hidden(path) or not any(part.startswith(".") for part in path.parts)


def test_a_path_may_be_long_but_not_endless() -> None:
    assert clean_path("a" * LONGEST_PATH)
    with pytest.raises(PathRefused, match="longer than"):
        clean_path("a" * (LONGEST_PATH + 1))
