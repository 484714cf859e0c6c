"""A session's requests in order, each beside the one it goes on from, with what was lost.

Laws: `lost = min(cached end of the one before - read, written + fresh)`. A first request loses
nothing, a retry that is read whole loses nothing, and a tail that no marker covered was never there
to lose.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.settings import CacheRules, Target
from lamina.doctor.observed import ObservedRequest
from lamina.doctor.stops import EarlierEnds, ReadingStop, cached_end, slack_of, writes_at_markers

FindTarget = Callable[[ObservedRequest], Target | None]
# What is taken of a provider that the book does not know: automatic, in blocks, for minutes.
UNKNOWN_RULES = CacheRules(minimum=1024, step=128, lifetime_s=300.0)
# Lifetimes that Anthropic's figures tell apart.
_SHORT_S, _LONG_S = 300.0, 3_600.0
# Beginnings whose lengths differ by less than this share may well be the same.
_ALIKE = 0.1


class Reading(Struct, frozen=True, kw_only=True):
    """One request, the one before it, and what of that was not read again."""

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
    # Whether the requests of the conversation so far wrote nothing, or read nothing.
    never_written: bool = False
    never_read: bool = False
    # The request that wrote the same prefix and was not answered yet.
    writer: int | None = None


def read_session(
    requests: Sequence[ObservedRequest],
    find_target: FindTarget,
    floors: frozenset[int] = frozenset(),
) -> list[Reading]:
    """The requests of one session, in order of sending. `floors` are where the front ends in
    other sessions of the same program."""
    in_order = sorted(requests, key=lambda r: r.at if r.at is not None else 0.0)
    numbers = {request.id: number for number, request in enumerate(in_order, 1)}
    session = _SessionReader(find_target, numbers, floors)
    return [session.read(number, request) for number, request in enumerate(in_order, 1)]


class _Branch(Struct):
    """What is remembered of the conversation a request belongs to."""

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
        # What the beginnings of its conversations read.
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
            # Another model counts alike: where the first request ends serves for all of them.
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
            # Nothing was kept, or not all of it: what could have been is all of it.
            end = max(end, before.usage.input)
        lost = min(end - usage.cached, fresh)
        slack = slack_of(request, rules)
        if lost > slack or (lost > 0 and usage.cached == 0 and lost >= rules.minimum):
            stop = ends.locate(usage.cached, end, slack, exact=reading.at_markers)
            fields |= {"lost": lost, "stop": stop}
        return replace(reading, **fields)

    def _weigh_root(self, reading: Reading) -> Reading:
        """A conversation that begins while another one is still being answered cannot read what
        that one writes."""
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
        """Tokens that two beginnings have in common: by their bytes; else the floor that
        conversations of this program read; else all, if they are as long as each other."""
        change = request.change
        end = writer.usage.cached + writer.usage.written or writer.usage.input
        if change is not None and change.size:
            return round(min(end, writer.usage.input * change.shared / change.size))
        if floor := max((f for f in self._floors if f <= end), default=0):
            return floor
        is_alike = abs(request.usage.input - writer.usage.input) <= _ALIKE * writer.usage.input
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
