"""A provider that plays scripts: what it says, when it fails, and where it waits."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import anyio
import msgspec

from lamina.core.ports import Provider
from lamina.core.values.message import Block, Text, ToolCall
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece

# An id, a name and the arguments: a mapping, or JSON text as a model might write it.
Call = tuple[str, str, Mapping[str, Any] | str]
Step = Piece | BaseException | anyio.Event
Script = list[Step]
SILENT = Usage(cache_reported=False)


def saying(text: str, *, usage: Usage = SILENT, stop: str = "stop") -> Script:
    """A whole answer, word by word."""
    reply = Reply(blocks=(Text(text),), usage=usage, stop=stop)
    return [*spoken(text), reply]


def spoken(text: str) -> Script:
    """The words of an answer that has not ended."""
    first, *rest = text.split(" ")
    return [TextPiece(first), *(TextPiece(f" {word}") for word in rest)]


def calling(*calls: Call, text: str = "", usage: Usage = SILENT) -> Script:
    """An answer that calls tools, after some words."""
    blocks: list[Block] = [Text(text)] if text else []
    pieces: Script = spoken(text) if text else []
    for index, (call, name, given) in enumerate(calls):
        arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        blocks.append(ToolCall(id=call, name=name, arguments=arguments))
        pieces.append(CallPiece(index=index, name=name, arguments=arguments))
    return [*pieces, Reply(blocks=tuple(blocks), usage=usage, stop="tool_calls")]


class ProviderFake:
    """Plays one script per request, in order, and keeps the bodies it got. A script is a list of
    pieces; exceptions in it are raised, and at an event it waits until that is set. One that ends
    without a `Reply` breaks off. When all are played it says that it is done."""

    def __init__(self, *scripts: Iterable[Step]) -> None:
        self.scripts: list[Iterable[Step]] = list(scripts)
        self.bodies: list[Mapping[str, Any]] = []
        # Set when it waits, for those who want to do something meanwhile.
        self.waits = anyio.Event()
        self.closed = 0

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        self.bodies.append(body)
        try:
            for step in self.scripts.pop(0) if self.scripts else saying("Done."):
                await anyio.lowlevel.checkpoint()
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, anyio.Event):
                    self.waits.set()
                    await step.wait()
                    continue
                yield step
        finally:
            self.closed += 1


class ProvidersFake:
    """One provider for every target; or the error that stands in its place."""

    def __init__(self, provider: Provider | BaseException) -> None:
        self.given = provider
        self.targets: list[str] = []

    async def provider(self, target: Target) -> Provider:
        self.targets.append(target.name)
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given
