"""Locks files on every system, so that one process at a time uses them.

Laws: a lock ends with its handle, however the process ends. A lock reported as acquired really is:
on a file system without locks, requesting one is an error. A process that runs a model holds a
shared lock on its file; one that writes a file in pieces holds an exclusive lock.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # Far beyond any content: locking this region does not hide bytes from readers.
    _LOCK_AT = 1 << 62

    def lock_file(handle: int) -> bool:
        """Takes the lock for this handle; False if another handle has it.

        Raises:
            OSError: the file system has no locks.
        """
        here = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, _LOCK_AT, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(handle, here, os.SEEK_SET)
        return True

    def hold_file(_: Path) -> None:
        """Do nothing: Windows does not remove a file that is in use."""

else:
    import fcntl

    def lock_file(handle: int) -> bool:
        """Takes the lock for this handle; False if another handle has it.

        Raises:
            OSError: the file system has no locks.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # the latter on Windows network drives
            return False
        return True

    def hold_file(path: Path) -> None:
        """Mark a file as used by this process from now on."""
        with suppress(OSError):
            # The handle stays open, so the process keeps the lock until it ends.
            fcntl.flock(os.open(path, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_in_use(path: Path) -> bool:
    """Check whether any process uses a file, as far as the file system can tell."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        return not lock_file(handle)
    except OSError:
        return False
    finally:
        os.close(handle)
