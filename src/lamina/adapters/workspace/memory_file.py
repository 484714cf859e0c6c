"""Manages a person's memory file, which tells every session about them.

Laws: the file is Markdown that a person may edit by hand; adding appends a line, and only a person
who has seen the content can rewrite anything else. An unreadable file is never written to.
"""

from hashlib import sha256
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from lamina.adapters.files.durable_writes import replace_file
from lamina.adapters.files.own_file import read_own_file
from lamina.adapters.files.paths import FileChanged
from lamina.core.codec import mend_text
from lamina.core.text.secrets import count_marks
from lamina.errors import UsageError

MAX_BYTES = 64 * 1024
BYTE_ORDER_MARK = "\ufeff"


class MemoryLine(Struct, frozen=True):
    """A remembered line with its number."""

    number: int
    text: str


class MemoryFile:
    """The memory file at `path`, which may not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return f"the memory file {self.path.name}"

    async def read(self) -> str:
        """Return the content.

        Raises:
            UsageError: the file exists and cannot be read.
        """
        return (await self._bytes()).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")

    async def lines(self) -> tuple[MemoryLine, ...]:
        """Return the remembered lines."""
        lines = [line for line in (await self.read()).split("\n") if line.strip()]
        return tuple(MemoryLine(number, _bare(line)) for number, line in enumerate(lines, 1))

    async def add(self, text: str) -> bool:
        """Add a line; return False if it is already there.

        Raises:
            UsageError: the text is empty, or the file cannot be written.
        """
        line = _bare(" ".join(mend_text(text).split()))
        if not line:
            raise UsageError("there is nothing to remember: say what")
        if count_marks(line):
            raise UsageError(
                "the text holds a mark ([redacted: ...]) where a secret was left out: there is "
                "less to remember than there seems to be; say it without the mark"
            )
        if any(memory.text == line for memory in await self.lines()):
            return False
        before = await self._bytes()
        end = "\r\n" if "\r\n" in before else "\n"
        joint = "" if not before or before.endswith("\n") else end
        await self._write(f"{before}{joint}- {line}{end}")
        return True

    async def forget(self, number: int) -> str:
        """Remove the line with the given number and return its text.

        Raises:
            UsageError: the line does not exist, or the file cannot be written.
        """
        lines = (await self._bytes()).split("\n")
        places = [place for place, line in enumerate(lines) if line.strip()]
        if not 1 <= number <= len(places):
            state = f"it holds {len(places)}" if places else "nothing is remembered"
            raise UsageError(f"there is no line {number} in {self.name}: {state}")
        line_out = lines.pop(places[number - 1])
        await self._write("\n".join(lines))
        return _bare(line_out)

    async def rewrite(self, text: str, expected: str) -> None:
        """Replace the whole file with a person's text. `expected` is the sha256 of the content they
        read; empty if there was none.

        Raises:
            FileChanged: it has changed since.
            UsageError: the file cannot be written.
        """
        if await self.digest() != expected:
            raise FileChanged("refused", f"{self.path.name} changed since it was read")
        await self._write(mend_text(text))

    async def digest(self) -> str:
        """Return the sha256 of the file; empty if it does not exist.

        Raises:
            UsageError: the file exists and cannot be read.
        """
        data = await anyio.to_thread.run_sync(read_own_file, self.path, MAX_BYTES)
        return "" if data is None else sha256(data).hexdigest()

    async def _bytes(self) -> str:
        """Return the file unchanged, including line endings."""
        return await anyio.to_thread.run_sync(self._read)

    async def _write(self, text: str) -> None:
        await anyio.to_thread.run_sync(self._replace, text)

    def _read(self) -> str:
        data = read_own_file(self.path, MAX_BYTES)
        if data is None:
            return ""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.path} is not UTF-8 at byte {error.start}") from error

    def _replace(self, text: str) -> None:
        """Replace the file atomically: write a new one beside it, then move it into place."""
        data = text.encode()
        if len(data) > MAX_BYTES:
            raise UsageError(f"{self.path} would have more than {MAX_BYTES // 1024} kB")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path.resolve(), data, keeps_mode=True)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from error


def _bare(line: str) -> str:
    plain = line.removeprefix(BYTE_ORDER_MARK).strip()
    return plain.removeprefix("- ").removeprefix("* ").strip()
