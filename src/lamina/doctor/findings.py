"""Diagnoses losses: each finding has a place, cause, price, blame and fix.

Laws: a finding names only places shown in the record. An unknown price is None and excluded from
sums. Money is avoidable only if it could have been saved.
"""

from collections.abc import Sequence
from hashlib import blake2b
from math import ceil
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.audit.break_causes import (
    CAUSES,
    Blame,
    BreakKind,
    CauseName,
    Certainty,
    RecordDepth,
    blame_of,
    fix_for,
)
from lamina.core.ledger import cost_of
from lamina.core.values.prices import MILLION
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.doctor.causes import LossExplanation, explain, find_patterns, kind_of_break
from lamina.doctor.observed_request import ObservedRequest, PartLayer
from lamina.doctor.readings import FindTarget, Reading, StopPlace, read_session

# The layer in which reading stopped, as far as the figures show.
_STOP_LAYERS: dict[StopPlace, PartLayer | None] = {
    "nothing": None, "floor": "messages", "end_of": "messages", "inside": None,
}  # fmt: skip
# A keep-alive request is sent shortly before entries expire.
_KEEP_ALIVE = 0.9
_HOUR_S = 3_600.0


class FindingPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place of a break. Tokens `start` to `end` of the previous request were not read again;
    `segment` and `offset` (in bytes) are set if the bytes are known."""

    stopped: StopPlace | None = None
    # The number of the request at the end of which reading stopped.
    request: int | None = None
    start: int
    end: int
    layer: PartLayer | None = None
    segment: str = ""
    offset: int | None = None


# The content at the first differing byte, as bytes or as displayed on a page.
Said = TypeVar("Said")


class Loss(Struct, Generic[Said], frozen=True, kw_only=True):
    """A loss with its place, cause and price."""

    id: str
    at: float | None
    source: str
    session: str
    agent: str
    # Its number in the session, its id in the record, and the record's file and line.
    request: int
    request_id: str
    file: str
    line: int
    model: str
    record: RecordDepth
    kind: BreakKind
    cause: CauseName
    blame: Blame | None
    certainty: Certainty
    candidates: tuple[CauseName, ...]
    detail: str
    place: FindingPlace
    before: Said
    after: Said
    tokens: int
    # US dollars at list price: the cost of these tokens, and the cost of reading them instead.
    paid: float | None
    would_have_cost: float | None
    # None if unknown.
    avoidable: bool | None
    # The avoidable part of the difference, less the cost of avoiding it.
    avoidable_cost: float | None
    fix: str
    chance: float | None = None
    sign: str = ""
    gap: float | None = None

    @property
    def extra(self) -> float | None:
        """The cost of the loss beyond reading the same tokens."""
        if self.paid is None or self.would_have_cost is None:
            return None
        return self.paid - self.would_have_cost


class Finding(Loss[bytes], frozen=True, kw_only=True):
    """A loss found by the doctor."""


class RequestFigures(Struct, frozen=True, kw_only=True):
    """One request as a row: what it read, wrote, cost and lost."""

    number: int
    id: str
    at: float | None
    source: str
    session: str
    agent: str
    model: str
    step: str
    input: int
    read: int | None
    written: int | None
    output: int
    lost: int
    cost: float | None
    input_cost: float | None
    finding: str | None = None


class SessionDiagnosis(Struct, frozen=True, kw_only=True):
    """A session with its findings. `hour_gain` is the saving from one-hour instead of five-minute
    entries, less their higher write price; None without such entries or prices."""

    session: str
    source: str
    requests: tuple[RequestFigures, ...]
    findings: tuple[Finding, ...]
    hour_gain: float | None = None


def diagnose(
    requests: Sequence[ObservedRequest],
    find_target: FindTarget,
    floors: frozenset[int] = frozenset(),
) -> SessionDiagnosis:
    """Diagnose one session, even if it is spread over several files."""
    readings = read_session(requests, find_target, floors)
    patterns = find_patterns(readings)
    rows: list[RequestFigures] = []
    findings: list[Finding] = []
    for reading in readings:
        finding = None
        if reading.lost:
            finding = _describe(reading, explain(reading, patterns))
            findings.append(finding)
        rows.append(_figures(reading, finding))
    first = readings[0].request
    return SessionDiagnosis(
        session=first.session, source=first.source, requests=tuple(rows),
        findings=tuple(findings), hour_gain=_hour_gain(readings, findings),
    )  # fmt: skip


def _hour_gain(readings: Sequence[Reading], findings: Sequence[Finding]) -> float | None:
    kept = {f.request: f for f in findings if f.cause == "idle" and (f.gap or 0.0) <= _HOUR_S}
    gains: list[float] = []
    for reading in readings:
        target, usage = reading.target, reading.request.usage
        short = usage.written - usage.written_long
        if short <= 0 or target is None or target.prices is None:
            continue
        if target.cache.long_lifetime_s is None:
            continue
        tier = target.prices.tier_for(usage.input)
        finding = kept.get(reading.number)
        # Entries that would still exist are not written again.
        written = short - min(short, finding.tokens) if finding else short
        saved = (finding.extra or 0.0) if finding else 0.0
        gains.append(saved - written * (tier.write_long - tier.write) / MILLION)
    return sum(gains) if gains else None


def front_reads(requests: Sequence[ObservedRequest]) -> set[int]:
    """Return the read sizes that end within a session's first request, that is, in its front."""
    first = min(requests, key=lambda r: r.at if r.at is not None else 0.0, default=None)
    limit = first.usage.input if first else 0
    return {r.usage.cached for r in requests if 0 < r.usage.cached < limit}


