"""Passages of notes as they are now, through the one door into a folder."""

from functools import lru_cache
from pathlib import Path

from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import PathRefused
from lamina.engine.runners.answer import CitedSource

LONGEST = 1_200
_MOST_BYTES = 4_000_000


def read_excerpt(folder: Path, source: CitedSource) -> str:
    """The lines that a source names; empty if they cannot be read, as of a page."""
    if not source.start or "://" in source.path:
        return ""
    try:
        root = LinkedRoot(folder)
        status = root.status(folder / source.path)
        lines = _lines(str(folder), source.path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, PathRefused):
        return ""
    text = "\n".join(lines[source.start - 1 : source.end]).strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


@lru_cache(maxsize=64)
def _lines(folder: str, path: str, changed: int, size: int) -> tuple[str, ...]:  # noqa: ARG001
    """The lines of a file as it was when it had this size and time."""
    data = LinkedRoot(folder).read(Path(folder, path), _MOST_BYTES)
    return tuple(data.decode("utf-8", "replace").splitlines())
