"""What the findings of many sessions come to.

Laws: sums hold what has a price and say what they leave out; what is muted is counted apart. A
share of money is of what the input cost, at list price.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.core.audit.vocabulary import CAUSES, count_of
from lamina.core.values.cache_break import Blame, BreakKind, CauseName, Certainty
from lamina.doctor.findings import Finding, RequestFigures, SessionDiagnosis

# What is said of a place where the record does not hold the cause.
_OPEN_LABELS = {
    "nothing": "nothing was read, cause open",
    "floor": "only tools and system read, cause open",
    "end_of": "read to an older end, cause open",
    "inside": "stopped in between, cause open",
}


class CauseSum(Struct, frozen=True, kw_only=True):
    """All findings of one cause, or of one place where the cause is open."""

    cause: CauseName
    label: str
    kind: BreakKind
    blame: Blame | None
    findings: int
    tokens: int
    # US dollars over what reading would have cost; None where nothing has a known price.
    extra: float | None
    avoidable: float | None
    certainties: dict[Certainty, int]
    # Findings without a known price, which are in neither sum of money.
    unpriced: int = 0


class ReportTotals(Struct, frozen=True, kw_only=True):
    sessions: int = 0
    requests: int = 0
    input: int = 0
    read: int = 0
    written: int = 0
    # At list price; requests whose model has no known price are left out and counted. None where
    # none has.
    input_cost: float | None = 0.0
    output_cost: float | None = 0.0
    unpriced: int = 0
    unpriced_models: tuple[str, ...] = ()
    # Requests whose provider said nothing of its cache.
    unreported: int = 0
    findings: int = 0
    muted: int = 0
    lost: int = 0
    # None where no finding has a known price; those without one are counted.
    lost_cost: float | None = 0.0
    avoidable_cost: float | None = 0.0
    unpriced_findings: int = 0
    # Lost tokens whose place is known.
    located: int = 0
    # What an hour's lifetime for everything that was written for five minutes would have saved,
    # less what it costs more.
    hour_gain: float | None = None

    @property
    def lost_share(self) -> float:
        """The share of the input's cost that was lost; of its tokens, where no price is known, or
        none of what was lost."""
        if self.input_cost and self.lost_cost is not None:
            return self.lost_cost / self.input_cost
        return self.lost / self.input if self.input and self.unpriced else 0.0


class Advice(Struct, frozen=True, kw_only=True):
    """A fix, and what it would have saved."""

    cause: CauseName
    findings: int
    saves: float
    fix: str


class Unknown(Struct, frozen=True, kw_only=True):
    """What could not be known, and which record would show it."""

    what: str
    record: str


def sum_totals(
    diagnoses: Sequence[SessionDiagnosis], findings: Sequence[Finding], muted: int = 0
) -> ReportTotals:
    """What all requests and findings come to."""
    rows = [row for diagnosis in diagnoses for row in diagnosis.requests]
    unpriced = [row for row in rows if row.cost is None]
    has_prices = len(unpriced) < len(rows) or not rows
    return ReportTotals(
        sessions=len(diagnoses),
        requests=len(rows),
        input=sum(row.input for row in rows),
        read=sum(row.read or 0 for row in rows),
        written=sum(row.written or 0 for row in rows),
        input_cost=sum(row.input_cost or 0.0 for row in rows) if has_prices else None,
        output_cost=sum(_output_cost(row) for row in rows) if has_prices else None,
        unpriced=len(unpriced),
        unpriced_models=tuple(sorted({row.model or "unnamed" for row in unpriced})),
        unreported=sum(row.read is None for row in rows),
        findings=len(findings),
        muted=muted,
        lost=sum(finding.tokens for finding in findings),
        lost_cost=sum_lost(findings) if has_prices else None,
        avoidable_cost=_sum_avoidable(findings) if has_prices else None,
        unpriced_findings=_count_unpriced(findings),
        located=sum(f.tokens for f in findings if _is_located(f)),
        hour_gain=_sum_known(diagnosis.hour_gain for diagnosis in diagnoses),
    )


def sum_lost(findings: Sequence[Finding]) -> float | None:
    """What findings cost; None if there are some and none has a known price."""
    return _sum_known(finding.extra for finding in findings) if findings else 0.0


def _sum_avoidable(findings: Sequence[Finding]) -> float | None:
    if findings and _count_unpriced(findings) == len(findings):
        return None
    return _sum_known(finding.avoidable_cost for finding in findings) if findings else 0.0


def _count_unpriced(findings: Sequence[Finding]) -> int:
    return sum(finding.extra is None for finding in findings)


def _output_cost(row: RequestFigures) -> float:
    return (row.cost or 0.0) - (row.input_cost or 0.0)


def _is_located(finding: Finding) -> bool:
    place = finding.place
    return bool(place.segment) or place.stopped not in (None, "inside")


def label_of_finding(finding: Finding) -> str:
    """What a finding is listed under."""
    if finding.cause == "unexplained":
        return _OPEN_LABELS[finding.place.stopped or "inside"]
    return CAUSES[finding.cause].label


def sum_causes(findings: Iterable[Finding]) -> tuple[CauseSum, ...]:
    """The findings by cause, the dearest first."""
    groups: dict[tuple[str, Blame | None], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((label_of_finding(finding), finding.blame), []).append(finding)
    sums = [_sum_cause(label, group) for (label, _), group in groups.items()]
    return tuple(sorted(sums, key=lambda cause: (-(cause.extra or 0.0), -cause.tokens)))


def _sum_cause(label: str, group: Sequence[Finding]) -> CauseSum:
    certainties: dict[Certainty, int] = {}
    for finding in group:
        certainties[finding.certainty] = certainties.get(finding.certainty, 0) + 1
    first = group[0]
    return CauseSum(
        cause=first.cause,
        label=label,
        kind=first.kind,
        blame=first.blame,
        findings=len(group),
        tokens=sum(finding.tokens for finding in group),
        extra=_sum_known(finding.extra for finding in group),
        avoidable=_sum_avoidable(group),
        certainties=certainties,
        unpriced=_count_unpriced(group),
    )


def _sum_known(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def choose_fixes(findings: Iterable[Finding], hour_gain: float | None = None) -> tuple[Advice, ...]:
    """The fixes by what they would have saved."""
    sums: dict[CauseName, list[Finding]] = {}
    for finding in findings:
        if finding.avoidable and finding.avoidable_cost:
            sums.setdefault(finding.cause, []).append(finding)
    advice = [
        Advice(
            cause=cause,
            findings=len(group),
            saves=sum(finding.avoidable_cost or 0.0 for finding in group),
            fix=group[0].fix + (_tell_hour(hour_gain) if cause == "idle" else ""),
        )
        for cause, group in sums.items()
    ]
    return tuple(sorted(advice, key=lambda one: -one.saves))


def _tell_hour(gain: float | None) -> str:
    if gain is None:
        return ""
    outcome = f"have saved ${gain:.2f}" if gain >= 0 else f"have cost ${-gain:.2f} more"
    return f" An hour's lifetime for everything would {outcome}."


def list_unknowns(totals: ReportTotals, findings: Sequence[Finding]) -> tuple[Unknown, ...]:
    """What could not be known, and what would show it."""
    unknowns: list[Unknown] = []
    opened = [finding for finding in findings if finding.cause == "unexplained"]
    if opened:
        tokens = sum(finding.tokens for finding in opened)
        unknowns.append(
            Unknown(
                what=f"why {count_of(len(opened), 'break')} happened ({count_of(tokens, 'token')})",
                record="the request bodies: a log of requests, or a HAR file",
            )
        )
    depths = {finding.record for finding in findings}
    if findings and "bodies" not in depths:
        unknowns.append(
            Unknown(
                what="which bytes changed: these records hold none, so nothing is called proven",
                record="the request bodies: a log of requests, or a HAR file",
            )
        )
    if totals.unreported:
        unknowns.append(
            Unknown(
                what=f"what {count_of(totals.unreported, 'request')} read: "
                f"{'its record does' if totals.unreported == 1 else 'their records do'} not say",
                record="usage with the cache figures of the provider",
            )
        )
    if totals.unpriced:
        names = ", ".join(totals.unpriced_models[:4])
        unknowns.append(
            Unknown(
                what=f"what {count_of(totals.unpriced, 'request')} cost: no list price of {names}",
                record="a file of prices (LAMINA_MODELS)",
            )
        )
    return tuple(unknowns)
