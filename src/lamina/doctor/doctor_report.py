"""Builds the doctor's report: sums findings by cause and fix, compares them with an earlier report,
and converts reports to and from plain data.

Laws: nothing is sent anywhere and nothing is changed. Sums include only priced amounts and state
what they leave out; muted findings are counted separately. Shares of money are relative to the
input's cost at list price. Requests before the chosen time still serve as a basis for comparison.
Plain data contains digests instead of session text, unless text is requested.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina import __version__
from lamina.adapters.files.own_file import open_regular_file
from lamina.adapters.providers.model_book import load_book
from lamina.core.audit.break_causes import CAUSES, Blame, BreakKind, CauseName, Certainty, count_of
from lamina.core.ports import TargetBook
from lamina.core.text.money import dollars
from lamina.core.values.settings import Target
from lamina.doctor.collector import ReadFiles, RequestCollector
from lamina.doctor.findings import (
    Finding,
    FindingPlace,
    RequestFigures,
    SessionDiagnosis,
    diagnose,
    front_reads,
)
from lamina.doctor.observed_request import ObservedRequest
from lamina.doctor.readings import common_floors
from lamina.errors import LaminaError, UsageError

# Labels for places whose cause is not recorded.
_OPEN_LABELS = {
    "nothing": "nothing was read, cause open",
    "floor": "only tools and system read, cause open",
    "end_of": "read to an older end, cause open",
    "inside": "stopped in between, cause open",
}


class CauseSum(Struct, frozen=True, kw_only=True):
    """The findings with one cause, or at one place if the cause is undecided."""

    cause: CauseName
    label: str
    kind: BreakKind
    blame: Blame | None
    findings: int
    tokens: int
    # US dollars beyond the cost of reading; None if nothing has a known price.
    extra: float | None
    avoidable: float | None
    certainties: dict[Certainty, int]
    # Findings without a known price, excluded from both sums of money.
    unpriced: int = 0


class ReportTotals(Struct, frozen=True, kw_only=True):
    sessions: int = 0
    requests: int = 0
    input: int = 0
    read: int = 0
    written: int = 0
    # At list price; requests without a known price are excluded and counted. None if no request has
    # one.
    input_cost: float | None = 0.0
    output_cost: float | None = 0.0
    unpriced: int = 0
    unpriced_models: tuple[str, ...] = ()
    # Requests whose provider reported nothing about its cache.
    unreported: int = 0
    findings: int = 0
    muted: int = 0
    lost: int = 0
    # None if no finding has a known price; findings without one are counted.
    lost_cost: float | None = 0.0
    avoidable_cost: float | None = 0.0
    unpriced_findings: int = 0
    # Lost tokens whose place is known.
    located: int = 0
    # What a one-hour lifetime for all five-minute entries would have saved, less its extra cost.
    hour_gain: float | None = None

    @property
    def lost_share(self) -> float:
        """The lost share of the input's cost, or of its tokens if prices are unknown."""
        if self.input_cost and self.lost_cost is not None:
            return self.lost_cost / self.input_cost
        return self.lost / self.input if self.input and self.unpriced else 0.0


class Advice(Struct, frozen=True, kw_only=True):
    """A fix and its potential savings."""

    cause: CauseName
    findings: int
    saves: float
    fix: str


class Unknown(Struct, frozen=True, kw_only=True):
    """Something missing from the record, and the kind of record that would show it."""

    what: str
    record: str


def sum_totals(
    diagnoses: Sequence[SessionDiagnosis], findings: Sequence[Finding], muted: int = 0
) -> ReportTotals:
    """Sum up all requests and findings."""
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
    """Return the cost of findings; None if there are some and none has a known price."""
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
    """Return the label that lists a finding."""
    if finding.cause == "unexplained":
        return _OPEN_LABELS[finding.place.stopped or "inside"]
    return CAUSES[finding.cause].label


def sum_causes(findings: Iterable[Finding]) -> tuple[CauseSum, ...]:
    """Return the findings by cause, the most expensive first."""
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
    """Return the fixes, ordered by what they would have saved."""
    sums: dict[CauseName, list[Finding]] = {}
    for finding in findings:
        if finding.avoidable and finding.avoidable_cost:
            sums.setdefault(finding.cause, []).append(finding)
    advice = [
        Advice(
            cause=cause,
            findings=len(group),
            saves=sum(finding.avoidable_cost or 0.0 for finding in group),
            fix=group[0].fix + (_describe_hour_gain(hour_gain) if cause == "idle" else ""),
        )
        for cause, group in sums.items()
    ]
    return tuple(sorted(advice, key=lambda one: -one.saves))


def _describe_hour_gain(gain: float | None) -> str:
    if gain is None:
        return ""
    outcome = f"have saved {dollars(gain)}" if gain >= 0 else f"have cost {dollars(-gain)} more"
    return f" A one-hour lifetime for everything would {outcome}."


