"""The files and folders below a folder, in the order of their paths.

Law: hidden names and links are left out. No handle stays open between two folders, so neither depth
nor a caller that stops early leaks any.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from lamina.adapters.files.paths import is_hidden_name, is_sayable, refuse_os_errors
from lamina.adapters.files.root_handle import NamedStatuses, RootHandle

UnreadPaths = list[str] | None


class PathStatus(NamedTuple):
    """Something in the workspace by its path, with its status (for a link, the link's own)."""

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
    """What is below `start`; what cannot be read or named is added to `unread`."""
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
            # One that was deleted meanwhile does not matter.
            if unread is not None and not isinstance(error, FileNotFoundError):
                unread.append(f"{entry.path}: {error.strerror}")
            continue
        todo += _list_below(folder, entries, unread)


def _list_below(
    folder: PurePosixPath, entries: NamedStatuses, unread: UnreadPaths
) -> list[PathStatus]:
    """The files and folders among the entries of a folder, last one first."""
    prefix = f"{folder}/" if folder.parts else ""
    by_path: dict[str, PathStatus] = {}
    for name, status in entries:
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_hidden_name(name) or not (is_folder or stat.S_ISREG(status.st_mode)):
            continue
        path = prefix + name
        if is_sayable(name):
            # With its slash a folder sorts with the paths in it.
            by_path[f"{path}/" if is_folder else path] = PathStatus(path, status)
        elif unread is not None:
            unread.append(f"{path!r}: its name is not UTF-8, or has a backslash")
    return [by_path[path] for path in sorted(by_path, reverse=True)]
