"""What differs between systems: file locks, and making sure that bytes are on the disk."""

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # Far beyond any content: locking a region there does not hide bytes from readers.
    _LOCK_AT = 1 << 62

    def lock_file(handle: int) -> bool:
        """Takes the lock for this handle, if it is free."""
        here = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, _LOCK_AT, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, here, os.SEEK_SET)
        return True

    def read_at(handle: int, length: int, offset: int) -> bytes:
        """Up to `length` bytes from `offset` on."""
        here = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, offset, os.SEEK_SET)
            return os.read(handle, length)
        finally:
            os.lseek(handle, here, os.SEEK_SET)

    def sync_file(handle: int) -> None:
        os.fsync(handle)

    def sync_folder(folder: Path) -> None:
        """Windows needs nothing for this."""

else:
    import fcntl

    def lock_file(handle: int) -> bool:
        """Takes the lock for this handle, if it is free. It is released with the handle, even when
        the process is killed."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def read_at(handle: int, length: int, offset: int) -> bytes:
        """Up to `length` bytes from `offset` on."""
        return os.pread(handle, length, offset)

    def sync_file(handle: int) -> None:
        """Returns when the file's bytes are on the disk."""
        if sys.platform == "darwin":
            # There, fsync only reaches the drive's own cache.
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def sync_folder(folder: Path) -> None:
        """Returns when the names in a folder are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Writes everything: in one go, unless the system takes only part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_new_file(path: Path, data: bytes) -> None:
    """Writes a file that must not be there yet, for its owner alone.

    Raises:
        FileExistsError: it is there.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        sync_file(file.fileno())
    sync_folder(path.parent)
