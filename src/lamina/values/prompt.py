"""The prompt: segments in wire order. A segment's digest says what is on the wire, nothing else."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from lamina.values.collections import Chain
from lamina.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult

Layer = Literal["tools", "L1", "L2", "L3", "L4", "L5"]
LAYERS: tuple[Layer, ...] = ("tools", "L1", "L2", "L3", "L4", "L5")
WireRole = Literal["tools", "system", "user", "assistant", "tool"]
Content = Text | Image | ToolCall | ToolResult | Thinking | ToolDefinition


class Segment(Struct, frozen=True, kw_only=True, gc=False):
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


class SegmentLink(Struct, frozen=True, gc=False):
    """A segment with what all segments up to it amount to, so that totals cost nothing."""

    segment: Segment
    tokens: int
    running: str


class Prompt(Struct, frozen=True, kw_only=True):
    """Front (tools, L1, library), history, what is asked in this turn, the steps taken since, and
    the uncached tail. What grows is a chain, so that a request costs what it adds."""

    front: Chain[SegmentLink] = Chain()
    history: Chain[SegmentLink] = Chain()
    asked: tuple[Segment, ...] = ()
    steps: Chain[SegmentLink] = Chain()
    tail: tuple[Segment, ...] = ()
    # Derived, and asked for often: what all of it amounts to, and where each part ends.
    tokens: int = 0
    ends: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    def __post_init__(self) -> None:
        front, history, steps = len(self.front), len(self.history), len(self.steps)
        tokens = _until(self.front, front) + _until(self.history, history) + _sum(self.asked)
        tokens += _until(self.steps, steps) + _sum(self.tail)
        force_setattr(self, "tokens", tokens)
        turn = front + history
        asked = turn + len(self.asked)
        steps += asked
        force_setattr(self, "ends", (front, turn, asked, steps, steps + len(self.tail)))

    def __iter__(self) -> Iterator[Segment]:
        return self.since(0)

    def since(self, index: int) -> Iterator[Segment]:
        """The segments from `index` on."""
        return chain.from_iterable(self._since(index))

    def _since(self, index: int) -> Iterator[Sequence[Segment]]:
        # Part by part, by arithmetic alone: most of those who ask want the last few segments.
        front, history, asked, steps, end = self.ends
        if index < front:
            yield [link.segment for link in self.front.since(index)]
        if front < history > index:
            yield [link.segment for link in self.history.since(max(0, index - front))]
        if index < asked:
            yield self.asked[max(0, index - history) :]
        if asked < steps > index:
            yield [link.segment for link in self.steps.since(max(0, index - asked))]
        if index < end:
            yield self.tail[max(0, index - steps) :]

    def __len__(self) -> int:
        return self.ends[-1]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self)

    @property
    def turn(self) -> tuple[Segment, ...]:
        """What belongs to the turn under way."""
        return tuple(self.since(self.ends[1]))

    def tokens_until(self, index: int) -> int:
        """Tokens of the first `index` segments."""
        front, history, asked, steps, end = self.ends
        if index >= end:
            return self.tokens
        tokens = _until(self.front, min(index, front))
        if index > front:
            tokens += _until(self.history, min(index, history) - front)
        if index > history:
            tokens += _sum(self.asked[: index - history])
        if index > asked:
            tokens += _until(self.steps, min(index, steps) - asked)
        if index > steps:
            tokens += _sum(self.tail[: index - steps])
        return tokens

    def cached_run(self) -> int:
        """How many leading segments the next request begins with: up to the first uncached."""
        _, run, _, steps, _ = self.ends
        for segment in self.asked:
            if not segment.cached:
                return run
            run += 1
        # Messages are always kept, and the tail never is.
        return steps


def total_tokens(links: Chain[SegmentLink]) -> int:
    """What the segments of a chain amount to."""
    return _until(links, len(links))


def _until(links: Chain[SegmentLink], count: int) -> int:
    return links[count - 1].tokens if count else 0


def _sum(segments: tuple[Segment, ...]) -> int:
    # Nearly always there is one, or none.
    tokens = 0
    for segment in segments:
        tokens += segment.tokens
    return tokens


class LayerSize(Struct, frozen=True, kw_only=True):
    layer: Layer
    tokens: int
    segments: int
    digest: str