def list_unknowns(totals: ReportTotals, findings: Sequence[Finding]) -> tuple[Unknown, ...]:
    """List what the records do not show, and the records that would show it."""
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
                what="which bytes changed: these records have none, so no cause is called proven",
                record="the request bodies: a log of requests, or a HAR file",
            )
        )
    if totals.unreported:
        unknowns.append(
            Unknown(
                what=f"what {count_of(totals.unreported, 'request')} read: "
                f"{'its record does' if totals.unreported == 1 else 'their records do'} not say",
                record="usage with the provider's cache figures",
            )
        )
    if totals.unpriced:
        names = ", ".join(totals.unpriced_models[:4])
        unknowns.append(
            Unknown(
                what=f"what {count_of(totals.unpriced, 'request')} cost: no list price for {names}",
                record="a file of prices (LAMINA_MODELS)",
            )
        )
    return tuple(unknowns)


# The schema version, raised if a field's name or meaning changes. docs/doctor.md lists the fields.
SCHEMA = 1
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
# Providers by model name, for records that do not name one.
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
    """One cause before and now, as shares of the input's cost; `saved` is the additional cost of
    the current requests at the earlier share, None without a known price."""

    label: str
    share_before: float
    share_now: float
    saved: float | None


class Against(Struct, frozen=True, kw_only=True):
    """This report compared with an earlier one."""

    earlier: str
    share_before: float
    share_now: float
    saved: float | None
    causes: tuple[Difference, ...]


class DoctorReport(Struct, frozen=True, kw_only=True):
    """The complete data of `lamina doctor`, as printed by `--json`."""

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
    """Options for what the report covers and leaves out."""

    since: float | None = None
    until: float | None = None
    session: str = ""
    muted: tuple[str, ...] = ()


# -- the report ----------------------------------------------------------------------------------


class TargetFinder:
    """A finder of request targets by provider and model; None if the book has none."""

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
    """Return a report on everything collected."""
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
    """Return the part of a session within the chosen times. Earlier requests still serve as a basis
    for comparison."""
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
    """Check names of findings and causes.

    Raises:
        UsageError: a name is neither a cause nor the id of a finding.
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
    # Without any price, the loss has none either.
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


# -- comparison with an earlier report ------------------------------------------------------------


def compare_reports(earlier: DoctorReport, now: DoctorReport, name: str) -> DoctorReport:
    """Return the report with the changes since an earlier one."""
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
    """Parse a time: `30d`, `12h`, `2026-11-01`, or an ISO time.

    Raises:
        UsageError: it is none of these.
    """
    if match := fullmatch(r"(\d{1,5})([hdw])", text.strip()):
        return (now - timedelta(**{_UNITS[match[2]]: int(match[1])})).timestamp()
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time; use 12h, 30d, 4w, 2026-11-01 or 2026-11-01T09:30"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_share(text: str) -> float:
    """Parse a share such as `5%` or `0.05`.

    Raises:
        UsageError: it is not a share.
    """
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if is_percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"--fail-over accepts a share such as 5% or 0.05, not {text!r}")
    return share


def plain_report(report: DoctorReport, *, with_text: bool) -> dict[str, Any]:
    """Return the report as plain data. Session text is replaced by digests, unless `with_text` is
    set."""
    fields = {
        name: getattr(report, name)
        for name in report.__struct_fields__
        if name not in ("findings", "totals")
    }
    plain: dict[str, Any] = msgspec.to_builtins(fields)
    totals = msgspec.to_builtins(report.totals)
    plain["totals"] = totals | {"lost_share": report.totals.lost_share}
    plain["findings"] = [plain_finding(f, with_text=with_text) for f in report.findings]
    order = [name for name in report.__struct_fields__ if name in plain]
    return {name: plain[name] for name in order}


def plain_finding(finding: Finding, *, with_text: bool) -> dict[str, Any]:
    fields = {name: getattr(finding, name) for name in finding.__struct_fields__}
    fields |= {
        "before": show_bytes(finding.before, with_text=with_text),
        "after": show_bytes(finding.after, with_text=with_text),
        "extra": finding.extra,
        "place": _plain_place(finding.place),
    }
    plain: dict[str, Any] = msgspec.to_builtins(fields)
    return plain


def _plain_place(place: FindingPlace) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__struct_fields__}


def show_bytes(data: bytes, *, with_text: bool) -> str | None:
    """Return an excerpt of a prompt: as text if requested, otherwise as a digest."""
    if not data:
        return None
    if with_text:
        return data.decode("utf-8", "replace")
    return f"sha256:{sha256(data).hexdigest()[:16]}"


def read_report(path: Path) -> DoctorReport | None:
    """Read a report written by `--json`; None if the file is not one.

    Raises:
        UsageError: it was written by a version with another schema.
    """
    try:
        with open_regular_file(path) as file:
            value = msgspec.json.decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or "schema" not in value or "totals" not in value:
        return None
    if value["schema"] != SCHEMA:
        raise UsageError(
            f"{str(path)!r} is a report of schema {value['schema']!r}, but this version reads "
            f"schema {SCHEMA}; name the sessions themselves, or a time"
        )
    try:
        return DoctorReport(
            totals=msgspec.convert(value["totals"], ReportTotals),
            causes=msgspec.convert(value.get("causes", []), tuple[CauseSum, ...]),
        )
    except msgspec.ValidationError as error:
        raise UsageError(f"the report {str(path)!r} cannot be read: {error}") from error
