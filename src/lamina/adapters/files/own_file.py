"""Reads a person's own files, or files that they named: links may lead anywhere.

Law: only a regular file is read. A pipe could block forever, and a device never ends.
"""

import errno
import os
import stat
from typing import BinaryIO

from lamina.adapters.files.file_place import read_up_to
from lamina.adapters.files.paths import MEBIBYTE
from lamina.errors import UsageError

# The size limit for a file named on the command line.
MAX_BYTES = 20 * MEBIBYTE
# Pipes passed by a shell, as for `<(command)`: another process writes to them.
_HANDED_OVER = ("/dev/fd/", "/proc/self/fd/")

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"), (stat.S_ISDIR, "a folder"),
)  # fmt: skip

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_named_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file named by a person, or of a pipe passed by their shell.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    if is_handed_over(path):
        with open(path, "rb") as file:
            return file.read(MAX_BYTES)
    data = read_own_file(path, MAX_BYTES)
    if data is None:
        raise UsageError(f"{os.fspath(path)!r} cannot be read: {os.strerror(errno.ENOENT)}")
    return data


def is_handed_over(path: str | os.PathLike[str]) -> bool:
    """Check whether a path is a pipe passed by a shell, as for `<(command)`."""
    return os.fspath(path).startswith(_HANDED_OVER)


def read_handed_over(path: str | os.PathLike[str]) -> bytes:
    """Return everything written to a pipe passed by a shell."""
    with open(path, "rb") as pipe:
        return pipe.read()


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, without ever waiting for a writer.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    # Checked first: opening a pipe or a device can have side effects.
    _require_regular(path, os.stat(path))
    handle = os.open(path, _OPEN)
    try:
        _require_regular(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_own_file(path: str | os.PathLike[str], limit: int) -> bytes | None:
    """Return the bytes of a file; None if it does not exist.

    Raises:
        UsageError: it is not a regular file, is longer than `limit`, or cannot be read.
    """
    name = repr(os.fspath(path))
    try:
        # Checked first: opening a pipe or a device can have side effects.
        _check(name, os.stat(path))
        handle = os.open(path, _OPEN)
        try:
            status = os.fstat(handle)
            _check(name, status)
            data = read_up_to(handle, limit + 1, status.st_size)
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from error
    if len(data) > limit:
        size = max(status.st_size, len(data))
        raise UsageError(f"{name} has {size:,} bytes, over the limit of {limit:,}: shorten it")
    return data


def _check(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{name} is not a regular file and is not read")


def _require_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
    problem = f"it is {kind}, and only regular files are read"
    raise OSError(errno.EINVAL, problem, os.fspath(path))
