"""What a watcher says of changes in a real folder: all of them, or that it does not know."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.adapters.workspace import folder_watcher
from lamina.adapters.workspace.folder_watcher import FolderWatcher


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "vault"
    (place / "deep" / "er").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "a.md").write_text("a")
    (place / "deep" / "er" / "b.md").write_text("b")
    return place


@pytest.fixture
def watcher(folder: Path) -> Iterator[FolderWatcher]:
    watcher = FolderWatcher(folder)
    watcher.start()
    assert watcher.take() is None
    yield watcher
    watcher.stop()


def test_before_it_is_started_and_after_it_is_stopped_nothing_is_known(folder: Path) -> None:
    watcher = FolderWatcher(folder)
    assert watcher.take() is None
    watcher.start()
    assert [watcher.take(), watcher.take()] == [None, set()]
    watcher.stop()
    assert watcher.take() is None
    watcher.start()
    assert [watcher.take(), watcher.take()] == [None, set()]
    watcher.stop()


def test_a_change_is_known_as_soon_as_it_is_made(folder: Path, watcher: FolderWatcher) -> None:
    for number in range(200):
        (folder / "a.md").write_text(str(number))
        assert watcher.take() == {"a.md"}
        (folder / "deep" / "er" / f"{number}.md").write_text("new")
        assert watcher.take() == {f"deep/er/{number}.md"}
        assert watcher.take() == set()


def test_what_another_process_does_is_known_once_it_is_done(
    folder: Path, watcher: FolderWatcher
) -> None:
    code = (
        "import os, sys; os.chdir(sys.argv[1])\n"
        "for n in range(1000): open(f'deep/{n}.md', 'w').close()"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=True)
    assert watcher.take() == {f"deep/{number}.md" for number in range(1000)}


def test_moved_deleted_touched_and_forbidden_files_are_named(
    folder: Path, watcher: FolderWatcher
) -> None:
    (folder / "a.md").rename(folder / "deep" / "c.md")
    assert watcher.take() == {"a.md", "deep/c.md"}
    os.utime(folder / "deep" / "c.md", (1, 1))
    assert watcher.take() == {"deep/c.md"}
    (folder / "deep" / "c.md").chmod(0)
    assert watcher.take() == {"deep/c.md"}
    (folder / "deep" / "c.md").unlink()
    assert watcher.take() == {"deep/c.md"}


def test_a_file_that_comes_from_outside_is_named(
    folder: Path, watcher: FolderWatcher, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere.md").write_text("new")
    (tmp_path / "elsewhere.md").rename(folder / "a.md")
    assert watcher.take() == {"a.md"}


def test_a_write_that_goes_on_is_named_each_time(folder: Path, watcher: FolderWatcher) -> None:
    with (folder / "a.md").open("w", buffering=1) as file:
        assert watcher.take() == {"a.md"}
        for number in range(3):
            file.write(f"{number}\n")
            assert watcher.take() == {"a.md"}
    assert watcher.take() == {"a.md"}


def test_after_a_folder_came_went_or_moved_nothing_is_known_once(
    folder: Path, watcher: FolderWatcher
) -> None:
    (folder / "new").mkdir()
    assert [watcher.take(), watcher.take()] == [None, set()]
    (folder / "new" / "n.md").write_text("n")
    assert watcher.take() == {"new/n.md"}
    (folder / "new").rename(folder / "deep" / "newer")
    assert watcher.take() is None
    (folder / "deep" / "newer" / "n.md").write_text("m")
    assert watcher.take() == {"deep/newer/n.md"}
    (folder / "deep" / "newer" / "n.md").unlink()
    (folder / "deep" / "newer").rmdir()
    assert [watcher.take(), watcher.take()] == [None, set()]


def test_a_folder_that_may_be_read_again_is_looked_at(folder: Path, watcher: FolderWatcher) -> None:
    (folder / "deep").chmod(0)
    assert watcher.take() is None
    (folder / "deep").chmod(0o755)
    assert watcher.take() is None
    (folder / "deep" / "er" / "b.md").write_text("seen")
    assert watcher.take() == {"deep/er/b.md"}


def test_hidden_names_and_what_is_below_them_are_not_told(
    folder: Path, watcher: FolderWatcher
) -> None:
    (folder / ".git" / "index").write_text("x")
    (folder / ".git" / "refs").mkdir()
    (folder / ".hidden.md").write_text("x")
    (folder / ".trash").mkdir()
    assert watcher.take() == set()


def test_links_are_not_followed(folder: Path, watcher: FolderWatcher, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    assert watcher.take() == {"link"}
    (folder / "again").mkdir()
    assert watcher.take() is None
    (outside / "secret.md").write_text("x")
    assert watcher.take() == set()


def test_more_events_than_the_queue_holds_make_it_unknown_once(
    folder: Path, watcher: FolderWatcher
) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [os.open(folder / name, os.O_WRONLY) for name in ("a.md", "deep/er/b.md")]
    try:
        for number in range(most + 1):
            os.write(files[number % 2], b"x")
    finally:
        for file in files:
            os.close(file)
    assert [watcher.take(), watcher.take()] == [None, set()]


def test_a_folder_that_is_gone_is_not_watched_and_said_once(
    folder: Path, watcher: FolderWatcher
) -> None:
    folder.rename(folder.with_name("moved"))
    assert [watcher.take(), watcher.take()] == [None, None]
    (note,) = watcher.take_warnings()
    assert note == (
        f"{folder} is not watched (No such file or directory); all of its files are looked at each "
        "time instead"
    )
    assert watcher.take_warnings() == ()


def test_a_disk_that_others_may_change_is_not_watched(folder: Path) -> None:
    strange = Path("/proc/self")
    assert folder_watcher.shared_disk_kind(strange) == "proc"
    assert folder_watcher.shared_disk_kind(folder) == ""
    watcher = FolderWatcher(strange)
    watcher.start()
    assert watcher.take() is None
    assert "on a disk of kind proc" in watcher.take_warnings()[0]


def test_a_disk_below_the_folder_counts_too() -> None:
    mounts = (
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "23 22 0:5 / /home/me/my\\040notes/shared rw master:1 - nfs4 server:/x rw\n"
        "24 22 0:6 / /home/me/other rw - cifs //server/y rw\n"
        "25 22 0:7 / /home/me/other rw - ext4 /dev/vdb rw\n"
    )
    assert folder_watcher.shared_mount_kind("/home/me/my notes", mounts) == "nfs4"
    assert folder_watcher.shared_mount_kind("/home/me/my notes/shared/deep", mounts) == "nfs4"
    assert folder_watcher.shared_mount_kind("/home/me/my note", mounts) == ""
    assert folder_watcher.shared_mount_kind("/home/me/other", mounts) == ""


def test_nothing_is_left_behind(folder: Path) -> None:
    handles, threads = os.listdir("/proc/self/fd"), threading.active_count()
    for _ in range(3):
        watcher = FolderWatcher(folder)
        watcher.start()
        watcher.take()
        assert threading.active_count() == threads
        watcher.stop()
        watcher.stop()
    dropped = FolderWatcher(folder)
    dropped.start()
    dropped.take()
    del dropped
    assert os.listdir("/proc/self/fd") == handles


def test_a_deep_and_a_wide_folder_take_few_handles(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(200):
        place /= "d"
        place.mkdir()
    (tmp_path / "wide").mkdir()
    for number in range(2_000):
        (tmp_path / "wide" / str(number)).mkdir()
    watcher = FolderWatcher(tmp_path)
    watcher.start()
    assert watcher.take() is None
    assert watcher.take_warnings() == ()
    (place / "x.md").write_text("x")
    (tmp_path / "wide" / "1999" / "y.md").write_text("y")
    assert watcher.take() == {"d/" * 200 + "x.md", "wide/1999/y.md"}
    watcher.stop()
