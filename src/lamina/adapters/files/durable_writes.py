"""Writes that are on disk when the call returns.

Law: whenever the machine stops, a file that is being replaced is complete, old or new.
"""

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":

    def sync_folder(folder: Path) -> None:
        """Do nothing: Windows does not need this."""

else:

    def sync_folder(folder: Path) -> None:
        """Return once the names in a folder are on disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(handle: int) -> None:
    """Return once the file's bytes are on disk."""
    if sys.platform == "darwin":
        import fcntl

        # On macOS, fsync only reaches the drive's own cache.
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    elif sys.platform == "win32":
        os.fsync(handle)
    else:
        os.fdatasync(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write everything: in one call, unless the system accepts only part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, readable by its owner alone.

    Raises:
        FileExistsError: it exists.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        write_all(handle, data)
        sync_file(handle)
    finally:
        os.close(handle)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, keeps_mode: bool = False) -> None:
    """Replace a file by writing a new one beside it and renaming it once it is on disk. Only its
    owner can read it, unless `keeps_mode` is true: then it keeps the permissions of the old
    file."""
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
    # It has its name; a file system that cannot sync folders is no reason to fail.
    with suppress(OSError):
        sync_folder(path.parent)
