"""Where messages come from: what the chat needs of a keyboard, and a pipe or a file as one."""

import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from lamina.apps.cli.stdio import open_input


class InputInterrupt(Exception):
    """Ctrl-C where a message was wanted."""


class MessageSource(Protocol):
    async def read(self, default: str = "", /) -> str:
        """The next message; `default` is offered to be edited.

        Raises:
            EOFError: there are no more.
            InputInterrupt: Ctrl-C.
        """
        ...

    async def choose(self, question: str, answers: Mapping[str, str], /) -> str | None:
        """What the line that is typed stands for in `answers`; None if there is nobody to answer.

        Raises:
            InputInterrupt: Ctrl-C.
        """
        ...

    def interrupt(self) -> bool:
        """Makes a `read` that waits raise `InputInterrupt`. False if none waits."""
        ...


def match_answer(line: str, answers: Mapping[str, str]) -> str | None:
    """What a whole line stands for; None if it is no answer."""
    return answers.get(line.strip().lower())


class SilentSource:
    """Nobody says anything."""

    async def read(self, _default: str = "", /) -> str:
        raise EOFError

    async def choose(self, _question: str, _answers: Mapping[str, str], /) -> str | None:
        return None

    def interrupt(self) -> bool:
        return False


class LineSource:
    """A message a line. A question is answered by the next line, if it is one of the answers; any
    other line is none and stays the next message."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._lines: deque[str] = deque()
        self._rest = b""
        self._ended = False

    async def read(self, _default: str = "", /) -> str:
        while not self._lines and not self._ended:
            await self._take()
        if not self._lines:
            raise EOFError
        return self._lines.popleft()

    async def choose(self, _question: str, answers: Mapping[str, str], /) -> str | None:
        try:
            line = await self.read()
        except EOFError:
            return None
        answer = match_answer(line, answers)
        if answer is None:
            self._lines.appendleft(line)
        return answer

    def interrupt(self) -> bool:
        return False

    async def _take(self) -> None:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._ended = True
            chunk = b"\n" if self._rest else b""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        self._lines += [line.decode("utf-8", "replace").removesuffix("\r") for line in whole]


@asynccontextmanager
async def open_lines() -> AsyncIterator[LineSource]:
    """Standard input, line by line."""
    async with open_input(sys.stdin.fileno()) as chunks:
        yield LineSource(chunks)
