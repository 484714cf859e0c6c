"""Pairs each request of a session with the one it continues, and determines where reading stopped
and how much was lost.

Laws: `lost = min(cached end of the previous request - read, written + fresh)`. A first request
loses nothing, a retry that is read whole loses nothing, and a tail not covered by a marker was
never cached. The content that a request leaves in the cache ends at its cached end, and a later
request can stop reading at any such end. A request read up to the previous cached end is not a
break. A place is reported with the probability of hitting it by chance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.settings import CacheRules, Target
from lamina.doctor.observed_request import ObservedRequest

# Without markers, hits end up to three blocks before the end of the earlier prompt.
_BLOCKS = 3
_BLOCK = 128
# With markers, figures are exact; smaller losses are not worth reporting.
_LEAST = 64
# Figures of two sessions that are this close denote the same place.
_ALIKE_TOKENS = 64

StopPlace = Literal["nothing", "floor", "end_of", "inside"]


class ReadingStop(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place where reading stopped. `request` is the number of the request that ends there;
    `chance` is the share of the previous prompt that is as close to such an end."""

    place: StopPlace
    tokens: int
    request: int | None = None
    chance: float | None = None


def writes_at_markers(request: ObservedRequest, rules: CacheRules) -> bool:
    return rules.explicit or request.usage.written > 0


def slack_of(request: ObservedRequest, rules: CacheRules) -> int:
    """Return how far before a cached end a hit may stop."""
    if writes_at_markers(request, rules):
        return _LEAST
    return max(_BLOCKS * rules.step, _BLOCKS * _BLOCK)


def cached_end(request: ObservedRequest, rules: CacheRules) -> int | None:
    """Return the number of tokens cached after a request; None if not recorded."""
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
    """The cached ends of earlier requests, and the floors that were read."""

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
            # A new conversation reads content written by similar ones: tools and system.
            self._floors.add(read)
        if end:
            self._ends.append((end, number))
            if self.first_end is None:
                self.first_end = end

    def add_floors(self, floors: Iterable[int]) -> None:
        """Add floors read by other sessions of the same program."""
        self._floors |= set(floors)

    def locate(self, read: int, limit: int, slack: int, *, exact: bool) -> ReadingStop:
        """Return the place where a request stopped that read `read` of the `limit` tokens in the
        cache. With `exact`, the cache ends at markers and figures are exact."""
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
            # Entries end at markers, and before the end of the first request only tools and system
            # have any.
            return ReadingStop(place="floor", tokens=read)
        if self._reads.get(read, 0):
            # A figure that was read before marks the end of an earlier entry.
            is_front = self.first_end is not None and read < self.first_end
            return ReadingStop(place="floor" if is_front else "end_of", tokens=read)
        # Markers may also precede the end of a request slightly.
        return self._nearest(read, limit, _BLOCKS * _BLOCK) or ReadingStop(
            place="inside", tokens=read
        )

    def _nearest(self, read: int, limit: int, near: int) -> ReadingStop | None:
        """Return the end of an earlier request within that distance, if any."""
        ends = [(end, number) for end, number in self._ends if abs(end - read) <= near]
        if not ends:
            return None
        _, number = min(ends, key=lambda pair: (abs(pair[0] - read), -pair[1]))
        chance = _chance(limit, near, [end for end, _ in self._ends])
        return ReadingStop(place="end_of", tokens=read, request=number, chance=chance)


def _chance(limit: int, near: int, ends: Iterable[int]) -> float | None:
    """Return the share of the prompt within reach of one of these ends."""
    if limit <= 0:
        return None
    covered, reached = 0, 0
    for end in sorted(end for end in ends if end <= limit):
        start, stop = max(reached, end - near), min(limit, end + near)
        covered += max(0, stop - start)
        reached = max(reached, stop)
    return min(1.0, max(covered, 1) / limit)


