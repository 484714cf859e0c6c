"""The folder of a root, in which names are opened.

Law: a path is walked one name at a time, each looked up in the open folder before it, and links
are not followed: there is no moment between a check and its use in which a swap could lead
elsewhere. A pipe or a device is refused before it is opened. What the system refuses is an
`OSError` here.

Where a system has no folder handles (Windows), paths are resolved and compared instead, and a
program that writes in the workspace at the same moment could outrun that.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from lamina.adapters.files.file_place import SAFE_FLAGS, FilePlace, read_up_to
from lamina.adapters.files.paths import (
    PathRefused,
    PathTaken,
    check_file,
    refusal_of,
    refuse_os_errors,
    say_too_large,
)

_OPEN = os.O_RDONLY | SAFE_FLAGS | getattr(os, "O_NONBLOCK", 0)
_OPEN_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0)

NamedStatuses = list[tuple[str, os.stat_result]]


class RootHandle:
    """Opens what lies below the folder `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spelling = str(path)

    @contextlib.contextmanager
    def place(self, path: PurePosixPath) -> Iterator[FilePlace]:
        """The name of `path` in its open folder. Errors of the system become refusals."""
        with refuse_os_errors(path):
            if not _has_handles():
                yield FilePlace(str(self._resolve(path)), None)
                return
            handle = self._open_folder(path.parts[:-1])
            try:
                yield FilePlace(path.name, handle)
            finally:
                os.close(handle)

    def read(self, path: PurePosixPath, limit: int) -> tuple[bytes, os.stat_result]:
        """A file's bytes, and its status from before they were read.

        Raises:
            PathRefused: it is not a regular file, too large, or cannot be read.
        """
        # Not through `place`, which takes a quarter longer: there are thousands of notes.
        try:
            handle = self.open_file(path)
        except OSError as error:
            raise refusal_of(path, error) from None
        try:
            status = os.fstat(handle)
            check_file(path, status)
            data = read_up_to(handle, limit + 1, status.st_size)
        except OSError as error:
            raise PathRefused("unreadable", f"{path}: {error.strerror}") from None
        finally:
            os.close(handle)
        if len(data) > limit:
            size = max(status.st_size, len(data))
            raise PathRefused("unreadable", f"{path} has {say_too_large(size, limit)}")
        return data, status

    def open_file(self, path: PurePosixPath) -> int:
        if not _has_handles():
            full = self._resolve(path)
            check_file(path, os.lstat(full))
            return os.open(full, _OPEN)
        *folders, name = path.parts
        handle = self._open_folder(folders)
        try:
            # Checked first: opening a pipe or a device can have side effects.
            check_file(path, os.stat(name, dir_fd=handle, follow_symlinks=False))
            return os.open(name, _OPEN, dir_fd=handle)
        finally:
            os.close(handle)

    def names(self, folder: PurePosixPath) -> NamedStatuses:
        """The names in a folder with their statuses."""
        handle = self._open_folder(folder.parts) if _has_handles() else None
        statuses = []
        try:
            with os.scandir(self._resolve(folder) if handle is None else handle) as entries:
                for entry in entries:
                    try:
                        statuses.append((entry.name, entry.stat(follow_symlinks=False)))
                    except FileNotFoundError:
                        continue  # deleted meanwhile
        finally:
            if handle is not None:
                os.close(handle)
        return statuses

    def make_folders(self, path: PurePosixPath) -> tuple[str, ...]:
        """Makes a folder and its parents; returns those that were not there."""
        new_folders: list[str] = []
        if not _has_handles():
            for parent in [*reversed(path.parents), path][1:] if path.parts else []:
                with self.place(parent) as place:
                    if _make(place, str(parent)):
                        new_folders.append(str(parent))
            return tuple(new_folders)
        handle = os.open(self._spelling, _OPEN_FOLDER)
        try:
            for depth, part in enumerate(path.parts, 1):
                if _make(FilePlace(part, handle), part):
                    new_folders.append("/".join(path.parts[:depth]))
                inner = os.open(part, _OPEN_FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
        finally:
            os.close(handle)
        return tuple(new_folders)

    def _open_folder(self, parts: Sequence[str]) -> int:
        handle = os.open(self._spelling, _OPEN_FOLDER)
        for part in parts:
            try:
                inner = os.open(part, _OPEN_FOLDER, dir_fd=handle)
            except NotADirectoryError:
                # A link also looks like that.
                if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, "") from None
                raise
            finally:
                os.close(handle)
            handle = inner
        return handle

    def _resolve(self, path: PurePosixPath) -> Path:
        """The full path, which must not lead through links; for systems without folder handles."""
        full = self._path / path
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            raise OSError(errno.ELOOP, "")
        return full


def _make(place: FilePlace, name: str) -> bool:
    """Makes a folder unless it is there; says whether it did."""
    try:
        os.mkdir(place.name, dir_fd=place.folder)
    except FileExistsError:
        if not stat.S_ISDIR(place.status().st_mode):
            raise PathTaken("refused", f"{name} exists already and is no folder") from None
        return False
    return True


def _has_handles() -> bool:
    return os.open in os.supports_dir_fd
