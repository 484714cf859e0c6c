"""Reads an agent's files in full through a root, and records their stamps.

Law: only regular files inside the root are opened. Every file that can be decoded as text is read;
unusual encodings are reported.
"""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lamina.adapters.agents.fields import ProblemList
from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import LeadsOut, PathRefused

MEGABYTE = 1_000_000
# A folder with more files probably contains data: nobody writes that many rules by hand.
MAX_BYTES = 20 * MEGABYTE
MAX_FILES = 10_000
# A file written just before it was checked may change again unnoticed.
_FRESH_NS = 50_000_000

# None if nothing existed.
Stamp = tuple[int, int, int, int] | None


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """Return a stamp that changes when a file is modified, a folder's entries are added, removed or
    renamed, or a link is redirected."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class Disk:
    """A reader of files below `root`, which is `door` or inside it. Everything is opened through
    `door`, so that not even the root can be swapped for a link. Paths are shown as a person would
    write them: relative to the current folder if the agent was named that way."""

    def __init__(
        self,
        root: Path,
        problems: ProblemList,
        *,
        relative: bool = False,
        door: LinkedRoot | None = None,
    ) -> None:
        self.root = root
        self.problems = problems
        self.stamps: dict[str, Stamp] = {}
        self.door = door or LinkedRoot(root)
        self._real_root = self.door.real_path(root)
        self._here = os.getcwd() if relative else None

    def label(self, path: Path) -> str:
        label = os.path.relpath(path, self._here) if self._here else str(path)
        # Names that cannot be decoded are shown as bytes.
        return label.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    def is_file(self, path: Path) -> bool:
        """Check whether anything but a folder has this name; it must then be read, and a failure is
        a problem."""
        self._watch(path)
        return self.door.is_there(path) and not self._leads_to_folder(path)

    def is_folder(self, path: Path) -> bool:
        self._watch(path)
        return self._leads_to_folder(path)

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none if it is not a folder."""
        self._watch(folder)
        if not self.door.is_there(folder) or not self.is_inside(folder):
            return []
        try:
            return self.door.names(folder)
        except PathRefused as refusal:
            if refusal.reason != "missing":
                self._report(folder, refusal)
            return []

    def walk(self, folder: Path) -> list[Path]:
        """Return all files below a folder in order, except hidden ones. Links inside the root are
        followed, but no folder is entered twice."""
        paths: list[Path] = []
        for path in self._walk(folder, set()):
            if len(paths) == MAX_FILES:
                problem = f"has more than {MAX_FILES:,} files; those after them are not read"
                self.problems.error(self.label(folder), problem)
                break
            paths.append(path)
        return paths

    def _walk(self, folder: Path, real_paths: set[PurePosixPath]) -> Iterator[Path]:
        names = self.names(folder)
        if not names or (real := self.real_path(folder)) is None or real in real_paths:
            return
        real_paths.add(real)
        for name in names:
            path = folder / name
            if name.startswith("."):
                continue
            if self._leads_to_folder(path) or self.leads_out(path):
                yield from self._walk(path, real_paths)
            else:
                yield path

    def real_path(self, path: Path) -> PurePosixPath | None:
        """Return the path of a file or folder with links resolved; None if it is outside the root
        or missing."""
        try:
            real = self.door.real_path(path)
        except PathRefused:
            return None
        return real if real.is_relative_to(self._real_root) else None

    def identity(self, path: Path) -> tuple[int, int] | None:
        """Return a file's identity, independent of links; None if it does not exist."""
        try:
            status = self.door.status(path)
        except PathRefused:
            return None
        return status.st_dev, status.st_ino

    def leads_out(self, path: Path) -> bool:
        """Check whether a path leaves the root once its links are followed."""
        try:
            return not self.door.real_path(path).is_relative_to(self._real_root)
        except LeadsOut:
            return True
        except PathRefused:
            return False

    def is_inside(self, path: Path) -> bool:
        """Check whether a path stays below the root; add a problem if not."""
        inside = not self.leads_out(path)
        if not inside:
            problem = f"leads out of {self.label(self.root)!r} and is not opened"
            self.problems.error(self.label(path), problem)
        return inside

    def text(self, path: Path) -> str | None:
        """Return a file's text with normalized line endings; None if it cannot be read as text."""
        self._watch(path)
        data = self._bytes(path) if self.is_inside(path) else None
        return None if data is None else self._decode(path, data)

    def _leads_to_folder(self, path: Path) -> bool:
        try:
            return not self.leads_out(path) and stat.S_ISDIR(self.door.status(path).st_mode)
        except PathRefused:
            return False

    def _watch(self, path: Path) -> None:
        # Taken before reading, so that a change during the read is noticed.
        self._keep_stamp(path)
        real = self.real_path(path)
        if real is not None and (target := self.door.path / real) != path:
            self._keep_stamp(target)

    def _keep_stamp(self, path: Path) -> None:
        stamp = stamp_of(path)
        if stamp and time.time_ns() - max(stamp[0], stamp[1]) < _FRESH_NS:
            stamp = (-1, -1, -1, -1)
        self.stamps.setdefault(str(path), stamp)

    def _bytes(self, path: Path) -> bytes | None:
        try:
            status = self.door.status(path)
            size, limit = status.st_size / MEGABYTE, MAX_BYTES // MEGABYTE
            if not stat.S_ISREG(status.st_mode):
                problem = "is not a regular file and is not read"
            elif status.st_size > MAX_BYTES:
                problem = f"has {size:,.1f} MB, over the limit of {limit} MB; it is not read"
            else:
                return self.door.read(path, MAX_BYTES)
        except PathRefused as refusal:
            self._report(path, refusal)
            return None
        self.problems.error(self.label(path), problem)
        return None

    def _report(self, path: Path, refusal: PathRefused) -> None:
        if refusal.reason == "missing":
            problem = "does not exist, or is a link to what does not"
        else:
            problem = f"cannot be read: {refusal.detail}"
        self.problems.error(self.label(path), problem)

    def _decode(self, path: Path, data: bytes) -> str | None:
        label = self.label(path)
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.problems.warn(label, "is UTF-16 and was read as that; save it as UTF-8", 1)
            return _plain(data.decode("utf-16", "replace"))
        if b"\0" in data:
            line = data[: data.index(b"\0")].count(b"\n") + 1
            self.problems.error(label, "is not text: it holds a byte 0; it is not read", line)
            return None
        if data.startswith(b"\xef\xbb\xbf"):
            self.problems.warn(label, "begins with a byte order mark, which was left out", 1)
            data = data[3:]
        if b"\r" in data:
            line = data[: data.index(b"\r")].count(b"\n") + 1
            self.problems.warn(label, "has line ends of Windows; they are read as plain ones", line)
        try:
            return _plain(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            text, how = _guess(data)
            problem = f"is not UTF-8 (byte {data[error.start]:#04x}); {how}. Save it as UTF-8"
            self.problems.warn(label, problem, line)
            return _plain(text)


def _guess(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("cp1252"), "it was read as Windows-1252"
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), "such bytes are shown as �"


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
