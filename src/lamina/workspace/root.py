"""The root of a workspace: the one door through which its files are opened.

Law: nothing outside the root is ever opened, made, moved or removed. A path is walked one name at
a time, each looked up in the open folder before it, and links are not followed: there is no moment
between a check and its use in which a swap could lead elsewhere. Only regular files and folders
are touched; a pipe or a device is refused before it is opened.

Where a system has no handles of folders (Windows), paths are resolved and compared instead, and
somebody who can write in the workspace at the same moment could outrun that.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from lamina.errors import UsageError
from lamina.workspace import file_place
from lamina.workspace.file_place import FilePlace
from lamina.workspace.paths import (
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
    say_too_large,
)

__all__ = [
    "MAX_FILE_BYTES",
    "FileChanged",
    "PathStatus",
    "PathRefused",
    "Root",
    "PathTaken",
    "clean_path",
    "say_too_large",
]

MAX_FILE_BYTES = 20 * MEBIBYTE

_OPEN = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_OPEN_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0)
_HERE = PurePosixPath()

NamedStatuses = list[tuple[str, os.stat_result]]
UnreadPaths = list[str] | None


class PathStatus(NamedTuple):
    """Something in the workspace, by its path, with what the system knows of it (of a link, of the
    link itself)."""

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


class Root:
    """A folder and what lies in it. Paths are relative to it, with slashes. Hidden names (`.git`,
    what Lamina keeps) are refused unless a call says `hidden=True`: that is for a file that a
    person named in full, or for our own data. Every method raises `Refused` for a path that it
    does not open."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(folder).resolve(strict=True)
            is_folder = self.path.is_dir()
        except (OSError, ValueError, RuntimeError):
            is_folder = False
        if not is_folder:
            raise UsageError(f"workspace {os.fspath(folder)!r} is not a folder")
        self._spelled = str(self.path)
        self.name = self.path.name.encode("utf-8", "backslashreplace").decode()
        digest = hashlib.sha256(self._spelled.encode("utf-8", "surrogatepass")).hexdigest()
        # The same folder has the same id, by whatever way it was named.
        self.id = f"{self.name}-{digest[:12]}"

    def read(
        self, path: str | PurePosixPath, limit: int = MAX_FILE_BYTES, *, hidden: bool = False
    ) -> tuple[bytes, os.stat_result]:
        """A file's bytes, and its status from before they were read."""
        wanted = self._wanted(path, hidden)
        # Without `_place`, which takes a quarter longer: notes are read by the thousand.
        try:
            handle = self._open_file(wanted)
        except OSError as error:
            raise refusal_of(wanted, error) from None
        try:
            status = os.fstat(handle)
            check_file(wanted, status)
            data = file_place.read_up_to(handle, limit + 1, status.st_size)
        except OSError as error:
            raise PathRefused("unreadable", f"{wanted}: {error.strerror}") from None
        finally:
            os.close(handle)
        if len(data) > limit:
            size = max(status.st_size, len(data))
            raise PathRefused("unreadable", f"{wanted} has {say_too_large(size, limit)}")
        return data, status

    def stat(self, path: str | PurePosixPath, *, hidden: bool = False) -> os.stat_result:
        """What the system knows of it; of a link, of the link itself."""
        wanted = self._wanted(path, hidden, root=True)
        if wanted == _HERE:
            return os.stat(self.path)
        with self._place(wanted) as place:
            return place.status()

    def exists(self, path: str | PurePosixPath, *, hidden: bool = False) -> bool:
        """Whether the name is taken, by whatever it may be."""
        try:
            self.stat(path, hidden=hidden)
        except PathRefused:
            return False
        return True

    def walk(
        self, folder: str | PurePosixPath = "", unread: UnreadPaths = None
    ) -> Iterator[PathStatus]:
        """Every regular file below `folder`, ordered by path. Hidden names and links are left out;
        folders that cannot be read, and names that no reference can say, are added to `unread`
        with the reason."""
        return (each for each in self._tree(folder, unread) if stat.S_ISREG(each.status.st_mode))

    def folders(self, folder: str | PurePosixPath = "") -> tuple[str, ...]:
        """Every folder below `folder`, ordered by path; no hidden ones, no links."""
        return tuple(each.path for each in self._tree(folder, None) if each.kind == "folder")

    def write(
        self,
        path: str | PurePosixPath,
        data: bytes,
        *,
        replace: bool,
        expected: str | None = None,
        hidden: bool = False,
    ) -> None:
        """Makes a file, or with `replace` one in the place of another, whose mode it keeps; never a
        part of it. `expected` is the sha256 of what is there, or its beginning: it is compared
        right before the file is replaced.

        Raises:
            Taken: there is a file, and it is not to be replaced.
            Changed: it holds something else than what was expected.
        """
        wanted = self._wanted(path, hidden)
        with self._place(wanted) as place:
            try:
                old = place.status()
            except FileNotFoundError:
                old = None
            if old is not None:
                if not replace:
                    raise PathTaken("refused", f"{wanted} exists already")
                check_file(wanted, old)
            if expected is not None:
                self._expect(wanted, expected)
            if replace:
                file_place.put_over(place, data, old)
            else:
                file_place.put_new(place, data)

    def append(self, path: str | PurePosixPath, data: bytes, *, hidden: bool = False) -> None:
        """Adds whole lines to a file, which is made if need be."""
        wanted = self._wanted(path, hidden)
        with self._place(wanted) as place:
            with contextlib.suppress(FileNotFoundError):
                check_file(wanted, place.status())
            file_place.append(place, data)

    def touch(self, path: str | PurePosixPath, *, hidden: bool = False) -> None:
        """Says of a file that it was changed now."""
        wanted = self._wanted(path, hidden)
        with self._place(wanted) as place:
            check_file(wanted, place.status())
            if place.folder is None:
                os.utime(place.name)
            else:
                os.utime(place.name, dir_fd=place.folder, follow_symlinks=False)

    def make_folder(self, path: str | PurePosixPath, *, hidden: bool = False) -> tuple[str, ...]:
        """Makes a folder, and those that it lies in; gives those that were not there."""
        wanted = self._wanted(path, hidden, root=True)
        made: list[str] = []
        if not _has_handles():
            for parent in [*reversed(wanted.parents), wanted][1:] if wanted.parts else []:
                with self._place(parent) as place:
                    if _make(place, str(parent)):
                        made.append(str(parent))
            return tuple(made)
        with refuse_os_errors(wanted):
            handle = os.open(self.path, _OPEN_FOLDER)
            try:
                for depth, part in enumerate(wanted.parts, 1):
                    if _make(FilePlace(part, handle), part):
                        made.append("/".join(wanted.parts[:depth]))
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=handle)
                    os.close(handle)
                    handle = inner
            finally:
                os.close(handle)
        return tuple(made)

    def rename(
        self,
        source: str | PurePosixPath,
        target: str | PurePosixPath,
        *,
        into: "Root | None" = None,
        hidden: bool = False,
    ) -> None:
        """Moves a file or a folder to a path that must be free, here or in another root on the
        same disk.

        Raises:
            Taken: something is there already.
        """
        other = into or self
        old, new = self._wanted(source, hidden), other._wanted(target, hidden)
        if other is self and (old == new or old in new.parents):
            raise PathRefused("refused", f"{old} cannot be moved into itself ({new})")
        with self._place(old) as here:
            status = here.status()
            if not stat.S_ISDIR(status.st_mode):
                check_file(old, status)
            with other._place(new) as there:
                if other is self and _is_only_respelled(old, new, status, there):
                    file_place.rename_case(here, there)
                else:
                    file_place.move(here, there, status)

    def remove(self, path: str | PurePosixPath, *, hidden: bool = False) -> None:
        """Removes a file, or a folder that is empty."""
        wanted = self._wanted(path, hidden)
        with self._place(wanted) as place:
            status = place.status()
            if stat.S_ISDIR(status.st_mode):
                os.rmdir(place.name, dir_fd=place.folder)
            else:
                check_file(wanted, status)
                os.unlink(place.name, dir_fd=place.folder)

    def list(
        self, path: str | PurePosixPath = "", *, hidden: bool = False
    ) -> "tuple[PathStatus, ...]":
        """What lies in one folder, ordered by name, links and the like included; hidden names only
        with `hidden=True`."""
        wanted = self._wanted(path, hidden, root=True)
        with refuse_os_errors(wanted):
            entries = self._entries(wanted)
        return tuple(
            PathStatus(str(wanted / name), status)
            for name, status in sorted(entries)
            if hidden or not is_hidden_name(name)
        )

    def _tree(self, folder: str | PurePosixPath, unread: UnreadPaths) -> Iterator[PathStatus]:
        """Files and folders in the order of their paths. No handle is kept between two folders, so
        that neither depth nor a caller that stops costs any."""
        start = self._wanted(folder, hidden=False, root=True)
        with refuse_os_errors(start):
            entries = self._entries(start)
        todo = _below(start, entries, unread)
        while todo:
            found = todo.pop()
            yield found
            if not stat.S_ISDIR(found.status.st_mode):
                continue
            inner = PurePosixPath(found.path)
            try:
                entries = self._entries(inner)
            except OSError as error:
                # One that went away meanwhile is no loss.
                if unread is not None and not isinstance(error, FileNotFoundError):
                    unread.append(f"{found.path}: {error.strerror}")
                continue
            todo += _below(inner, entries, unread)

    def _entries(self, folder: PurePosixPath) -> NamedStatuses:
        """Names in a folder, with what the system knows of each."""
        handle = self._open_folder(folder.parts) if _has_handles() else None
        found = []
        try:
            with os.scandir(self._resolved(folder) if handle is None else handle) as entries:
                for entry in entries:
                    try:
                        found.append((entry.name, entry.stat(follow_symlinks=False)))
                    except FileNotFoundError:
                        continue  # it went away meanwhile
        finally:
            if handle is not None:
                os.close(handle)
        return found

    def _wanted(
        self, path: str | PurePosixPath, hidden: bool, *, root: bool = False
    ) -> PurePosixPath:
        if root and PurePosixPath(path) == _HERE:
            return _HERE
        wanted = clean_path(str(path))
        if not hidden and is_hidden(wanted):
            raise PathRefused(
                "refused", f"{wanted} is hidden; hidden files and folders are left alone"
            )
        return wanted

    def _expect(self, path: PurePosixPath, expected: str) -> None:
        try:
            data, _ = self.read(path, hidden=True)
        except PathRefused as refusal:
            raise FileChanged("refused", f"{path} cannot be compared: {refusal.detail}") from None
        if not hashlib.sha256(data).hexdigest().startswith(expected):
            raise FileChanged("refused", f"{path} changed since it was read")

    @contextlib.contextmanager
    def _place(self, path: PurePosixPath) -> Iterator[FilePlace]:
        """The name of `path` in its open folder. What the system says against it is a refusal."""
        with refuse_os_errors(path):
            if not _has_handles():
                yield FilePlace(str(self._resolved(path)), None)
                return
            handle = self._open_folder(path.parts[:-1])
            try:
                yield FilePlace(path.name, handle)
            finally:
                os.close(handle)

    def _open_file(self, path: PurePosixPath) -> int:
        if not _has_handles():
            full = self._resolved(path)
            check_file(path, os.lstat(full))
            return os.open(full, _OPEN)
        *folders, name = path.parts
        handle = self._open_folder(folders)
        try:
            # Looking first: opening a pipe or a device can have effects of its own.
            check_file(path, os.stat(name, dir_fd=handle, follow_symlinks=False))
            return os.open(name, _OPEN, dir_fd=handle)
        finally:
            os.close(handle)

    def _open_folder(self, parts: Sequence[str]) -> int:
        handle = os.open(self._spelled, _OPEN_FOLDER)
        for part in parts:
            try:
                inner = os.open(part, _OPEN_FOLDER, dir_fd=handle)
            except NotADirectoryError:
                # A link looks like that, too.
                if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, "") from None
                raise
            finally:
                os.close(handle)
            handle = inner
        return handle

    def _resolved(self, path: PurePosixPath) -> Path:
        """Where there are no handles of folders: the full path, which has to be what it says."""
        full = self.path / path
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            raise OSError(errno.ELOOP, "")
        return full


