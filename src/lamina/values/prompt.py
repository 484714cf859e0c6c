"""The prompt: segments in wire order. A segment's digest says what is on the wire, nothing else."""

from collections.abc import Iterator
from itertools import chain as concat
from typing import Literal

from msgspec import Struct

from lamina.values.chain import Chain
from lamina.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult

Layer = Literal["tools", "L1", "L2", "L3", "L4", "L5"]
LAYERS: tuple[Layer, ...] = ("tools", "L1", "L2", "L3", "L4", "L5")
WireRole = Literal["tools", "system", "user", "assistant", "tool"]
Content = Text | Image | ToolCall | ToolResult | Thinking | ToolDefinition


class Segment(Struct, frozen=True, kw_only=True):
    """`message` groups the segments of one wire message; `source` says where the bytes come from;
    `cached` says whether they will stand there again in the next request."""

    layer: Layer
    role: WireRole
    message: str
    content: Content
    source: str
    digest: str
    tokens: int
    cached: bool = True

    @property
    def text(self) -> str:
        match self.content:
            case Text(text=text):
                return text
            case ToolResult(text=text) | Thinking(text=text):
                return text
            case ToolCall(arguments=arguments):
                return arguments
            case _:
                return ""


class Link(Struct, frozen=True):
    """A segment with what all segments up to it amount to, so that totals cost nothing."""

    segment: Segment
    tokens: int
    running: str


class Prompt(Struct, frozen=True, kw_only=True):
    """Front (tools, L1, library), history, then what belongs to this turn alone."""

    front: Chain[Link]
    history: Chain[Link]
    turn: tuple[Segment, ...]

    def __iter__(self) -> Iterator[Segment]:
        for link in concat(self.front, self.history):
            yield link.segment
        yield from self.turn

    def __len__(self) -> int:
        return len(self.front) + len(self.history) + len(self.turn)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self)

    @property
    def tokens(self) -> int:
        return total(self.front) + total(self.history) + sum(s.tokens for s in self.turn)

    def cached_run(self) -> int:
        """How many leading segments the next request begins with: up to the first uncached."""
        stable = len(self.front) + len(self.history)
        for segment in self.turn:
            if not segment.cached:
                break
            stable += 1
        return stable


def total(links: Chain[Link]) -> int:
    return links[-1].tokens if len(links) else 0


class LayerSize(Struct, frozen=True, kw_only=True):
    layer: Layer
    tokens: int
    segments: int
    digest: str