def common_floors(reads: Iterable[Iterable[int]]) -> frozenset[int]:
    """Return the front sizes that several sessions of one program read: the end of its tools and
    system prompt."""
    buckets: dict[int, int] = {}
    figures = [set(session) for session in reads]
    for session in figures:
        near = {read // _ALIKE_TOKENS + step for read in session for step in (-1, 0, 1)}
        for bucket in near:
            buckets[bucket] = buckets.get(bucket, 0) + 1
    return frozenset(
        read
        for session in figures
        for read in session
        if read and buckets[read // _ALIKE_TOKENS] > 1
    )


FindTarget = Callable[[ObservedRequest], Target | None]
# Assumed for providers missing from the book: automatic caching, in blocks, for minutes.
UNKNOWN_RULES = CacheRules(minimum=1024, step=128, lifetime_s=300.0)
# Lifetimes distinguished in Anthropic's figures.
_SHORT_S, _LONG_S = 300.0, 3_600.0
# Beginnings whose lengths differ by less than this share may be the same.
_ALIKE_SHARE = 0.1


class Reading(Struct, frozen=True, kw_only=True):
    """A request, the previous one, and the amount that was not read again."""

    number: int
    request: ObservedRequest
    before: ObservedRequest | None
    before_number: int | None
    target: Target | None
    rules: CacheRules
    at_markers: bool
    lost: int = 0
    stop: ReadingStop | None = None
    gap: float | None = None
    lifetime: float | None = None
    # Whether the conversation's requests so far wrote nothing, or read nothing.
    never_written: bool = False
    never_read: bool = False
    # The request that was writing the same prefix and had not been answered yet.
    writer: int | None = None


def read_session(
    requests: Sequence[ObservedRequest],
    find_target: FindTarget,
    floors: frozenset[int] = frozenset(),
) -> list[Reading]:
    """Read the requests of one session in order of sending. `floors` are the ends of the front in
    other sessions of the same program."""
    in_order = sorted(requests, key=lambda r: r.at if r.at is not None else 0.0)
    numbers = {request.id: number for number, request in enumerate(in_order, 1)}
    session = _SessionReader(find_target, numbers, floors)
    return [session.read(number, request) for number, request in enumerate(in_order, 1)]


class _Branch(Struct):
    """The conversation so far that a request belongs to."""

    last: ObservedRequest
    number: int
    long: bool = False
    wrote: bool = False
    has_read: bool = False
    count: int = 1


class _SessionReader:
    def __init__(
        self, find_target: FindTarget, numbers: Mapping[str, int], floors: frozenset[int]
    ) -> None:
        self._find_target = find_target
        self._numbers = numbers
        self._ends: dict[tuple[str, str], EarlierEnds] = {}
        self._floors = floors
        self._by_id: dict[str, _Branch] = {}
        self._last: dict[tuple[str, str], _Branch] = {}
        self._roots: list[tuple[int, ObservedRequest]] = []
        # How much the beginnings of its conversations read.
        self._root_reads: set[int] = set()

    def read(self, number: int, request: ObservedRequest) -> Reading:
        target = self._find_target(request)
        rules = target.cache if target else UNKNOWN_RULES
        at_markers = writes_at_markers(request, rules)
        branch = self._branch_before(request)
        ends = self._ends_of(request)
        reading = Reading(
            number=number,
            request=request,
            before=branch.last if branch else None,
            before_number=branch.number if branch else None,
            target=target,
            rules=rules,
            at_markers=at_markers,
        )
        if branch is not None:
            reading = self._weigh(reading, branch, ends)
        else:
            reading = self._weigh_root(reading)
        self._remember(reading, branch, ends)
        return reading

    def _ends_of(self, request: ObservedRequest) -> EarlierEnds:
        key = (request.model, request.agent)
        if key not in self._ends:
            # Other models count similarly, so the end of the first request serves for all of them.
            first = next(
                (ends.first_end for ends in self._ends.values() if not request.agent), None
            )
            self._ends[key] = EarlierEnds(first)
            self._ends[key].add_floors(self._floors | self._root_reads)
        return self._ends[key]

    def _branch_before(self, request: ObservedRequest) -> _Branch | None:
        if request.parent:
            return self._by_id.get(request.parent)
        if request.is_root:
            return None
        return self._last.get((request.session, request.agent))

    def _weigh(self, reading: Reading, branch: _Branch, ends: EarlierEnds) -> Reading:
        request, before, rules = reading.request, branch.last, reading.rules
        gap = None
        if request.at is not None and before.at is not None:
            gap = max(0.0, request.at - before.at)
        lifetime = rules.lifetime_s
        if reading.at_markers and lifetime in (_SHORT_S, _LONG_S):
            lifetime = _LONG_S if branch.long else _SHORT_S
        fields: dict[str, Any] = {
            "gap": gap, "lifetime": lifetime, "never_written": not branch.wrote,
            "never_read": not branch.has_read and not request.usage.cached and branch.count >= 3,
        }  # fmt: skip
        end = cached_end(before, rules)
        usage = request.usage
        fresh = max(0, usage.input - usage.cached)
        if end is None or not usage.cache_reported:
            return replace(reading, **fields)
        if end == 0 or (reading.at_markers and _lacks_marker(request)):
            # Nothing or not everything was kept, but everything could have been.
            end = max(end, before.usage.input)
        lost = min(end - usage.cached, fresh)
        slack = slack_of(request, rules)
        if lost > slack or (lost > 0 and usage.cached == 0 and lost >= rules.minimum):
            stop = ends.locate(usage.cached, end, slack, exact=reading.at_markers)
            fields |= {"lost": lost, "stop": stop}
        return replace(reading, **fields)

    def _weigh_root(self, reading: Reading) -> Reading:
        """Weigh the start of a conversation. It cannot read content from another conversation that
        is still being answered."""
        request, usage = reading.request, reading.request.usage
        if request.at is None or not usage.cache_reported:
            return reading
        for number, writer in self._roots:
            if writer.at is None or writer.ended is None or writer.model != request.model:
                continue
            if not writer.at <= request.at < writer.ended:
                continue
            shared = self._shared_front(request, writer)
            lost = min(shared - usage.cached, usage.input - usage.cached)
            if lost > slack_of(request, reading.rules) and shared >= reading.rules.minimum:
                stop = ReadingStop(
                    place="nothing" if not usage.cached else "floor", tokens=usage.cached
                )
                return replace(reading, lost=lost, stop=stop, writer=number)
        return reading

    def _shared_front(self, request: ObservedRequest, writer: ObservedRequest) -> int:
        """Return the number of tokens two beginnings share: by their bytes; else the floor that
        this program's conversations read; else all, if they are about equally long."""
        change = request.change
        end = writer.usage.cached + writer.usage.written or writer.usage.input
        if change is not None and change.size:
            return round(min(end, writer.usage.input * change.shared / change.size))
        if floor := max((f for f in self._floors if f <= end), default=0):
            return floor
        is_alike = (
            abs(request.usage.input - writer.usage.input) <= _ALIKE_SHARE * writer.usage.input
        )
        return end if is_alike and request.usage.cached == writer.usage.cached else 0

    def _remember(self, reading: Reading, branch: _Branch | None, ends: EarlierEnds) -> None:
        request, usage = reading.request, reading.request.usage
        if branch is None:
            self._roots.append((reading.number, request))
            self._root_reads |= {usage.cached} - {0}
        new = _Branch(
            last=request,
            number=reading.number,
            long=bool(usage.written_long) if usage.written else bool(branch and branch.long),
            wrote=bool(usage.written or usage.cached) or bool(branch and branch.wrote),
            has_read=bool(usage.cached) or bool(branch and branch.has_read),
            count=branch.count + 1 if branch else 1,
        )
        self._by_id[request.id] = new
        self._last[request.session, request.agent] = new
        end = cached_end(request, reading.rules)
        ends.add(reading.number, request, end, is_root=branch is None)


def _lacks_marker(request: ObservedRequest) -> bool:
    return request.change is not None and request.change.cause == "marker"
