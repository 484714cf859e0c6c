"""Every request of a session with the cache use its provider reported, and every priced break.

Laws: cached is a part of input. The rate is cached over input of only those requests whose
provider reported its cache; the others are counted separately. A saving is what reading saved,
minus the extra cost of writing. Requests without a known price are counted, not summed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.apps.web.request_summary import (
    RequestRows,
    RequestSummary,
    reported_cached,
    reported_usage,
)
from lamina.core.audit.break_causes import (
    CAUSES,
    Blame,
    BreakKind,
    CauseName,
    Certainty,
    fix_for,
    name_verdict,
)
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests
from lamina.core.journal import Journal
from lamina.core.ports import TargetBook
from lamina.core.values.entry import (
    CACHE,
    PLAN,
    STORAGE,
    SUMMARIZED,
    CustomEntry,
    Entry,
    MessageEntry,
)
from lamina.core.values.prices import MILLION, CostSum
from lamina.core.values.request import Boundary
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.doctor.doctor_report import TargetFinder
from lamina.doctor.findings import Finding, diagnose
from lamina.doctor.requests.own_requests import read_own_requests

Purpose = Literal["turn", "plan", "summary", "cache", "storage", "imported"]
_BESIDE: dict[str, Purpose] = {
    PLAN: "plan", SUMMARIZED: "summary", CACHE: "cache", STORAGE: "storage",
}  # fmt: skip


class TimelineBreak(Struct, frozen=True, kw_only=True):
    """Why a cache did not hit, by cause. `tokens` could have been read but were not; `price` is the
    extra cost over reading them, None if unknown."""

    kind: BreakKind
    blame: Blame
    certainty: Certainty
    cause: CauseName
    label: str
    words: str
    tokens: int
    price: float | None
    fix: str


class TimelineRow(Struct, frozen=True, kw_only=True):
    """One request. `purpose` is `turn`, or that of a request outside the turns (`plan`, `summary`)
    or of an imported answer; these have no `request`. `fresh` is input minus cached. Figures are
    None if an `answered` request came without them. `saved` is the cache's net saving, None if
    unknown. `seconds` is how long the request took, `idle` the time since the previous one."""

    id: str
    purpose: Purpose
    at: float
    target: str
    request: RequestSummary | None
    answered: bool
    tokens: int | None
    input: int | None
    cached: int | None
    fresh: int | None
    written: int | None
    output: int | None
    cost: float | None
    uncached_cost: float | None
    saved: float | None
    seconds: float | None
    idle: float | None
    boundaries: tuple[Boundary, ...]
    broke: TimelineBreak | None


class BreakSum(Struct, frozen=True, kw_only=True):
    """All breaks of one cause. `unpriced` of them are not in `price`."""

    kind: BreakKind
    breaks: int
    tokens: int
    price: float | None
    unpriced: int


class TimelineTotals(Struct, frozen=True, kw_only=True):
    """All requests together, on every branch, since all were paid for. `hit` is None if no provider
    reported its cache; it covers `reported` requests, not the `unknown` answered ones; `unanswered`
    have no figures at all."""

    requests: int
    reported: int
    unknown: int
    unanswered: int
    input: int
    cached: int
    written: int
    output: int
    reported_input: int
    hit: float | None
    cost: float | None
    unpriced: int
    saved: float | None
    read_discount: float | None
    write_premium: float | None
    breaks: tuple[BreakSum, ...]


class CacheTimeline(Struct, frozen=True, kw_only=True):
    """The whole timeline; prices are those of the day `prices_of`."""

    session: str
    rows: tuple[TimelineRow, ...]
    totals: TimelineTotals
    prices_of: str


def read_timeline(journal: Journal, session: str, book: TargetBook) -> CacheTimeline:
    """Return the timeline of a session, in the order sent, on every branch."""
    requests = list_requests(journal)
    table = RequestRows(journal, requests, book)
    breaks = find_breaks(journal, requests, session, book)
    rows = [_turn_row(listed, requests, table, breaks) for listed in requests.listed]
    rows += [row for entry in journal.entries.values() for row in _beside(entry, table)]
    rows.sort(key=lambda row: (row.at, row.id))
    return CacheTimeline(
        session=session,
        rows=tuple(rows),
        totals=sum_rows(rows, table),
        prices_of=str(getattr(book, "date", "")),
    )


def find_breaks(
    journal: Journal, requests: RequestList, session: str, book: TargetBook
) -> dict[str, TimelineBreak]:
    """Return the breaks of a session by the requests at which they show. The ledger's causes
    override those inferred from figures; the doctor determines how many tokens were lost."""
    observed = list(read_own_requests(journal, session))
    lost: dict[str, Finding] = {}
    if observed:
        findings = diagnose(observed, TargetFinder(book)).findings
        lost = {finding.request_id.rpartition("/")[2]: finding for finding in findings}
    breaks: dict[str, TimelineBreak] = {}
    for listed in requests.listed:
        if found := _find_break(listed, lost.get(listed.request.id)):
            breaks[listed.request.id] = found
    return breaks


def _find_break(listed: ListedRequest, lost: Finding | None) -> TimelineBreak | None:
    request, reply = listed.request, listed.reply
    agreement = request.context.agreement
    verdict = reply.verdict if reply else None
    named = name_verdict(verdict, agreement) if verdict else None
    if named is None and lost is None:
        return None
    if named is not None:
        cause, kind, blame, certainty = named.cause, named.kind, named.blame, named.certainty
    else:
        assert lost is not None
        cause, kind, certainty = lost.cause, lost.kind, lost.certainty
        blame = lost.blame or "nobody"
    detail = ""
    if kind in ("moved", "expected") and agreement.broke is not None:
        broke = agreement.broke
        detail = broke.reason or f"{broke.source} changed, and no reason was recorded"
    elif named is not None and verdict is not None:
        detail = verdict.detail
    elif lost is not None:
        detail = lost.detail
    provider = request.target.partition(":")[0]
    return TimelineBreak(
        kind=kind,
        blame=blame,
        certainty=certainty,
        cause=cause,
        label=CAUSES[cause].label,
        words=f"{CAUSES[cause].sentence}{f': {detail}' if detail else ''}",
        tokens=lost.tokens if lost else 0,
        price=lost.extra if lost else 0.0,
        fix=fix_for(cause, provider, is_own=True),
    )


def _turn_row(
    listed: ListedRequest,
    requests: RequestList,
    table: RequestRows,
    breaks: Mapping[str, TimelineBreak],
) -> TimelineRow:
    request, reply = listed.request, listed.reply
    base = requests.by_id(request.base)
    before = (base.reply.at if base.reply else base.request.at) if base else None
    return _row(
        id=request.id,
        purpose="turn",
        at=request.at,
        target=request.target,
        usage=reported_usage(reply),
        answered=reply is not None,
        table=table,
        request=table.row(listed),
        tokens=request.tokens,
        seconds=max(0.0, reply.at - request.at) if reply else None,
        idle=max(0.0, request.at - before) if before is not None else None,
        boundaries=request.context.boundaries,
        broke=breaks.get(request.id),
    )


def _beside(entry: Entry, table: RequestRows) -> Iterable[TimelineRow]:
    """A request outside the turns, or an imported answer with its usage."""
    match entry:
        case CustomEntry(kind=kind, data={**data}) if kind in _BESIDE:
            with suppress(msgspec.ValidationError):
                usage = msgspec.convert(data.get("usage"), Usage)
                target, cost = data.get("target"), data.get("cost")
                row = _row(
                    id=entry.id, purpose=_BESIDE[kind], at=entry.at, usage=usage, table=table,
                    target=target if isinstance(target, str) else "",
                )  # fmt: skip
                # Storage records, and records from before targets were named, contain their cost.
                if not row.target and isinstance(cost, int | float):
                    row = replace(row, cost=float(cost))
                yield row
        case MessageEntry(usage=Usage() as usage, model=model):
            yield _row(
                id=entry.id, purpose="imported", at=entry.at, target=model, usage=usage,
                table=table,
            )  # fmt: skip
        case _:
            pass


def _row(
    *, id: str, purpose: Purpose, at: float, target: str, usage: Usage | None,
    table: RequestRows, **more: Any,
) -> TimelineRow:  # fmt: skip
    cached = reported_cached(usage)
    bare = Usage(input=usage.input, output=usage.output) if usage else None
    discount, premium = price_cache(usage, table.target(target))
    defaults: dict[str, Any] = {
        "answered": True, "request": None, "tokens": None, "seconds": None, "idle": None,
        "boundaries": (), "broke": None,
    }  # fmt: skip
    return TimelineRow(
        id=id,
        purpose=purpose,
        at=at,
        target=target,
        input=usage.input if usage else None,
        cached=cached,
        fresh=usage.input - cached if usage and cached is not None else None,
        written=usage.written if usage and cached is not None else None,
        output=usage.output if usage else None,
        cost=table.cost(target, usage),
        uncached_cost=table.cost(target, bare),
        saved=None if discount is None or premium is None else discount - premium,
        **defaults | more,
    )


def price_cache(usage: Usage | None, target: Target | None) -> tuple[float | None, float | None]:
    """Return what reading from the cache saved, and the extra cost of writing to it; None if the
    provider did not report its cache or the price is unknown."""
    if usage is None or not usage.cache_reported or target is None or target.prices is None:
        return None, None
    tier = target.prices.tier_for(usage.input)
    long = min(usage.written_long, usage.written)
    premium = (usage.written - long) * (tier.write - tier.input)
    premium += long * (tier.write_long - tier.input)
    return usage.cached * (tier.input - tier.read) / MILLION, premium / MILLION


def sum_rows(rows: Sequence[TimelineRow], table: RequestRows) -> TimelineTotals:
    """Return the totals of rows, by the laws above."""
    answered = [row for row in rows if row.answered]
    reported = [row for row in answered if row.cached is not None]
    reported_input = sum(row.input or 0 for row in reported)
    cached = sum(row.cached or 0 for row in reported)
    cost = reduce(CostSum.plus, (row.cost for row in answered), CostSum())
    saved = [row.saved for row in rows if row.saved is not None]
    discounts = [_discount(row, table) for row in rows if row.saved is not None]
    return TimelineTotals(
        requests=len(rows),
        reported=len(reported),
        unknown=len(answered) - len(reported),
        unanswered=len(rows) - len(answered),
        input=sum(row.input or 0 for row in answered),
        cached=cached,
        written=sum(row.written or 0 for row in reported),
        output=sum(row.output or 0 for row in answered),
        reported_input=reported_input,
        hit=cached / reported_input if reported_input else None,
        cost=cost.known if answered else None,
        unpriced=cost.unpriced,
        saved=sum(saved) if saved else None,
        read_discount=sum(discounts) if saved else None,
        write_premium=sum(discounts) - sum(saved) if saved else None,
        breaks=tuple(_sum_breaks([row.broke for row in rows if row.broke])),
    )


def _discount(row: TimelineRow, table: RequestRows) -> float:
    target = table.target(row.target)
    usage = Usage(input=row.input or 0, cached=row.cached or 0)
    return price_cache(usage, target)[0] or 0.0


def _sum_breaks(breaks: Sequence[TimelineBreak]) -> Iterable[BreakSum]:
    for kind in get_args(BreakKind):
        own = [broke for broke in breaks if broke.kind == kind]
        if own:
            prices = [broke.price for broke in own if broke.price is not None]
            yield BreakSum(
                kind=kind,
                breaks=len(own),
                tokens=sum(broke.tokens for broke in own),
                price=sum(prices) if prices else None,
                unpriced=len(own) - len(prices),
            )
