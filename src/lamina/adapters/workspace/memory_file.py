"""A person's memory file: what every session is told about them.

Laws: it is Markdown that a person may edit by hand; adding appends a line, and nothing else is ever
rewritten but by a person, who then saw what is there. A file that cannot be read is not written.
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
    """One remembered line with its number."""

    number: int
    text: str


class MemoryFile:
    """The file at `path`; it need not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return f"the memory file {self.path.name}"

    async def read(self) -> str:
        """What is remembered.

        Raises:
            UsageError: the file is there and cannot be read.
        """
        return (await self._bytes()).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")

    async def lines(self) -> tuple[MemoryLine, ...]:
        """What is remembered, line by line."""
        lines = [line for line in (await self.read()).split("\n") if line.strip()]
        return tuple(MemoryLine(number, _bare(line)) for number, line in enumerate(lines, 1))

    async def add(self, text: str) -> bool:
        """Remembers one more thing; False if it is already there.

        Raises:
            UsageError: there is nothing to remember, or the file cannot be written.
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
        """Removes the line with that number, and returns its text.

        Raises:
            UsageError: there is no such line, or the file cannot be written.
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
        """Replaces all of it by what a person wrote. `expected` is the sha256 of what they read,
        empty if there was nothing.

        Raises:
            FileChanged: it is another by now.
            UsageError: the file cannot be written.
        """
        if await self.digest() != expected:
            raise FileChanged("refused", f"{self.path.name} changed since it was read")
        await self._write(mend_text(text))

    async def digest(self) -> str:
        """The sha256 of the file; empty if there is none.

        Raises:
            UsageError: the file is there and cannot be read.
        """
        data = await anyio.to_thread.run_sync(read_own_file, self.path, MAX_BYTES)
        return "" if data is None else sha256(data).hexdigest()

    async def _bytes(self) -> str:
        """The file as it is, including line ends."""
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
        """All or nothing: writes a file beside it, then moves it into place."""
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
