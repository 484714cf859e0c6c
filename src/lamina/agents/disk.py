"""Files of an agent: opened within a root, read whole, and remembered by their stamps.

Law: a file that leads out of the root is not opened. Whatever can be read as text is read; how it
had to be decoded is reported.
"""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from lamina.agents.problems import ProblemList

MEGABYTE = 1_000_000
# No one writes more rules by hand; it is probably a folder of data.
MOST_BYTES = 20 * MEGABYTE
MOST_FILES = 10_000
# A file written just before it was checked may change again unnoticed.
_FRESH_NS = 50_000_000

# None if there was nothing.
Stamp = tuple[int, int, int, int] | None


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """Changes when a file does, or when a folder gains, loses or renames an entry."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class Disk:
    """Reads below `root`. Paths are shown as a person would write them: relative to the current
    folder, if that is how they named the agent."""

    def __init__(self, root: Path, problems: ProblemList, *, relative: bool = False) -> None:
        self.root = root
        self.problems = problems
        self.stamps: dict[str, Stamp] = {}
        self._real_root = root.resolve()
        self._here = os.getcwd() if relative else None

    def label(self, path: Path) -> str:
        label = os.path.relpath(path, self._here) if self._here else str(path)
        # Names that are not valid text are shown by their bytes.
        return label.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    def is_file(self, path: Path) -> bool:
        self._watch(path)
        return path.is_file()

    def is_folder(self, path: Path) -> bool:
        self._watch(path)
        return path.is_dir()

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted; none if it is not a folder."""
        self._watch(folder)
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.problems.error(self.label(folder), f"cannot be read: {error.strerror}")
            return []

    def walk(self, folder: Path) -> list[Path]:
        """All files below a folder in order, except hidden ones. Links are followed inside the
        root, and no folder is entered twice."""
        paths: list[Path] = []
        for path in self._walk(folder, set()):
            if len(paths) == MOST_FILES:
                problem = f"has more than {MOST_FILES:,} files; those after them are not read"
                self.problems.error(self.label(folder), problem)
                break
            paths.append(path)
        return paths

    def _walk(self, folder: Path, real_paths: set[str]) -> Iterator[Path]:
        if not folder.is_dir():
            self._watch(folder)
            return
        if (real := os.path.realpath(folder)) in real_paths or not self.is_inside(folder):
            return
        real_paths.add(real)
        for name in self.names(folder):
            path = folder / name
            if name.startswith("."):
                continue
            if path.is_dir():
                yield from self._walk(path, real_paths)
            else:
                yield path

    def leads_out(self, path: Path) -> bool:
        """Whether a path leaves the root once its links are followed."""
        return not Path(os.path.realpath(path)).is_relative_to(self._real_root)

    def is_inside(self, path: Path) -> bool:
        """Whether a path stays below the root; a problem is added if not."""
        inside = not self.leads_out(path)
        if not inside:
            problem = f"leads out of {self.label(self.root)!r} and is not opened"
            self.problems.error(self.label(path), problem)
        return inside

    def text(self, path: Path) -> str | None:
        """The text of a file with plain line ends; None if it cannot be read as text."""
        self._watch(path)
        data = self._bytes(path) if self.is_inside(path) else None
        return None if data is None else self._decode(path, data)

    def _watch(self, path: Path) -> None:
        # Before it is read, so that a change during the read counts as one after it.
        stamp = stamp_of(path)
        if stamp and time.time_ns() - max(stamp[0], stamp[1]) < _FRESH_NS:
            stamp = (-1, -1, -1, -1)
        self.stamps.setdefault(str(path), stamp)

    def _bytes(self, path: Path) -> bytes | None:
        try:
            # A pipe, for one, would make us wait.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                size, limit = status.st_size / MEGABYTE, MOST_BYTES // MEGABYTE
                if not stat.S_ISREG(status.st_mode):
                    problem = "is not a file and is not read"
                elif status.st_size > MOST_BYTES:
                    problem = f"has {size:,.1f} MB, over the limit of {limit} MB; it is not read"
                else:
                    return file.read(MOST_BYTES)
        except FileNotFoundError:
            problem = "does not exist, or is a link to what does not"
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        self.problems.error(self.label(path), problem)
        return None

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
