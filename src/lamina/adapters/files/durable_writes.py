"""Writing so that bytes are on the disk when a call returns.

Law: a file that is replaced is whole, old or new, whenever the machine stops.
"""

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":

    def sync_folder(folder: Path) -> None:
        """Windows needs nothing for this."""

else:

    def sync_folder(folder: Path) -> None:
        """Returns when the names in a folder are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(handle: int) -> None:
    """Returns when the file's bytes are on the disk."""
    if sys.platform == "darwin":
        import fcntl

        # There, fsync only reaches the drive's own cache.
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    elif sys.platform == "win32":
        os.fsync(handle)
    else:
        os.fdatasync(handle)


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
    try:
        write_all(handle, data)
        sync_file(handle)
    finally:
        os.close(handle)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, keeps_mode: bool = False) -> None:
    """Writes a file beside this one, and gives it the name once it is on the disk. It is its
    owner's alone, unless it `keeps_mode`: then who may read the old one may read the new one."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        try:
            write_all(handle, data)
            sync_file(handle)
        finally:
            os.close(handle)
        if keeps_mode:
            with suppress(FileNotFoundError):
                os.chmod(draft, stat.S_IMODE(path.stat().st_mode))
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    # It has its name: a file system that cannot make sure of that is no reason to fail.
    with suppress(OSError):
        sync_folder(path.parent)
