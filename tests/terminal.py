"""A terminal with somebody in front of it: a program in it, keys that are typed, and its screen."""

import fcntl
import json
import os
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pexpect
import pyte
from tests.apps.cli.forks import MAX_JOB, start_on_terminal

PROMPT = "› "
# How long anything may take; a machine that does much else is slow.
PATIENCE_S = 60.0
ASKS_FOR_CURSOR = b"\x1b[6n"


class Fork:
    """The installed `lamina` in a pseudo-terminal, as `pexpect.spawn` has any program, without the
    time that it takes to import."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        dimensions: tuple[int, int],
    ) -> None:
        self._terminal, its = os.openpty()
        self.setwinsize(*dimensions)
        self._process, self._report = start_on_terminal(
            *arguments, cwd=Path(cwd), env=env, terminal=its
        )
        self._code: int | None = None

    @property
    def exitstatus(self) -> int | None:
        return self._code if self._code is None or self._code >= 0 else None

    @property
    def signalstatus(self) -> int | None:
        return -self._code if self._code is not None and self._code < 0 else None

    def isalive(self) -> bool:
        if self._code is None and select.select([self._report], [], [], 0)[0]:
            self.wait()
        return self._code is None

    def wait(self) -> None:
        if self._code is None:
            self._code = json.loads(self._report.recv(MAX_JOB))
            self._report.close()

    def read_nonblocking(self, size: int, timeout: float) -> bytes:
        if not select.select([self._terminal], [], [], timeout)[0]:
            raise pexpect.TIMEOUT("")
        try:
            return os.read(self._terminal, size)
        except OSError:
            raise pexpect.EOF("") from None

    def send(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def setwinsize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def kill(self, number: int) -> None:
        if self.isalive():
            os.kill(self._process, number)

    def close(self, *, force: bool) -> None:
        os.close(self._terminal)
        self.wait()


class Terminal:
    """Runs `command` in a pseudo-terminal; `is_forked` if it is the installed one and need not be
    started from nothing. What scrolled off stays in `everything`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        columns: int = 80,
        is_forked: bool = False,
    ) -> None:
        settings = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | dict(env or {})
        hidden = ("COLUMNS", "LINES", "NO_COLOR", "LAMINA_TARGET")
        clean = {name: value for name, value in os.environ.items() if name not in hidden}
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        first, *rest = command
        start: Callable[..., Any] = Fork if is_forked else partial(pexpect.spawn, first)
        self._program = start(rest, cwd=str(cwd), env=clean | settings, dimensions=(rows, columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._program.isalive():
            self._program.kill(signal.SIGKILL)
        self._program.close(force=True)

    # -- looking ---------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def everything(self) -> str:
        """What is on the screen and what scrolled off it."""
        columns = range(self._screen.columns)
        above = ["".join(line[x].data for x in columns) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display])

    @property
    def line(self) -> str:
        """The line that the cursor is on."""
        return str(self._screen.display[self._screen.cursor.y]).rstrip()

    @property
    def cursor_is_hidden(self) -> bool:
        return bool(self._screen.cursor.hidden)

    @property
    def at_prompt(self) -> bool:
        return self.line.startswith(PROMPT.strip())

    # -- waiting ---------------------------------------------------------------------------------

    def wait_for(self, text: str) -> None:
        """Waits until the text has been shown."""
        self._wait(lambda: text in self.everything, f"{text!r} to be shown")

    def wait_for_prompt(self) -> None:
        self._wait(lambda: self.at_prompt, "the prompt")

    def wait_for_words(self, count: int) -> None:
        """Waits until an answer to the last question has so many words."""

        def has_come() -> bool:
            lines = self._said(len(self._prompts())).splitlines()
            # What ends so is no answer yet: the question is being sent or read.
            words = " ".join(line for line in lines if not line.endswith(" …")).split()
            return not self.at_prompt and len(words) >= count

        self._wait(has_come, f"{count} words")

    def wait_for_end(self) -> int:
        """Waits until the program has ended: its exit code, or minus the signal that ended it."""
        self._wait(lambda: not self._program.isalive(), "the end")
        # What it wrote last may still be on its way.
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self._read():
            pass
        if self._program.signalstatus is not None:
            return -int(self._program.signalstatus)
        return int(self._program.exitstatus)

    def _said(self, number: int) -> str:
        """What was shown behind the prompt of that number, up to the next one."""
        lines = self.everything.splitlines()
        places = [*self._prompts(lines), len(lines)]
        return "\n".join(lines[places[number - 1] + 1 : places[number]])

    def _prompts(self, lines: Sequence[str] | None = None) -> list[int]:
        lines = self.everything.splitlines() if lines is None else lines
        return [place for place, line in enumerate(lines) if line.startswith(PROMPT.strip())]

    def _wait(self, claim: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not claim():
            if not self._read() and not claim():
                raise AssertionError(f"ended while waiting for {what}:\n{self.everything}")
            assert time.monotonic() < end, f"waited in vain for {what}:\n{self.everything}"

    def _read(self) -> bool:
        """Takes in what the program wrote, or waits for it a moment. False at its end."""
        try:
            data = self._program.read_nonblocking(1 << 16, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            self._program.wait()
            return False
        self.written += data
        self._stream.feed(data)
        if ASKS_FOR_CURSOR in data:
            at = self._screen.cursor
            self._program.send(f"\x1b[{at.y + 1};{at.x + 1}R")
        return True

    # -- typing ----------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        self._program.send(keys)

    def enter(self, text: str) -> int:
        """Types a line at the prompt and sends it; which prompt that was, counted from 1."""
        self.wait_for_prompt()
        number = len(self._prompts())
        self.type(text)
        # As a person: Enter follows what can be seen.
        last = text.split("\n")[-1][-20:]
        self._wait(lambda: last in self.shown, f"{last!r} to be typed")
        self.type("\r")
        return number

    def say(self, text: str) -> str:
        """Types a line, waits for the next prompt, and gives what was shown in between."""
        number = self.enter(text)
        self._wait(lambda: len(self._prompts()) > number and self.at_prompt, "the next prompt")
        return self._said(number)

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(rows, columns)
        self._program.setwinsize(rows, columns)

    def kill(self, number: int) -> None:
        self._program.kill(number)

    def hang_up(self) -> int:
        """Closes the terminal under the program: its exit code."""
        self._program.ptyproc.fileobj.close()
        end = time.monotonic() + PATIENCE_S
        while self._program.isalive():
            assert time.monotonic() < end, "the program goes on without its terminal"
            time.sleep(0.05)
        return int(self._program.exitstatus)
