"""Defines the prompt: segments in wire order, and the strands of messages that store them.

Laws: a segment's digest covers what is on the wire, nothing else. A strand has the same links
whether it was extended message by message, built at once, or restored from a record of its totals.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate, chain, takewhile
from operator import eq, sub
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lamina.core.values.collections import Chain, LazyList
from lamina.core.values.message import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)

Layer = Literal["tools", "L1", "L2", "L3", "L4", "L5"]
LAYERS: tuple[Layer, ...] = ("tools", "L1", "L2", "L3", "L4", "L5")
WireRole = Literal["tools", "system", "user", "assistant", "tool"]


class ToolReferences(Struct, frozen=True, gc=False, tag="tool_references", kw_only=True):
    """The result of a tool search on a wire that loads tools late: names tools whose definitions
    are sent beside the list. `text` is the fallback if none can be loaded."""

    call_id: str
    name: str
    text: str
    tools: tuple[ToolDefinition, ...]


Content = Text | Image | ToolCall | ToolResult | ToolReferences | Thinking | ToolDefinition


class Segment(Struct, frozen=True, kw_only=True, gc=False):
    """A run of bytes on the wire. `message` groups the segments of one wire message; `source` is
    the origin of the bytes; `cached` says whether they will be in the next request, too; `shared`
    whether other sessions with the same beginning have them, too."""

    layer: Layer
    role: WireRole
    message: str
    content: Content
    source: str
    digest: str
    tokens: int
    cached: bool = True
    shared: bool = False

    @property
    def text(self) -> str:
        """The text; empty if the content is not text, such as a picture."""
        match self.content:
            case (
                Text(text=text)
                | ToolResult(text=text)
                | ToolReferences(text=text)
                | Thinking(text=text)
            ):
                return text
            case ToolCall(arguments=arguments):
                return arguments
            case _:
                return ""


class Standing(Struct, frozen=True, gc=False, kw_only=True):
    """The content before a position in a prompt to which thinking is bound: the digest of the
    front, the running digest of the messages without their thinking, and the latest thinking, by
    the digest of its signature."""

    front: str = ""
    bare: str = ""
    thought: str = ""


class SegmentLink(Struct, frozen=True, gc=False):
    """A segment with the running totals up to it, so that totals need no computation."""

    segment: Segment
    tokens: int
    running: str


class Prompt(Struct, frozen=True, kw_only=True):
    """A request as segments: front (tools, L1, library), history, the current question, the steps
    taken since then, and the uncached tail. Growing parts are chains, so that a request costs only
    what it adds."""

    front: Chain[SegmentLink] = Chain()
    history: Chain[SegmentLink] = Chain()
    asked: tuple[Segment, ...] = ()
    steps: Chain[SegmentLink] = Chain()
    tail: tuple[Segment, ...] = ()
    # What the answer's thinking will be bound to; None if its model binds none.
    standing: Standing | None = None
    # Derived values for frequent use: the totals, and where each part ends.
    tokens: int = 0
    ends: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    def __post_init__(self) -> None:
        front, history, steps = len(self.front), len(self.history), len(self.steps)
        tokens = 0
        for links in (self.front, self.history, self.steps):
            if links:
                tokens += links[-1].tokens
        # Nearly always empty, or a single segment.
        for segment in (*self.asked, *self.tail):
            tokens += segment.tokens
        force_setattr(self, "tokens", tokens)
        turn = front + history
        asked = turn + len(self.asked)
        steps += asked
        force_setattr(self, "ends", (front, turn, asked, steps, steps + len(self.tail)))

    @property
    def offers_tools(self) -> bool:
        """Whether the prompt contains tools."""
        return bool(self.front) and isinstance(self.front[0].segment.content, ToolDefinition)

    def __iter__(self) -> Iterator[Segment]:
        return self.since(0)

    def since(self, index: int) -> Iterator[Segment]:
        """Return the segments from `index` on."""
        return chain.from_iterable(self._since(index))

    def _since(self, index: int) -> Iterator[Sequence[Segment]]:
        # Computed part by part, because most callers want only the last few segments.
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
        """All segments, in wire order."""
        return tuple(self)

    @property
    def turn(self) -> tuple[Segment, ...]:
        """The segments of the current turn."""
        return tuple(self.since(self.ends[1]))

    @property
    def digest(self) -> str:
        """The digest of all segments and of where each part ends."""
        chains = [links[-1].running if links else "" for links in (self.front, self.history)]
        steps = self.steps[-1].running if self.steps else ""
        asked, tail = ([s.digest for s in part] for part in (self.asked, self.tail))
        parts = (*chains, ",".join(asked), steps, ",".join(tail))
        return sha256("/".join(parts).encode()).hexdigest()

    @property
    def last_message(self) -> str:
        """The id of the last message that is not limited to this request; empty if there is
        none."""
        if self.steps:
            return self.steps[-1].segment.message
        if self.asked:
            return self.asked[-1].message
        return self.history[-1].segment.message if self.history else ""

    def ends_with(self, digests: Sequence[str], start: int) -> bool:
        """Return whether `digests` are those of the segments from `start` on. Whole chains are
        compared by running digests, so that history need not be rendered."""
        front, history, asked, steps, end = self.ends
        if len(digests) != end - min(start, end):
            return False

        def part(begin: int, until: int) -> Sequence[str]:
            return digests[max(0, begin - start) : max(0, until - start)]

        return (
            _goes_on_with(self.front, start, part(0, front))
            and _goes_on_with(self.history, start - front, part(front, history))
            and _are(self.asked, part(history, asked))
            and _goes_on_with(self.steps, start - asked, part(asked, steps))
            and _are(self.tail, part(steps, end))
        )

    def tokens_until(self, index: int) -> int:
        """Return the number of tokens in the first `index` segments."""
        front, history, asked, steps, end = self.ends
        if index >= end:
            return self.tokens
        tokens = 0
        parts = ((self.front, 0, front), (self.history, front, history), (self.steps, asked, steps))
        for links, start, until in parts:
            if start < until and index > start:
                tokens += links[min(index, until) - start - 1].tokens
        # Slices are empty if `index` comes before them.
        for segment in (
            *self.asked[: max(0, index - history)],
            *self.tail[: max(0, index - steps)],
        ):
            tokens += segment.tokens
        return tokens

    def shared_run(self) -> int:
        """The number of leading segments shared with other sessions that have the same
        beginning."""
        return sum(1 for _ in takewhile(lambda link: link.segment.shared, self.front))

    def cached_run(self) -> int:
        """The number of leading segments that the next request repeats: up to the first uncached
        one."""
        _, run, _, steps, _ = self.ends
        for segment in self.asked:
            if not segment.cached:
                return run
            run += 1
        # Messages are always kept, and the tail never is.
        return steps


def _goes_on_with(links: Chain[SegmentLink], start: int, digests: Sequence[str]) -> bool:
    """Return whether the links from `start` to the end of the chain have these digests."""
    if not digests:
        return True
    running = links[start - 1].running if start > 0 else ""
    for digest in digests:
        running = run_on(running, digest)
    return running == links[-1].running


def _are(segments: tuple[Segment, ...], digests: Sequence[str]) -> bool:
    """Return whether the last segments have these digests."""
    own = segments[len(segments) - len(digests) :]
    return all(map(eq, (segment.digest for segment in own), digests))


def run_on(running: str, digest: str) -> str:
    """Return the running digest extended by one more digest."""
    return sha256((running + digest).encode()).hexdigest()


def total_tokens(links: Chain[SegmentLink]) -> int:
    """Return the number of tokens in all segments of a chain."""
    return links[-1].tokens if links else 0


class LayerSize(Struct, frozen=True, kw_only=True):
    """The size and digest of one layer of a request."""

    layer: Layer
    tokens: int
    segments: int
    digest: str


# Renders a message as segments and, for a model that binds thinking, maps the standing before it to
# the standing after it.
Render = Callable[[Message, Standing | None], tuple[list[Segment], Standing | None]]
# Returns the standing after the segments of a message.
Advance = Callable[[Standing, Sequence[Segment]], Standing]
_DIGEST = 32
# The number of segments between stored running digests; those between are recomputed on access.
_STRIDE = 16
NO_ENDS: Chain[int] = Chain()
NO_LINKS: Chain[SegmentLink] = Chain()


class StrandRecord(Struct, frozen=True, kw_only=True):
    """The totals of a strand: the number of segments of each message, the number of tokens of each
    segment, and the running digests up to every 16th segment and up to the last, as machine words
    and raw digests. All three grow at their ends with the strand. `standing` is the standing after
    the last message, for a model that binds thinking."""

    segments: bytes
    tokens: bytes
    running: bytes
    last: bytes
    standing: Standing | None = None


class Strand:
    """Rendered messages, extended by those appended since the last call."""

    def __init__(self) -> None:
        self._messages: Chain[Message] = Chain()
        self._start = 0
        self._ends: Chain[int] = Chain()
        self._links: Chain[SegmentLink] = Chain()
        # The standing before its first message and after its last one.
        self._base: Standing | None = None
        self.standing: Standing | None = None

    def follow(
        self,
        messages: Chain[Message],
        start: int,
        render: Render,
        base: Standing | None = None,
        advance: Advance | None = None,
    ) -> Chain[SegmentLink]:
        """Return the links of the messages from `start` on. For a model that binds thinking, `base`
        is the standing before them: if that changed, their thinking is judged again."""
        if start >= len(messages):
            # The usual case: the turn has no steps.
            self._messages, self._start = messages, start
            self._ends, self._links = NO_ENDS, NO_LINKS
            self._base = self.standing = base
            return NO_LINKS
        count = known = self._count_known(messages, start)
        standing = self.standing
        if base is not None and advance is not None:
            if base != self._base:
                count = next((at for at in range(known) if messages[start + at].thinks), known)
            if base != self._base or count < len(self._ends):
                standing = base
                for at in range(count):
                    standing = advance(standing, self._segments_of(at))
        end = self._ends[count - 1] if count else 0
        links, ends = self._links.until(end), self._ends.until(count)
        if additions := messages.since(start + count):
            segments: list[Segment] = []
            places: list[int] = []
            for at, message in enumerate(additions, count):
                if at < known and not message.thinks and standing is not None and advance:
                    own = self._segments_of(at)
                    standing = advance(standing, own)
                else:
                    own, standing = render(message, standing)
                segments += own
                places.append(end + len(segments))
            links, ends = link_segments(links, segments), ends.extend(places)
        self._messages, self._start, self._ends, self._links = messages, start, ends, links
        self._base, self.standing = base, standing
        return links

    def _segments_of(self, place: int) -> list[Segment]:
        """Return the segments of an already rendered message."""
        begin = self._ends[place - 1] if place else 0
        return [self._links[at].segment for at in range(begin, self._ends[place])]

    def _count_known(self, messages: Chain[Message], start: int) -> int:
        """Return how many of the messages from `start` on are already rendered."""
        shared = 0
        if start == self._start:
            shared = max(0, messages.shared_with(self._messages) - start)
            if shared >= len(self._ends):
                return len(self._ends)
        # Another chain: unchanged messages at its front keep their segments.
        own, others = self._messages.since(self._start + shared), messages.since(start + shared)
        pairs = zip(own, others, strict=False)
        return shared + sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))

    def freeze(self, messages: Chain[Message]) -> StrandRecord | None:
        """Return the totals of the first of `messages`; None if the strand belongs to other
        messages."""
        length = messages.shared_with(self._messages)
        if self._start or not length or length < len(self._ends):
            return None
        links, ends = self._links, self._ends.until(length)
        tokens, running = array("Q"), bytearray()
        count = 0
        if (lazy_links := links.origin) and isinstance(record := lazy_links.origin, StrandRecord):
            count = min(lazy_links.base, len(links))
            tokens.frombytes(record.tokens[: count * tokens.itemsize])
            running += record.running[: count // _STRIDE * _DIGEST]
        before = links[count - 1].tokens if count else 0
        for place, link in enumerate(links.since(count), count + 1):
            tokens.append(link.tokens - before)
            before = link.tokens
            if not place % _STRIDE:
                running += bytes.fromhex(link.running)
        return StrandRecord(
            segments=array("Q", map(sub, ends, chain((0,), ends))).tobytes(),
            tokens=tokens.tobytes(),
            running=bytes(running),
            last=bytes.fromhex(links[-1].running) if links else b"",
            standing=self.standing,
        )

    @classmethod
    def thaw(
        cls,
        record: StrandRecord,
        messages: Chain[Message],
        render: Callable[[Message], list[Segment]],
    ) -> "Strand":
        segments, own_tokens = array("Q"), array("Q")
        segments.frombytes(record.segments)
        own_tokens.frombytes(record.tokens)
        ends, tokens = array("Q", accumulate(segments)), array("Q", accumulate(own_tokens))
        last_rendering: tuple[int, list[Segment]] = (-1, [])

        def load_segment(index: int) -> Segment:
            nonlocal last_rendering
            place = bisect_right(ends, index)
            if last_rendering[0] != place:
                own = render(message := messages[place])
                if left_out := len(own) - segments[place]:
                    # The unsent parts of a message's thinking always come last.
                    own = render(message.without_last_thinking(left_out))
                last_rendering = (place, own)
            segment = last_rendering[1][index - (ends[place - 1] if place else 0)]
            return replace(segment, tokens=own_tokens[index])

        def find_running(index: int) -> str:
            if index == len(tokens) - 1:
                return record.last.hex()
            kept = (index + 1) // _STRIDE
            running = record.running[(kept - 1) * _DIGEST : kept * _DIGEST].hex() if kept else ""
            for at in range(kept * _STRIDE, index + 1):
                running = run_on(running, load_segment(at).digest)
            return running

        def load(index: int) -> SegmentLink:
            return SegmentLink(load_segment(index), tokens[index], find_running(index))

        strand = cls()
        strand._messages = messages.until(len(ends))
        strand._ends = Chain.lazy(LazyList(len(ends), ends.__getitem__))
        strand._links = Chain.lazy(LazyList(len(tokens), load, record))
        strand.standing = record.standing
        strand._base = Standing(front=record.standing.front) if record.standing else None
        return strand


def link_segments(links: Chain[SegmentLink], segments: Iterable[Segment]) -> Chain[SegmentLink]:
    """Return `links` extended by `segments`, each with the totals up to it."""
    last = links[-1] if links else None
    tokens, running = (last.tokens, last.running) if last else (0, "")
    additions = []
    for segment in segments:
        tokens += segment.tokens
        running = run_on(running, segment.digest)
        additions.append(SegmentLink(segment, tokens, running))
    return links.extend(additions)
