"""Checks paths below a root, and explains why one is not opened.

Law: a path gives a location below the root and nothing else. A string that Lamina and the system
could interpret differently is not a path.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from lamina.errors import UsageError

MEBIBYTE = 1024 * 1024
# No system opens a longer path.
LONGEST_PATH = 4096
# Deeper folders could be created here, but then hardly be removed.
MAX_PARTS = 128

_DRIVE = re.compile(r"[A-Za-z]:")
# Some file systems ignore these, so a name that begins with them may still be hidden.
_UNCOUNTED = "\u200b\u200c\u200d\u200e\u200f\u2060\u202a\u202b\u202c\u202d\u202e\ufeff"
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?", re.I)


RefusalReason = Literal["missing", "ambiguous", "unreadable", "refused"]


class PathRefused(Exception):
    """A path that may not be opened, or cannot be."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class FileChanged(PathRefused):
    """A file's content is not what was expected; it was left as it is."""


class PathTaken(PathRefused):
    """A new file's path is already taken; the existing file was left as it is."""


class LeadsOut(PathRefused):
    """A path leaves its root once its links are followed."""


class OtherDisk(PathRefused):
    """The file cannot be moved to another disk in one step; it has not been moved."""


def resolve_folder(folder: str | os.PathLike[str], what: str) -> Path:
    """Return a named folder without links.

    Raises:
        UsageError: it is not a folder.
    """
    try:
        path = Path(folder).resolve(strict=True)
        is_folder = path.is_dir()
    except (OSError, ValueError, RuntimeError):
        is_folder = False
    if not is_folder:
        raise UsageError(f"{what} {os.fspath(folder)!r} is not a folder")
    return path


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Expand `~` to a home folder. If no such user exists, leave the path as written, which does
    not exist."""
    try:
        return Path(os.path.expanduser(path))
    except ValueError:  # a NUL
        return Path(path)


def clean_path(reference: str) -> PurePosixPath:
    """Convert a reference to a path inside the workspace.

    Raises:
        PathRefused: it is absolute, empty, or has `..`, a drive letter, a NUL, a backslash or half
            a character.
    """
    if not is_sayable(reference) or "\0" in reference:
        raise PathRefused("refused", f"{reference!r} is not a workspace path")
    if len(reference) > LONGEST_PATH:
        beginning = f"{reference[:60]}…"
        raise PathRefused("refused", f"{beginning!r} is longer than a workspace path may be")
    path = PurePosixPath(reference)
    parts = path.parts
    if len(parts) > MAX_PARTS:
        raise PathRefused("refused", f"{reference[:60] + '…'!r} is deeper than {MAX_PARTS} folders")
    if path.is_absolute() or ".." in parts or not parts or _DRIVE.fullmatch(parts[0]):
        raise PathRefused("refused", f"{reference!r} is not a path inside the workspace")
    if os.name == "nt" and any(map(_means_more_on_windows, parts)):
        raise PathRefused(
            "refused", f"{reference!r} is not a path that Windows takes as it is written"
        )
    return path


def is_sayable(name: str) -> bool:
    """Check whether a reference can name the path: it must be valid text without a backslash, which
    is an ordinary character on some systems and a separator on others."""
    if name.isascii():
        return "\\" not in name
    return "\\" not in name and not any("\ud800" <= character <= "\udfff" for character in name)


def is_hidden(path: PurePosixPath) -> bool:
    """Check whether the path or one of its parent folders is hidden: a program's own data, not a
    person's."""
    return any(map(is_hidden_name, path.parts))


def is_hidden_name(name: str) -> bool:
    return name.startswith(".") or (not name.isascii() and name.lstrip(_UNCOUNTED).startswith("."))


def say_too_large(size: int, limit: int) -> str:
    return f"{size:,} bytes; the limit is {limit:,}"


def check_file(path: PurePosixPath, status: os.stat_result) -> None:
    """Refuse anything but a regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISLNK(status.st_mode):
        raise PathRefused("refused", f"{path} is not opened: links are not followed")
    if stat.S_ISDIR(status.st_mode):
        raise PathRefused("unreadable", f"{path} is a folder")
    raise PathRefused("refused", f"{path} is not a regular file")


@contextlib.contextmanager
def refuse_os_errors(path: PurePosixPath) -> Iterator[None]:
    """Convert system errors about a path to refusals."""
    try:
        yield
    except OSError as error:
        raise refusal_of(path, error) from None


def refusal_of(path: PurePosixPath, error: OSError) -> PathRefused:
    """Convert a system error about a path to a refusal."""
    match error:
        case FileExistsError():
            return PathTaken("refused", f"{path} exists already")
        case FileNotFoundError() | NotADirectoryError():
            return PathRefused("missing", f"{path} does not exist in the workspace")
        case PermissionError():
            return PathRefused("unreadable", f"{path}: permission denied")
        case _ if error.errno == errno.EXDEV:
            return OtherDisk("refused", f"{path} lies on another disk")
        case _ if error.errno in (errno.ELOOP, errno.EMLINK):
            return PathRefused("refused", f"{path} is not opened: links are not followed")
        case _:
            return PathRefused("refused", f"{path} cannot be used: {error.strerror or error}")


def _means_more_on_windows(part: str) -> bool:
    """Check whether Windows would read the name as a file stream or a device, or shorten it."""
    return ":" in part or part.endswith((".", " ")) or _DEVICES.fullmatch(part) is not None
