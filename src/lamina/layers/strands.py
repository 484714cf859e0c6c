"""The segments of a run of messages, with what they amount to so far.

Law: a strand gives the same links whether it was extended message by message, made at once, or
taken up from a record of its totals.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from lamina.values.collections import Chain, LazyList
from lamina.values.message import Message
from lamina.values.prompt import Segment, SegmentLink

Render = Callable[[Message], Iterable[Segment]]
_DIGEST = 32
NO_ENDS: Chain[int] = Chain()
NO_LINKS: Chain[SegmentLink] = Chain()


class StrandRecord(Struct, frozen=True, kw_only=True, array_like=True):
    """The totals of a strand: where each message ends, and for each segment the tokens and the
    running digest up to it; machine words and raw digests."""

    messages: int
    ends: bytes
    tokens: bytes
    running: bytes


class Strand:
    """Extended by what was appended since the last time."""

    def __init__(self) -> None:
        self._messages: Chain[Message] = Chain()
        self._start = 0
        self._ends: Chain[int] = Chain()
        self._links: Chain[SegmentLink] = Chain()

    def follow(self, messages: Chain[Message], start: int, render: Render) -> Chain[SegmentLink]:
        """The links of the messages from `start` on."""
        if start >= len(messages):
            # As in most turns, which take no steps.
            self._messages, self._start = messages, start
            self._ends, self._links = NO_ENDS, NO_LINKS
            return NO_LINKS
        known = self._known(messages, start)
        end = self._ends[known - 1] if known else 0
        links, ends = self._links.until(end), self._ends.until(known)
        if added := messages.since(start + known):
            segments: list[Segment] = []
            places: list[int] = []
            for message in added:
                segments += render(message)
                places.append(end + len(segments))
            links, ends = link_segments(links, segments), ends.extend(places)
        self._messages, self._start, self._ends, self._links = messages, start, ends, links
        return links

    def _known(self, messages: Chain[Message], start: int) -> int:
        """How many of the messages from `start` on have their segments already."""
        if start == self._start:
            shared = messages.shared_with(self._messages)
            if shared == min(len(messages), len(self._messages)):
                return max(0, min(shared - start, len(self._ends)))
        # Another chain: what still stands unchanged at its front keeps its segments.
        known = 0
        before = self._messages.since(self._start)
        for old, new in zip(before, messages.since(start), strict=False):
            if old is not new:
                break
            known += 1
        return known

    def freeze(self, messages: Chain[Message]) -> StrandRecord | None:
        """The totals of the first of `messages`; None if the strand is of others."""
        shared = messages.shared_with(self._messages)
        if self._start or not shared or shared < len(self._ends):
            return None
        links, ends = self._links, self._ends.until(shared)
        tokens, running = array("Q"), bytearray()
        known = 0
        if (deferred := links.origin) and isinstance(kept := deferred.origin, StrandRecord):
            known = min(deferred.base, len(links))
            tokens.frombytes(kept.tokens[: known * tokens.itemsize])
            running += kept.running[: known * _DIGEST]
        for link in links.since(known):
            tokens.append(link.tokens)
            running += bytes.fromhex(link.running)
        return StrandRecord(
            messages=len(ends),
            ends=array("Q", ends).tobytes(),
            tokens=tokens.tobytes(),
            running=bytes(running),
        )

    @classmethod
    def thaw(cls, record: StrandRecord, messages: Chain[Message], render: Render) -> "Strand":
        ends, tokens = array("Q"), array("Q")
        ends.frombytes(record.ends)
        tokens.frombytes(record.tokens)
        rendered: tuple[int, list[Segment]] = (-1, [])

        def load(index: int) -> SegmentLink:
            nonlocal rendered
            place = bisect_right(ends, index)
            if rendered[0] != place:
                rendered = (place, list(render(messages[place])))
            segment = rendered[1][index - (ends[place - 1] if place else 0)]
            own = tokens[index] - (tokens[index - 1] if index else 0)
            running = record.running[index * _DIGEST : (index + 1) * _DIGEST].hex()
            return SegmentLink(replace(segment, tokens=own), tokens[index], running)

        strand = cls()
        strand._messages = messages.until(record.messages)
        strand._ends = Chain.lazy(LazyList(len(ends), ends.__getitem__))
        strand._links = Chain.lazy(LazyList(len(tokens), load, record))
        return strand


def link_segments(links: Chain[SegmentLink], segments: Iterable[Segment]) -> Chain[SegmentLink]:
    """`links` with `segments` behind, each with the totals up to it."""
    last = links[-1] if links else None
    tokens, running = (last.tokens, last.running) if last else (0, "")
    added = []
    for segment in segments:
        tokens += segment.tokens
        running = sha256((running + segment.digest).encode()).hexdigest()
        added.append(SegmentLink(segment, tokens, running))
    return links.extend(added)
