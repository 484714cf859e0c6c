"""The root of a folder: the one door through which its files are opened.

Law: nothing outside the root is ever opened, made, moved or removed. Only regular files and folders
are touched. `root_handle` walks paths so that nothing can lead elsewhere.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath

from lamina.adapters.files import file_place
from lamina.adapters.files.file_place import FilePlace
from lamina.adapters.files.path_tree import PathStatus, UnreadPaths, walk_tree
from lamina.adapters.files.paths import (
    MEBIBYTE,
    FileChanged,
    PathRefused,
    PathTaken,
    check_file,
    clean_path,
    is_hidden,
    is_hidden_name,
    refuse_os_errors,
    resolve_folder,
)
from lamina.adapters.files.root_handle import RootHandle

MAX_FILE_BYTES = 20 * MEBIBYTE

_HERE = PurePosixPath()


class Root:
    """A folder and what is in it. Paths are relative to it, with slashes. Hidden names (`.git`,
    Lamina's own) are refused unless a call says `hidden=True`: that is for a file that a person
    named in full, or for our own data. Every method raises `PathRefused` for a path it does not
    open."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = resolve_folder(folder, "workspace")
        self.handle = RootHandle(self.path)
        self.name = self.path.name.encode("utf-8", "backslashreplace").decode()
        digest = hashlib.sha256(str(self.path).encode("utf-8", "surrogatepass")).hexdigest()
        # The same folder has the same id, however it was named.
        self.id = f"{self.name}-{digest[:12]}"

    def read(
        self, path: str | PurePosixPath, limit: int = MAX_FILE_BYTES, *, hidden: bool = False
    ) -> tuple[bytes, os.stat_result]:
        """A file's bytes, and its status from before they were read."""
        return self.handle.read(self._clean_path(path, hidden), limit)

    def stat(self, path: str | PurePosixPath, *, hidden: bool = False) -> os.stat_result:
        """Its status; for a link, the link's own."""
        target = self._clean_path(path, hidden, root=True)
        if target == _HERE:
            return os.stat(self.path)
        with self.handle.place(target) as place:
            return place.status()

    def exists(self, path: str | PurePosixPath, *, hidden: bool = False) -> bool:
        """Whether anything has this name."""
        try:
            self.stat(path, hidden=hidden)
        except PathRefused:
            return False
        return True

    def walk(
        self, folder: str | PurePosixPath = "", unread: UnreadPaths = None
    ) -> Iterator[PathStatus]:
        """Every regular file below `folder`, ordered by path. Hidden names and links are left out;
        folders that cannot be read, and names that no reference can spell, are added to `unread`
        with the reason."""
        entries = self._walk_tree(folder, unread)
        return (entry for entry in entries if stat.S_ISREG(entry.status.st_mode))

    def folders(self, folder: str | PurePosixPath = "") -> tuple[str, ...]:
        """Every folder below `folder`, ordered by path; no hidden ones, no links."""
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
        """Creates a file, or with `replace` replaces one and keeps its mode; all or nothing.
        `expected` is the sha256 of what is there, or its beginning: it is compared right before
        the file is replaced.

        Raises:
            PathTaken: there is a file, and it is not to be replaced.
            FileChanged: it does not hold what was expected.
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
        """Adds whole lines to a file, which is created if needed."""
        target = self._clean_path(path, hidden)
        with self.handle.place(target) as place:
            with contextlib.suppress(FileNotFoundError):
                check_file(target, place.status())
            file_place.append(place, data)

    def touch(self, path: str | PurePosixPath, *, hidden: bool = False) -> None:
        """Marks a file as changed now."""
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
        """Moves a file or a folder to a path that must be free, here or in another root on the
        same disk.

        Raises:
            PathTaken: something is there already.
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
        """Removes a file, or a folder that is empty."""
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
        """What is in one folder, ordered by name, including links and the like; hidden names only
        with `hidden=True`."""
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
    """Whether both are one thing: where case does not count, `a.md` can become `A.md`."""
    try:
        other = there.status()
    except FileNotFoundError:
        return False
    is_one = stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
    return is_one and old.parent == new.parent and os.path.samestat(status, other)