def _describe(reading: Reading, why: LossExplanation) -> Finding:
    request, change = reading.request, reading.request.change
    named = kind_of_break(why)
    words = CAUSES[why.cause]
    is_open = why.cause == "unexplained"
    paid, would = price_loss(request.usage, reading.lost, reading.target)
    avoidable = None if is_open else words.avoidable
    saved = _avoidable_cost(reading, why.cause, paid, would) if avoidable else None
    has_bytes = change is not None and change.cause == why.cause
    return Finding(
        id=blake2b(f"{request.session}\x1f{request.id}".encode("utf-8", "replace"), digest_size=5)
        .hexdigest(),
        at=request.at, source=request.source, session=request.session, agent=request.agent,
        request=reading.number, request_id=request.id, file=request.file, line=request.line,
        model=request.model, record=request.depth, kind=CAUSES[named].kind, cause=why.cause,
        blame=None if is_open else blame_of(why.cause, is_own=request.is_own),
        certainty=why.certainty, candidates=why.candidates, detail=why.detail,
        place=_place(reading, why),
        before=change.before if has_bytes and change else b"",
        after=change.after if has_bytes and change else b"",
        tokens=reading.lost, paid=paid, would_have_cost=would, avoidable=avoidable,
        avoidable_cost=saved if avoidable else (0.0 if avoidable is False else None),
        fix=fix_for(why.cause, request.provider, is_own=request.is_own),
        chance=why.chance, sign=why.sign, gap=reading.gap,
    )  # fmt: skip


def _place(reading: Reading, why: LossExplanation) -> FindingPlace:
    usage, change, stop = reading.request.usage, reading.request.change, reading.stop
    place = FindingPlace(
        start=usage.cached,
        end=usage.cached + reading.lost,
        stopped=stop.place if stop else None,
        request=stop.request if stop else None,
        layer=_STOP_LAYERS[stop.place] if stop else None,
    )
    if change is None or change.cause is None or change.cause != why.cause:
        return place
    return replace(place, layer=change.layer, segment=change.place, offset=change.offset)


def price_loss(usage: Usage, lost: int, target: Target | None) -> tuple[float | None, float | None]:
    """Return the cost of lost tokens and the cost of reading them instead; None if the price is
    unknown. Written tokens count before fresh ones."""
    if target is None or target.prices is None:
        return None, None
    tier = target.prices.tier_for(usage.input)
    written = min(lost, usage.written)
    long = min(written, usage.written_long)
    paid = (written - long) * tier.write + long * tier.write_long + (lost - written) * tier.input
    return paid / MILLION, lost * tier.read / MILLION


def _avoidable_cost(
    reading: Reading, cause: CauseName, paid: float | None, would: float | None
) -> float | None:
    """Return the cost that could have been avoided. After an expiry, that is the difference less
    the price of keep-alive requests."""
    if paid is None or would is None:
        return None
    extra = paid - would
    if cause != "idle" or not reading.gap or not reading.lifetime:
        return max(0.0, extra)
    calls = ceil(reading.gap / (_KEEP_ALIVE * reading.lifetime)) - 1
    return max(0.0, extra - calls * would)


def _figures(reading: Reading, finding: Finding | None) -> RequestFigures:
    request, usage, target = reading.request, reading.request.usage, reading.target
    cost = cost_of(usage, target) if target else None
    input_cost = cost_of(replace(usage, output=0), target) if target else None
    return RequestFigures(
        number=reading.number, id=request.id, at=request.at, source=request.source,
        session=request.session, agent=request.agent, model=request.model, step=request.step,
        input=usage.input,
        read=usage.cached if usage.cache_reported else None,
        written=usage.written if usage.cache_reported else None,
        output=usage.output, lost=reading.lost, cost=cost, input_cost=input_cost,
        finding=finding.id if finding else None,
    )  # fmt: skip
