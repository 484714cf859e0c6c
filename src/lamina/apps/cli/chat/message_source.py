"""Where messages come from: what the chat needs from a keyboard, and a pipe or file in its
place."""

import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from lamina.apps.cli.stdio import open_input


class InputInterrupt(Exception):
    """Ctrl-C while a message was expected."""


class MessageSource(Protocol):
    async def read(self, default: str = "", /) -> str:
        """Return the next message; `default` is offered for editing.

        Raises:
            EOFError: there are no more.
            InputInterrupt: Ctrl-C.
        """
        ...

    async def choose(self, question: str, answers: Mapping[str, str], /) -> str | None:
        """Ask, and return the value in `answers` of the typed line; None if there is no one to ask.

        Raises:
            InputInterrupt: Ctrl-C.
        """
        ...

    def interrupt(self) -> bool:
        """Make a waiting `read` raise `InputInterrupt`; return False if none is waiting."""
        ...


def match_answer(line: str, answers: Mapping[str, str]) -> str | None:
    """Return the value of a whole line; None if it is not an answer."""
    return answers.get(line.strip().lower())


class SilentSource:
    """A source without messages."""

    async def read(self, _default: str = "", /) -> str:
        raise EOFError

    async def choose(self, _question: str, _answers: Mapping[str, str], /) -> str | None:
        return None

    def interrupt(self) -> bool:
        return False


class LineSource:
    """One message per line. The next line answers a question if it is one of the answers; any other
    line stays the next message."""

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
