"""The lock on a file, and files that are replaced as a whole."""

import errno
import os
import stat
from pathlib import Path

import pytest
from msgspec import Struct

from lamina.adapters.files import durable_writes
from lamina.adapters.files.durable_writes import replace_file
from lamina.adapters.files.locks import hold_file, is_in_use, lock_file
from lamina.adapters.files.shared_file import SharedFile
from lamina.errors import UsageError


class Decisions(Struct):
    version: int = 1


def open_for_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_a_lock_is_one_handles_until_that_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    first, second = open_for_lock(path), open_for_lock(path)
    assert lock_file(first)
    assert not lock_file(second)
    assert is_in_use(path)
    os.close(first)
    assert lock_file(second)
    os.close(second)
    assert not is_in_use(path)
    assert not is_in_use(tmp_path / "none")


def test_a_file_that_is_held_is_in_use_and_cannot_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"x")
    hold_file(path)
    hold_file(path)
    assert is_in_use(path)


def test_where_nothing_can_be_locked_nobody_is_told_that_they_have_the_lock(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "closed", os.O_CREAT | os.O_RDWR)
    os.close(handle)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        lock_file(handle)


def test_decisions_are_not_written_while_another_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.adapters.files.shared_file._LOCK_SECONDS", 0.0)
    file = SharedFile(tmp_path / "trust.json", Decisions, "decisions", "decide again")
    other = open_for_lock(tmp_path / "trust.json.lock")
    assert lock_file(other)
    with pytest.raises(UsageError, match="have been locked by another process"), file.locked():
        raise AssertionError("two have the lock")
    os.close(other)
    with file.locked():
        file.write(Decisions())
    assert file.read() == Decisions()


@pytest.mark.parametrize(("keeps_mode", "mode"), [(False, 0o600), (True, 0o640)])
def test_a_replaced_file_is_its_owners_alone_unless_it_keeps_its_mode(
    tmp_path: Path, keeps_mode: bool, mode: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    replace_file(path, b"new", keeps_mode=keeps_mode)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_that_cannot_be_replaced_stays_and_nothing_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(durable_writes, "sync_file", fail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        replace_file(path, b"new")
    assert [(name, (tmp_path / name).read_bytes()) for name in os.listdir(tmp_path)] == [
        ("file", b"old")
    ]
