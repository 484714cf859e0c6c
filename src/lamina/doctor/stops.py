"""Where reading stopped: the step that tells a changed prefix from a missing one.

Laws: what a request left in the cache ends at its cached end, and a later one can stop reading at
the end of any of them. Whatever was read up to the cached end of the request before is no break. A
place is reported with the chance of meeting it blindly.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from lamina.core.values.settings import CacheRules
from lamina.doctor.observed import ObservedRequest

# Where nothing is marked, hits end up to three blocks before the end of what was sent.
_BLOCKS = 3
_BLOCK = 128
# A figure of a marked cache is exact; smaller losses are not worth a word.
_LEAST = 64
# Figures of two sessions that are as near to each other are the same place.
_ALIKE = 64

StopPlace = Literal["nothing", "floor", "end_of", "inside"]


class ReadingStop(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where reading stopped. `request` is the number of the one at whose end that is; `chance` how
    much of the prompt before lies as near to such an end."""

    place: StopPlace
    tokens: int
    request: int | None = None
    chance: float | None = None


def writes_at_markers(request: ObservedRequest, rules: CacheRules) -> bool:
    return rules.explicit or request.usage.written > 0


def slack_of(request: ObservedRequest, rules: CacheRules) -> int:
    """How far below a cached end a hit may stop."""
    if writes_at_markers(request, rules):
        return _LEAST
    return max(_BLOCKS * rules.step, _BLOCKS * _BLOCK)


def cached_end(request: ObservedRequest, rules: CacheRules) -> int | None:
    """The tokens of a request that are in the cache after it; None if its record does not say."""
    usage = request.usage
    if not usage.cache_reported:
        return None
    if writes_at_markers(request, rules):
        return usage.cached + usage.written
    if usage.input < rules.minimum:
        return 0
    step = max(1, rules.step)
    return max(usage.cached, usage.input // step * step)


class EarlierEnds:
    """The cached ends of the requests before one, and the floors that were read."""

    def __init__(self, first_end: int | None = None) -> None:
        self._ends: list[tuple[int, int]] = []
        self._reads: dict[int, int] = {}
        self._floors: set[int] = set()
        self.first_end = first_end

    def add(self, number: int, request: ObservedRequest, end: int | None, *, is_root: bool) -> None:
        read = request.usage.cached
        if read:
            self._reads[read] = self._reads.get(read, 0) + 1
        if is_root and read:
            # What a new conversation reads, others of its kind wrote: tools and system.
            self._floors.add(read)
        if end:
            self._ends.append((end, number))
            if self.first_end is None:
                self.first_end = end

    def add_floors(self, floors: Iterable[int]) -> None:
        """Floors that other sessions of the same program read."""
        self._floors |= set(floors)

    def locate(self, read: int, limit: int, slack: int, *, exact: bool) -> ReadingStop:
        """Where a request stopped that read `read` of the `limit` tokens in the cache. With `exact`
        the cache ends at markers, and figures are exact."""
        if read == 0:
            return ReadingStop(place="nothing", tokens=0)
        near = 0 if exact else slack
        if any(abs(floor - read) <= near for floor in self._floors):
            return ReadingStop(
                place="floor", tokens=read, chance=_chance(limit, near, self._floors)
            )
        if (found := self._nearest(read, limit, near)) is not None:
            return found
        if self.first_end is not None and read < self.first_end and exact:
            # Entries end at markers, and before the end of the first request only tools and
            # system have any.
            return ReadingStop(place="floor", tokens=read)
        if self._reads.get(read, 0):
            # A figure that was read before is the end of something that was written before.
            is_front = self.first_end is not None and read < self.first_end
            return ReadingStop(place="floor" if is_front else "end_of", tokens=read)
        # Markers may stand a little before the end of a request, too.
        return self._nearest(read, limit, _BLOCKS * _BLOCK) or ReadingStop(
            place="inside", tokens=read
        )

    def _nearest(self, read: int, limit: int, near: int) -> ReadingStop | None:
        """The end of an earlier request that is as near as that, if there is one."""
        ends = [(end, number) for end, number in self._ends if abs(end - read) <= near]
        if not ends:
            return None
        _, number = min(ends, key=lambda pair: (abs(pair[0] - read), -pair[1]))
        chance = _chance(limit, near, [end for end, _ in self._ends])
        return ReadingStop(place="end_of", tokens=read, request=number, chance=chance)


def _chance(limit: int, near: int, ends: Iterable[int]) -> float | None:
    """The share of the prompt that lies within reach of one of these ends."""
    if limit <= 0:
        return None
    covered, reached = 0, 0
    for end in sorted(end for end in ends if end <= limit):
        start, stop = max(reached, end - near), min(limit, end + near)
        covered += max(0, stop - start)
        reached = max(reached, stop)
    return min(1.0, max(covered, 1) / limit)


def common_floors(reads: Iterable[Iterable[int]]) -> frozenset[int]:
    """Of what the sessions of one program read of their fronts, the figures that more than one of
    them has: where its tools and system prompt end."""
    buckets: dict[int, int] = {}
    figures = [set(session) for session in reads]
    for session in figures:
        near = {read // _ALIKE + step for read in session for step in (-1, 0, 1)}
        for bucket in near:
            buckets[bucket] = buckets.get(bucket, 0) + 1
    return frozenset(
        read for session in figures for read in session if read and buckets[read // _ALIKE] > 1
    )
