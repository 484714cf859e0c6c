"""The prompt: segments in wire order. A segment's digest says what is on the wire, nothing else."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

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
    """Front (tools, L1, library), history, what is asked in this turn, the steps taken since, and
    the uncached tail. What grows is a chain, so that a request costs what it adds."""

    front: Chain[Link] = Chain()
    history: Chain[Link] = Chain()
    asked: tuple[Segment, ...] = ()
    steps: Chain[Link] = Chain()
    tail: tuple[Segment, ...] = ()
    # Derived, and asked for often.
    tokens: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "tokens", sum(map(total, self.parts)))

    def __iter__(self) -> Iterator[Segment]:
        return self.since(0)

    def since(self, index: int) -> Iterator[Segment]:
        """The segments from `index` on."""
        for part in self.parts:
            if isinstance(part, Chain):
                yield from (link.segment for link in part.since(min(index, len(part))))
            else:
                yield from part[index:]
            index = max(0, index - len(part))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def parts(self) -> tuple[Chain[Link] | tuple[Segment, ...], ...]:
        return (self.front, self.history, self.asked, self.steps, self.tail)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self)

    @property
    def turn(self) -> tuple[Segment, ...]:
        """What belongs to the turn under way."""
        return tuple(self.since(len(self.front) + len(self.history)))

    def tokens_until(self, index: int) -> int:
        """Tokens of the first `index` segments."""
        tokens = 0
        for part in self.parts:
            if index <= len(part):
                return tokens + _tokens_of(part, index)
            tokens += total(part)
            index -= len(part)
        return tokens

    def cached_run(self) -> int:
        """How many leading segments the next request begins with: up to the first uncached."""
        run = len(self.front) + len(self.history)
        for segment in self.asked:
            if not segment.cached:
                return run
            run += 1
        # Messages are always kept, and the tail never is.
        return run + len(self.steps)


def _tokens_of(part: Chain[Link] | tuple[Segment, ...], count: int) -> int:
    if isinstance(part, Chain):
        return part[count - 1].tokens if count else 0
    return sum(segment.tokens for segment in part[:count])


def total(part: Chain[Link] | tuple[Segment, ...]) -> int:
    return _tokens_of(part, len(part))


class LayerSize(Struct, frozen=True, kw_only=True):
    layer: Layer
    tokens: int
    segments: int
    digest: str
