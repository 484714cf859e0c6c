"""Puts files into the cache.

Laws: a file gets its name there only when it is complete and its bytes are on the disk. Whatever
happens, nothing else is left behind.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO, Final

from lamina.errors import ModelMissing

# Working folders. One that nothing was written to for a day was left by a crash.
WORKING_PREFIX: Final = ".pull-"
ABANDONED_S = 86_400.0


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder on the disk where a file will be kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(f"{WORKING_PREFIX}*"):
        with suppress(OSError):
            last_write = max(path.stat().st_mtime for path in (leftover, *leftover.rglob("*")))
            if time.time() - last_write > ABANDONED_S:
                shutil.rmtree(leftover, ignore_errors=True)
    work = Path(mkdtemp(prefix=WORKING_PREFIX, dir=folder))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def put_in_place(fresh: Path, path: Path, is_good: Callable[[Path], bool]) -> None:
    """Gives a file its name; `is_good` tells whether a file that cannot be replaced will do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fresh.replace(path)
    except PermissionError:
        # On Windows a file that is in use stays: somebody else came first, and someone runs it.
        if not is_good(path):
            raise
        return
    if sys.platform != "win32":
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_to_disk(out: BinaryIO) -> None:
    """Makes sure that what was written to a file is on the disk."""
    out.flush()
    os.fsync(out.fileno())


def storage_error(name: str, folder: Path, problem: str) -> ModelMissing:
    return ModelMissing(
        f"model {name!r} cannot be kept in {str(folder)!r}: {problem}; make room, "
        f"or set LAMINA_CACHE to a folder on another disk"
    )
