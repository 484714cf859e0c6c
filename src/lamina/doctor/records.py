"""The doctor, as plain records: where a cache did not hit, why, what that cost, what to change.

Laws: nothing is sent anywhere and nothing is changed. What came before a time that was asked for is
still what later requests are compared with.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from re import fullmatch

from msgspec import Struct
from msgspec.structs import replace

from lamina import __version__
from lamina.adapters.providers.model_book import load_book
from lamina.core.audit.vocabulary import CAUSES
from lamina.core.ports import TargetBook
from lamina.core.values.settings import Target
from lamina.doctor.collector import ReadFiles, RequestCollector
from lamina.doctor.findings import Finding, RequestFigures, SessionDiagnosis, diagnose, front_reads
from lamina.doctor.observed import ObservedRequest
from lamina.doctor.report import (
    Advice,
    CauseSum,
    ReportTotals,
    Unknown,
    choose_fixes,
    list_unknowns,
    sum_causes,
    sum_lost,
    sum_totals,
)
from lamina.doctor.stops import common_floors
from lamina.errors import LaminaError, UsageError

# A field keeps its name and its meaning; a change of either raises this. docs/doctor.md names them.
SCHEMA = 1
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
# Whose a model is, by its name, where the record does not say.
_FAMILIES = (
    (("claude",), "anthropic"),
    (("gpt", "o1", "o3", "o4", "codex", "chatgpt"), "openai"),
    (("gemini",), "gemini"),
)


class SessionSum(Struct, frozen=True, kw_only=True):
    session: str
    source: str
    requests: int
    input: int
    input_cost: float | None
    lost: int
    lost_cost: float | None


class Difference(Struct, frozen=True, kw_only=True):
    """One cause then and now, as a share of what the input cost; `saved` is what now would have
    cost more at the share of then, None where that has no known price."""

    label: str
    share_before: float
    share_now: float
    saved: float | None


class Against(Struct, frozen=True, kw_only=True):
    """This report beside an earlier one."""

    earlier: str
    share_before: float
    share_now: float
    saved: float | None
    causes: tuple[Difference, ...]


class DoctorReport(Struct, frozen=True, kw_only=True):
    """Everything that `lamina doctor` knows, and that `--json` prints."""

    schema: int = SCHEMA
    lamina: str = __version__
    prices_of: str = ""
    since: float | None = None
    session: str = ""
    read: ReadFiles = ReadFiles()
    totals: ReportTotals = ReportTotals()
    causes: tuple[CauseSum, ...] = ()
    findings: tuple[Finding, ...] = ()
    fixes: tuple[Advice, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    sessions: tuple[SessionSum, ...] = ()
    requests: tuple[RequestFigures, ...] = ()
    against: Against | None = None


class DoctorOptions(Struct, frozen=True, kw_only=True):
    """What is looked at and what is left out."""

    since: float | None = None
    until: float | None = None
    session: str = ""
    muted: tuple[str, ...] = ()


# -- judging -------------------------------------------------------------------------------------


class TargetFinder:
    """The targets of requests, by provider and model; None where the book has none."""

    def __init__(self, book: TargetBook) -> None:
        self._book = book
        self._known: dict[tuple[str, str], Target | None] = {}

    def __call__(self, request: ObservedRequest) -> Target | None:
        key = (request.provider, request.model)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, provider: str, model: str) -> Target | None:
        name = model.rpartition("/")[2].lower()
        family = next((f for starts, f in _FAMILIES if name.startswith(starts)), "")
        for candidate in dict.fromkeys((family, provider)):
            if not candidate or not model:
                continue
            try:
                return self._book.find(f"{candidate}:{model.rpartition('/')[2]}")
            except LaminaError:
                continue
        return None


def report_on(collector: RequestCollector, options: DoctorOptions) -> DoctorReport:
    """The report on everything that was collected."""
    book = load_book()
    find_target = TargetFinder(book)
    fronts: dict[str, list[set[int]]] = {}
    for requests in collector.sessions.values():
        fronts.setdefault(requests[0].source, []).append(front_reads(requests))
    floors = {source: common_floors(reads) for source, reads in fronts.items()}
    diagnoses = [
        _within(diagnose(requests, find_target, floors[requests[0].source]), options)
        for name, requests in collector.sessions.items()
        if name.startswith(options.session)
    ]
    diagnoses = [diagnosis for diagnosis in diagnoses if diagnosis.requests]
    everything = [finding for diagnosis in diagnoses for finding in diagnosis.findings]
    findings = [finding for finding in everything if not _is_muted(finding, options.muted)]
    findings.sort(key=lambda finding: (-(finding.extra or 0.0), -finding.tokens))
    shown = {finding.id for finding in findings}
    totals = sum_totals(diagnoses, findings, len(everything) - len(findings))
    return DoctorReport(
        prices_of=book.date,
        since=options.since,
        session=options.session,
        read=collector.read_files(),
        totals=totals,
        causes=sum_causes(findings),
        findings=tuple(findings),
        fixes=choose_fixes(findings, totals.hour_gain),
        unknowns=list_unknowns(totals, findings),
        sessions=tuple(_sum_session(diagnosis, shown) for diagnosis in diagnoses),
        requests=tuple(row for diagnosis in diagnoses for row in diagnosis.requests),
    )


def _within(diagnosis: SessionDiagnosis, options: DoctorOptions) -> SessionDiagnosis:
    """What of a session lies within the times that were asked for. What came before them is still
    what later requests are compared with."""
    since, until = options.since, options.until
    if since is None and until is None:
        return diagnosis

    def is_within(at: float | None) -> bool:
        if at is None:
            return False
        return (since is None or at >= since) and (until is None or at < until)

    return replace(
        diagnosis,
        requests=tuple(row for row in diagnosis.requests if is_within(row.at)),
        findings=tuple(finding for finding in diagnosis.findings if is_within(finding.at)),
    )


def _is_muted(finding: Finding, muted: Sequence[str]) -> bool:
    return any(finding.cause == name or finding.id.startswith(name) for name in muted)


def check_muted(muted: Sequence[str]) -> None:
    """Refuses what is neither a cause nor the id of a finding.

    Raises:
        UsageError: naming it.
    """
    for name in muted:
        if name not in CAUSES and not fullmatch(r"[0-9a-f]{4,10}", name):
            raise UsageError(
                f"--mute {name!r} is neither a finding's id (such as 3f9a0c12d4) nor a cause: "
                f"{', '.join(CAUSES)}"
            )


def _sum_session(diagnosis: SessionDiagnosis, shown: set[str]) -> SessionSum:
    own = [finding for finding in diagnosis.findings if finding.id in shown]
    costs = [row.input_cost for row in diagnosis.requests if row.input_cost is not None]
    # Nothing has a price, and so the loss has none either.
    lost_cost = sum_lost(own) if costs else None
    return SessionSum(
        session=diagnosis.session,
        source=diagnosis.source,
        requests=len(diagnosis.requests),
        input=sum(row.input for row in diagnosis.requests),
        input_cost=sum(costs) if costs else None,
        lost=sum(finding.tokens for finding in own),
        lost_cost=lost_cost,
    )


# -- beside an earlier one -----------------------------------------------------------------------


def compare_reports(earlier: DoctorReport, now: DoctorReport, name: str) -> DoctorReport:
    """The report with what changed since an earlier one."""
    before, after = _shares(earlier), _shares(now)
    spent = now.totals.input_cost
    causes = [
        Difference(
            label=label, share_before=before.get(label, 0.0), share_now=after.get(label, 0.0),
            saved=_saved(before.get(label, 0.0), after.get(label, 0.0), spent),
        )
        for label in dict.fromkeys((*before, *after))
    ]  # fmt: skip
    causes.sort(key=lambda cause: -abs(cause.saved or 0.0))
    old, new = earlier.totals.lost_share, now.totals.lost_share
    against = Against(
        earlier=name, share_before=old, share_now=new, saved=_saved(old, new, spent),
        causes=tuple(causes),
    )  # fmt: skip
    return replace(now, against=against)


def _saved(before: float, now: float, spent: float | None) -> float | None:
    return None if spent is None else (before - now) * spent


def _shares(report: DoctorReport) -> dict[str, float]:
    spent = report.totals.input_cost
    if not spent:
        return {}
    shares: dict[str, float] = {}
    for cause in report.causes:
        shares[cause.label] = shares.get(cause.label, 0.0) + (cause.extra or 0.0) / spent
    return shares


def parse_since(text: str, now: datetime) -> float:
    """A moment that a person means: `30d`, `12h`, `2026-11-01`, or a whole time.

    Raises:
        UsageError: it is none of these.
    """
    if match := fullmatch(r"(\d{1,5})([hdw])", text.strip()):
        return (now - timedelta(**{_UNITS[match[2]]: int(match[1])})).timestamp()
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{text!r} is no time: give 12h, 30d, 4w, 2026-11-01 or 2026-11-01T09:30"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_share(text: str) -> float:
    """A share that a person means: `5%`, or `0.05`.

    Raises:
        UsageError: it is none.
    """
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if is_percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"--fail-over takes a share, such as 5% or 0.05, and not {text!r}")
    return share
