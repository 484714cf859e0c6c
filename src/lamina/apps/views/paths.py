"""The paths of a workspace, for completion.

Law: looking takes a bounded time however large the folder is; near files are found first.
"""

import os
import time
from collections import deque
from pathlib import Path

from lamina.adapters.files.paths import is_sayable

SKIPPED = {"node_modules", "__pycache__"}
MOST, SECONDS = 20_000, 0.5
# For so long a list is good enough.
FRESH_S = 3.0


def scan(root: Path, most: int = MOST, seconds: float = SECONDS) -> list[str]:
    """Files below `root` by their paths, folder by folder from the top; left out are hidden ones,
    links, names that nobody can type, and what cannot be looked at in time."""
    paths: list[str] = []
    waiting = deque([""])
    end = time.monotonic() + seconds
    count = 0
    while waiting:
        folder = waiting.popleft()
        try:
            entries = os.scandir(root / folder)
        except OSError:
            continue
        inner: list[str] = []
        files: list[str] = []
        with entries:
            for entry in entries:
                count += 1
                if count > most or time.monotonic() > end:
                    waiting.clear()
                    break
                if entry.name.startswith(".") or entry.name in SKIPPED or entry.is_symlink():
                    continue
                if not is_sayable(entry.name):
                    continue
                path = f"{folder}/{entry.name}" if folder else entry.name
                (inner if entry.is_dir(follow_symlinks=False) else files).append(path)
        paths += sorted(files)
        if waiting or count <= most:
            waiting += sorted(inner)
    return paths


def match(paths: list[str], wanted: str, most: int = 50) -> list[str]:
    """The paths that hold `wanted` in any case: first those whose name begins with it, then those
    whose name holds it."""
    needle = wanted.casefold()
    ranking: list[tuple[int, int, str]] = []
    for path in paths:
        whole = path.casefold()
        name = whole.rpartition("/")[2]
        if needle not in whole:
            continue
        rank = 0 if name.startswith(needle) else 1 if needle in name else 2
        ranking.append((rank, path.count("/"), path))
    return [path for *_, path in sorted(ranking)[:most]]


class Paths:
    """The paths of one folder, looked up again when they are no longer fresh."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: list[str] = []
        self._at = float("-inf")

    def all(self) -> list[str]:
        """All of them, as they were a moment ago."""
        if time.monotonic() - self._at > FRESH_S:
            self._paths = scan(self._root)
            self._at = time.monotonic()
        return self._paths

    def match(self, wanted: str) -> list[str]:
        return match(self.all(), wanted)