def _make(place: FilePlace, name: str) -> bool:
    """Makes a folder, if there is none."""
    try:
        os.mkdir(place.name, dir_fd=place.folder)
    except FileExistsError:
        if not stat.S_ISDIR(place.status().st_mode):
            raise PathTaken("refused", f"{name} exists already and is no folder") from None
        return False
    return True


def _has_handles() -> bool:
    return os.open in os.supports_dir_fd


def _below(folder: PurePosixPath, entries: NamedStatuses, unread: UnreadPaths) -> list[PathStatus]:
    """The files and folders among the entries of a folder, last one first."""
    prefix = f"{folder}/" if folder.parts else ""
    found: dict[str, PathStatus] = {}
    for name, status in entries:
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_hidden_name(name) or not (is_folder or stat.S_ISREG(status.st_mode)):
            continue
        path = prefix + name
        if is_sayable(name):
            # With its slash a folder stands where the paths in it stand.
            found[f"{path}/" if is_folder else path] = PathStatus(path, status)
        elif unread is not None:
            unread.append(f"{path!r}: its name is not UTF-8, or has a backslash")
    return [found[each] for each in sorted(found, reverse=True)]


def _is_only_respelled(
    old: PurePosixPath, new: PurePosixPath, status: os.stat_result, there: FilePlace
) -> bool:
    """Whether both are one thing: where case does not count, `a.md` can become `A.md`."""
    try:
        other = there.status()
    except FileNotFoundError:
        return False
    is_one = stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
    return is_one and old.parent == new.parent and os.path.samestat(status, other)
