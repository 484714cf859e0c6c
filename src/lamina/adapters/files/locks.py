"""File locks, and making sure that bytes are on the disk: what differs between systems.

Laws: a lock ends with its handle, however the process ends. A process that runs a model holds a
shared lock on its file; one that writes a file piece by piece holds it alone.
"""

import os
import sys
from contextlib import suppress
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


if sys.platform == "win32":
    import msvcrt

    def claim_file(handle: int) -> bool:
        """Takes an open file for this process alone, until it is closed. False if it is taken."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def hold_file(_: Path) -> None:
        """Windows itself does not remove a file that is in use."""

    def is_in_use(_: Path) -> bool:
        return False

else:
    import fcntl

    def claim_file(handle: int) -> bool:
        """Takes an open file for this process alone, until it is closed. False if it is taken."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks
        return True

    def hold_file(path: Path) -> None:
        """Says that this process uses a file, from now on."""
        with suppress(OSError):
            # The handle stays open: the lock is the process's as long as it lives.
            fcntl.flock(os.open(path, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH | fcntl.LOCK_NB)

    def is_in_use(path: Path) -> bool:
        """Whether some process uses a file."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # a file system without locks
        finally:
            os.close(handle)
        return False
