"""Whether the file of a model is in use by some process of this machine.

Laws: a process that runs a model holds a shared lock on its file until it ends, however it ends.
One that writes a file piece by piece holds it alone.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

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
