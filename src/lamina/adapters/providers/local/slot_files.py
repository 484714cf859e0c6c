"""What a model has read of a session, kept on disk between turns and between processes.

Laws: losing it loses nothing but time. It is used only with the model file it was made with, and
only its owner can read it, as it holds the conversation. The least recently used goes first.
"""

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

SUFFIX = ".slot"
# A token takes about 23 KB with the smallest model, and several times that with larger ones.
MAX_BYTES = 2 << 30
MAX_FILES = 32


class SlotFiles:
    """A folder with one file per session."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self._model = _identify(model)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def file_name(self, session: str) -> str:
        return _file_name(self._model, session)

    def has(self, session: str) -> bool:
        return (self.folder / self.file_name(session)).is_file()

    def drop(self, session: str) -> None:
        """Forgets a session whose file turned out to be useless."""
        with contextlib.suppress(OSError):
            (self.folder / self.file_name(session)).unlink()

    def trim(self) -> None:
        """Makes room by removing the least recently used files."""
        trim_slot_files(self.folder)


def drop_slots(folder: Path, models: Iterable[Path], session: str) -> int:
    """Forgets what these models read of a session; gives the bytes that are free now."""
    freed = 0
    for model in models:
        path = folder / _file_name(_identify(model), session)
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            freed += size
    return freed


def _identify(model: Path) -> str:
    facts = model.stat()
    return f"{model.resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}"


def _file_name(model: str, session: str) -> str:
    """The name of a session's file, which reveals neither the model nor the session."""
    digest = hashlib.sha256(f"{model}\0{session}".encode("utf-8", "surrogatepass"))
    return f"{digest.hexdigest()[:40]}{SUFFIX}"


def trim_slot_files(folder: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> int:
    """Removes the oldest files beyond the limits; returns how many were removed."""
    files = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime, facts.st_size, path))
    removed_count = size = 0
    for count, (_, length, path) in enumerate(sorted(files, reverse=True), 1):
        size += length
        if size > max_bytes or count > max_files:
            with contextlib.suppress(OSError):
                path.unlink()
                removed_count += 1
    return removed_count
