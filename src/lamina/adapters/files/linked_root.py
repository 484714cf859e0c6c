"""Provides a root that follows links as long as they stay inside, for agent files, which often link
to one another.

Law: nothing outside the root is ever opened. Links are resolved first, name by name; then the
link-free path is opened, and refused if it has just become a link.
"""

import os
import stat
from pathlib import Path, PurePosixPath

from lamina.adapters.files.paths import LeadsOut, PathRefused, refuse_os_errors, resolve_folder
from lamina.adapters.files.root import RootHandle

# The same limit as in Linux.
MAX_LINKS = 40


class LinkedRoot:
    """A folder and its content, accessed by full paths as a person spells them. Hidden names are
    treated like any others. Every method raises `PathRefused` for a path that it will not open, and
    `LeadsOut` for one that leaves the root."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = resolve_folder(folder, "the root")
        self.spelling = full_path(folder)
        self._handle = RootHandle(self.path)

    def real_path(self, path: str | os.PathLike[str]) -> PurePosixPath:
        """Resolve a path's links, relative to the root. The result may not exist."""
        inside = self._inside(path)
        if not self._has_links(inside):
            return inside
        real: list[str] = []
        names = list(reversed(inside.parts))
        links = 0
        while names:
            name = names.pop()
            if name == "..":
                if not real:
                    raise self._leads_out(path)
                real.pop()
                continue
            target = self._link(PurePosixPath(*real, name))
            if target is None:
                real.append(name)
                continue
            links += 1
            if links > MAX_LINKS:
                raise PathRefused("refused", f"{inside} is a circle of links")
            if os.path.isabs(target):
                try:
                    target, real = str(self._inside(target)), []
                except LeadsOut:
                    raise self._leads_out(path) from None
            names += reversed(PurePosixPath(target).parts)
        return PurePosixPath(*real)

    def status(self, path: str | os.PathLike[str]) -> os.stat_result:
        """Return the status of the file or folder at a path, following links."""
        real = self.real_path(path)
        if not real.parts:
            return os.stat(self.path)
        with self._handle.place(real) as place:
            return place.status()

    def is_there(self, path: str | os.PathLike[str]) -> bool:
        """Check whether anything has this name; a link counts, wherever it leads."""
        try:
            inside = self._inside(path)
            if not inside.parts:
                return True
            real = self.real_path(self.path / inside.parent) / inside.name
            with self._handle.place(real) as place:
                place.status()
        except PathRefused:
            return False
        return True

    def read(self, path: str | os.PathLike[str], limit: int) -> bytes:
        """Return a regular file's bytes."""
        return self._handle.read(self.real_path(path), limit)[0]

    def entries(self, folder: str | os.PathLike[str]) -> list[tuple[str, os.stat_result]]:
        """Return the sorted names in a folder with their statuses (for a link, its own)."""
        real = self.real_path(folder)
        with refuse_os_errors(real):
            return sorted(self._handle.names(real), key=lambda entry: entry[0])

    def names(self, folder: str | os.PathLike[str]) -> list[str]:
        """Return the sorted names in a folder."""
        return [name for name, _ in self.entries(folder)]

    def _inside(self, path: str | os.PathLike[str]) -> PurePosixPath:
        full = full_path(path)
        for root in (self.spelling, self.path):
            if full.is_relative_to(root):
                return PurePosixPath(full.relative_to(root).as_posix())
        raise self._leads_out(path)

    def _has_links(self, path: PurePosixPath) -> bool:
        """Check whether a path may contain links; a single check rules this out for most paths."""
        if not path.parts:
            return False
        try:
            with self._handle.place(path) as place:
                return stat.S_ISLNK(place.status().st_mode)
        except PathRefused as refusal:
            return refusal.reason != "missing"

    def _link(self, path: PurePosixPath) -> str | None:
        """Return the target of the link at a path; None if it is not a link."""
        try:
            with self._handle.place(path) as place:
                if not stat.S_ISLNK(place.status().st_mode):
                    return None
                return os.readlink(place.name, dir_fd=place.folder)
        except PathRefused as refusal:
            if refusal.reason == "missing":
                return None
            raise

    def _leads_out(self, path: str | os.PathLike[str]) -> LeadsOut:
        return LeadsOut("refused", f"{os.fspath(path)} leads out of {str(self.spelling)!r}")


def full_path(path: str | os.PathLike[str]) -> Path:
    """Make a path absolute without following its links."""
    return Path(os.path.abspath(path))
