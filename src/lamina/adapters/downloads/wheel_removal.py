"""Removes the files of a model from this machine.

Law: of what is linked into the folder of models the link goes, and what it leads to stays.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from lamina.adapters.downloads.file_use import is_in_use
from lamina.adapters.downloads.wheel import ModelWheel
from lamina.errors import UsageError


def model_files(wheel: ModelWheel) -> list[Path]:
    """What is here of a model, damaged or not, with what was made from it."""
    folder = wheel.folder_path
    if wheel.folder and folder.is_symlink():
        return [folder]
    if wheel.folder:
        return sorted(path for path in folder.rglob("*") if path.is_file())
    paths = [*map(wheel.path_of, wheel.files), *([wheel.incomplete_path] if wheel.parts else [])]
    return [path for path in paths if path.is_file()]


def size_of(files: Sequence[Path]) -> int:
    """The room that files take; a link takes next to none."""
    return sum(path.lstat().st_size for path in files)


def remove_model_files(wheel: ModelWheel) -> int:
    """Removes all of them; gives the bytes that are free now.

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
