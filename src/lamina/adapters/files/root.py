"""Provides the root of a folder: the only way to open, list and change its files.

Laws: nothing outside the root is ever opened, created, moved or removed, and only regular files and
folders are touched. A path is resolved one name at a time, each within its open parent folder, and
links are not followed: no swap between check and use can redirect it. Pipes and devices are refused
before they are opened. A listing leaves out hidden names and links, and keeps no handle open
between two folders.

On systems without folder handles (Windows), paths are resolved and compared instead, and a program
writing to the workspace at the same time could win that race.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from lamina.adapters.files import file_place
from lamina.adapters.files.file_place import SAFE_FLAGS, FilePlace, read_up_to
from lamina.adapters.files.paths import (
    MEBIBYTE,
    FileChanged,
    PathRefused,
    PathTaken,
    check_file,
    clean_path,
    is_hidden,
    is_hidden_name,
    is_sayable,
    refusal_of,
    refuse_os_errors,
    resolve_folder,
    say_too_large,
)

_OPEN = os.O_RDONLY | SAFE_FLAGS | getattr(os, "O_NONBLOCK", 0)
_OPEN_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0)

NamedStatuses = list[tuple[str, os.stat_result]]


class RootHandle:
    """A handle for opening files and folders below the folder `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spelling = str(path)

    @contextlib.contextmanager
    def place(self, path: PurePosixPath) -> Iterator[FilePlace]:
        """Yield the place of `path` in its open folder; convert system errors to refusals."""
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
        """Return a file's bytes, and its status from before they were read.

        Raises:
            PathRefused: it is not a regular file, is too large, or cannot be read.
        """
        # Does not use `place`, which takes a quarter longer: there are thousands of notes.
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
        """Return the names in a folder with their statuses."""
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
                # A link also causes this error.
                if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, "") from None
                raise
            finally:
                os.close(handle)
            handle = inner
        return handle

    def _resolve(self, path: PurePosixPath) -> Path:
        """Return the full path, which must not contain links; for systems without folder
        handles."""
        full = self._path / path
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            raise OSError(errno.ELOOP, "")
        return full


def _make(place: FilePlace, name: str) -> bool:
    """Create a folder unless it exists; return whether it was created."""
    try:
        os.mkdir(place.name, dir_fd=place.folder)
    except FileExistsError:
        if not stat.S_ISDIR(place.status().st_mode):
            raise PathTaken("refused", f"{name} exists already and is no folder") from None
        return False
    return True


def _has_handles() -> bool:
    return os.open in os.supports_dir_fd


UnreadPaths = list[str] | None


class PathStatus(NamedTuple):
    """A path in the workspace with its status (for a link, the link's own)."""

    path: str
    status: os.stat_result

    @property
    def kind(self) -> Literal["file", "folder", "link", "other"]:
        mode = self.status.st_mode
        if stat.S_ISREG(mode):
            return "file"
        if stat.S_ISDIR(mode):
            return "folder"
        return "link" if stat.S_ISLNK(mode) else "other"


def walk_tree(root: RootHandle, start: PurePosixPath, unread: UnreadPaths) -> Iterator[PathStatus]:
    """Yield everything below `start`; add paths that cannot be read or named to `unread`."""
    with refuse_os_errors(start):
        entries = root.names(start)
    todo = _list_below(start, entries, unread)
    while todo:
        entry = todo.pop()
        yield entry
        if not stat.S_ISDIR(entry.status.st_mode):
            continue
        folder = PurePosixPath(entry.path)
        try:
            entries = root.names(folder)
        except OSError as error:
            # A folder that has just been deleted does not matter.
            if unread is not None and not isinstance(error, FileNotFoundError):
                unread.append(f"{entry.path}: {error.strerror}")
            continue
        todo += _list_below(folder, entries, unread)


def _list_below(
    folder: PurePosixPath, entries: NamedStatuses, unread: UnreadPaths
) -> list[PathStatus]:
    """Return a folder's files and subfolders in reverse order."""
    prefix = f"{folder}/" if folder.parts else ""
    by_path: dict[str, PathStatus] = {}
    for name, status in entries:
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_hidden_name(name) or not (is_folder or stat.S_ISREG(status.st_mode)):
            continue
        path = prefix + name
        if is_sayable(name):
            # With a slash, a folder is sorted with the paths inside it.
            by_path[f"{path}/" if is_folder else path] = PathStatus(path, status)
        elif unread is not None:
            unread.append(f"{path!r}: its name is not UTF-8, or has a backslash")
    return [by_path[path] for path in sorted(by_path, reverse=True)]


MAX_FILE_BYTES = 20 * MEBIBYTE

_HERE = PurePosixPath()


class Root:
    """A folder and its content. Paths are relative to it, with slashes. Hidden names (`.git`,
    Lamina's own) are refused unless a call passes `hidden=True`: for a file that a person named in
    full, or for our own data. Every method raises `PathRefused` for a path it will not open."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = resolve_folder(folder, "workspace")
        self.handle = RootHandle(self.path)
        self.name = self.path.name.encode("utf-8", "backslashreplace").decode()
        digest = hashlib.sha256(str(self.path).encode("utf-8", "surrogatepass")).hexdigest()
        # A folder always has the same id, however it is named.
        self.id = f"{self.name}-{digest[:12]}"

    def read(
        self, path: str | PurePosixPath, limit: int = MAX_FILE_BYTES, *, hidden: bool = False
    ) -> tuple[bytes, os.stat_result]:
        """A file's bytes, and its status from before they were read."""
        return self.handle.read(self._clean_path(path, hidden), limit)

    def stat(self, path: str | PurePosixPath, *, hidden: bool = False) -> os.stat_result:
        """Return a path's status; for a link, the link's own."""
        target = self._clean_path(path, hidden, root=True)
        if target == _HERE:
            return os.stat(self.path)
        with self.handle.place(target) as place:
            return place.status()

    def exists(self, path: str | PurePosixPath, *, hidden: bool = False) -> bool:
        """Check whether anything has this name."""
        try:
            self.stat(path, hidden=hidden)
        except PathRefused:
            return False
        return True

    def walk(
        self, folder: str | PurePosixPath = "", unread: UnreadPaths = None
    ) -> Iterator[PathStatus]:
        """Yield every regular file below `folder`, ordered by path. Hidden names and links are left
        out; unreadable folders, and names that no reference can express, are added to `unread` with
        the reason."""
        entries = self._walk_tree(folder, unread)
        return (entry for entry in entries if stat.S_ISREG(entry.status.st_mode))

    def folders(self, folder: str | PurePosixPath = "") -> tuple[str, ...]:
        """Return every folder below `folder`, ordered by path, except hidden folders and links."""
        return tuple(
            entry.path for entry in self._walk_tree(folder, None) if entry.kind == "folder"
        )

    def write(
        self,
        path: str | PurePosixPath,
        data: bytes,
        *,
        replace: bool,
        expected: str | None = None,
        hidden: bool = False,
    ) -> None:
        """Create a file or, with `replace`, atomically replace one and keep its mode. `expected` is
        the sha256 of the current content, or its beginning, and is compared right before the file
        is replaced.

        Raises:
            PathTaken: the file exists and `replace` is false.
            FileChanged: its content is not as expected.
        """
        target = self._clean_path(path, hidden)
        with self.handle.place(target) as place:
            try:
                old = place.status()
            except FileNotFoundError:
                old = None
            if old is not None:
                if not replace:
                    raise PathTaken("refused", f"{target} exists already")
                check_file(target, old)
            if expected is not None:
                self._expect(target, expected)
            if replace:
                file_place.put_over(place, data, old)
            else:
                file_place.put_new(place, data)

    def append(self, path: str | PurePosixPath, data: bytes, *, hidden: bool = False) -> None:
        """Append whole lines to a file, creating it if needed."""
        target = self._clean_path(path, hidden)
        with self.handle.place(target) as place:
            with contextlib.suppress(FileNotFoundError):
                check_file(target, place.status())
            file_place.append(place, data)

    def touch(self, path: str | PurePosixPath, *, hidden: bool = False) -> None:
        """Set a file's modification time to now."""
        target = self._clean_path(path, hidden)
        with self.handle.place(target) as place:
            check_file(target, place.status())
            if place.folder is None:
                os.utime(place.name)
            else:
                os.utime(place.name, dir_fd=place.folder, follow_symlinks=False)

    def make_folder(self, path: str | PurePosixPath, *, hidden: bool = False) -> tuple[str, ...]:
        """Makes a folder and its parents; returns those that were not there."""
        target = self._clean_path(path, hidden, root=True)
        with refuse_os_errors(target):
            return self.handle.make_folders(target)

    def rename(
        self,
        source: str | PurePosixPath,
        target: str | PurePosixPath,
        *,
        into: "Root | None" = None,
        hidden: bool = False,
    ) -> None:
        """Move a file or folder to a free path, here or in another root on the same disk.

        Raises:
            PathTaken: the path is taken.
        """
        other = into or self
        old, new = self._clean_path(source, hidden), other._clean_path(target, hidden)
        if other is self and (old == new or old in new.parents):
            raise PathRefused("refused", f"{old} cannot be moved into itself ({new})")
        with self.handle.place(old) as here:
            status = here.status()
            if not stat.S_ISDIR(status.st_mode):
                check_file(old, status)
            with other.handle.place(new) as there:
                if other is self and _is_only_respelled(old, new, status, there):
                    file_place.rename_case(here, there)
                else:
                    file_place.move(here, there, status)

    def remove(self, path: str | PurePosixPath, *, hidden: bool = False) -> None:
        """Remove a file or an empty folder."""
        target = self._clean_path(path, hidden)
        with self.handle.place(target) as place:
            status = place.status()
            if stat.S_ISDIR(status.st_mode):
                os.rmdir(place.name, dir_fd=place.folder)
            else:
                check_file(target, status)
                os.unlink(place.name, dir_fd=place.folder)

    def list(
        self, path: str | PurePosixPath = "", *, hidden: bool = False
    ) -> "tuple[PathStatus, ...]":
        """Return the entries of one folder, ordered by name, including links and other special
        files; hidden names only with `hidden=True`."""
        target = self._clean_path(path, hidden, root=True)
        with refuse_os_errors(target):
            entries = self.handle.names(target)
        return tuple(
            PathStatus(str(target / name), status)
            for name, status in sorted(entries)
            if hidden or not is_hidden_name(name)
        )

    def _walk_tree(self, folder: str | PurePosixPath, unread: UnreadPaths) -> Iterator[PathStatus]:
        start = self._clean_path(folder, hidden=False, root=True)
        return walk_tree(self.handle, start, unread)

    def _clean_path(
        self, path: str | PurePosixPath, hidden: bool, *, root: bool = False
    ) -> PurePosixPath:
        if root and PurePosixPath(path) == _HERE:
            return _HERE
        target = clean_path(str(path))
        if not hidden and is_hidden(target):
            raise PathRefused(
                "refused", f"{target} is hidden; hidden files and folders are left alone"
            )
        return target

    def _expect(self, path: PurePosixPath, expected: str) -> None:
        try:
            data, _ = self.read(path, hidden=True)
        except PathRefused as refusal:
            raise FileChanged("refused", f"{path} cannot be compared: {refusal.detail}") from None
        if not hashlib.sha256(data).hexdigest().startswith(expected):
            raise FileChanged("refused", f"{path} changed since it was read")


def _is_only_respelled(
    old: PurePosixPath, new: PurePosixPath, status: os.stat_result, there: FilePlace
) -> bool:
    """Check whether both paths are the same file: on a case-insensitive file system, `a.md` can
    become `A.md`."""
    try:
        other = there.status()
    except FileNotFoundError:
        return False
    is_one = stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
    return is_one and old.parent == new.parent and os.path.samestat(status, other)
