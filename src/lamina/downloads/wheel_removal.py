"""Removes the files of a model from this machine."""

import shutil
from pathlib import Path

from lamina.downloads.file_use import is_in_use
from lamina.downloads.wheel import ModelWheel
from lamina.errors import UsageError


def model_files(wheel: ModelWheel) -> list[Path]:
    """What is here of a model, damaged or not, with what was made from it."""
    if wheel.folder:
        return sorted(path for path in wheel.folder_path.rglob("*") if path.is_file())
    return [path for path in map(wheel.path_of, wheel.files) if path.is_file()]


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
    size = sum(path.stat().st_size for path in files)
    try:
        for path in files:
            path.unlink()
        if wheel.folder:
            shutil.rmtree(wheel.folder_path)
    except OSError as error:
        raise UsageError(
            f"model {wheel.name!r} cannot be removed: {error.strerror or error}; it may be in use"
        ) from error
    return size
