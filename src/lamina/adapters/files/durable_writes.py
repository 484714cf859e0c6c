"""Writes files durably: the data is on disk when a call returns.

Law: a file that is being replaced is always complete, old or new, whenever the machine stops.
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
        """Flush a folder's entries to disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(handle: int) -> None:
    """Flush a file's bytes to disk."""
    if sys.platform == "darwin":
        import fcntl

        # On macOS, fsync reaches only the drive's own cache.
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    elif sys.platform == "win32":
        os.fsync(handle)
    else:
        os.fdatasync(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all the data: in one call, unless the system accepts only part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, readable by its owner alone.

    Raises:
        FileExistsError: the file exists.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        write_all(handle, data)
        sync_file(handle)
    finally:
        os.close(handle)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, keeps_mode: bool = False) -> None:
    """Replace a file by writing a new one beside it and renaming that once it is on disk. Only the
    owner can read the new file, unless `keeps_mode` is true: then it keeps the old file's
    permissions."""
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
    # The rename succeeded; do not fail if the file system cannot sync folders.
    with suppress(OSError):
        sync_folder(path.parent)
