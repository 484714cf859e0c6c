"""The doctor's report for a page: every finding with its sentence and its price.

Law: what was said in a session leaves this module as a digest, unless text is asked for.
"""

from msgspec import Struct

from lamina.core.audit.vocabulary import CAUSES, RecordDepth
from lamina.core.values.cache_break import Blame, BreakKind, CauseName, Certainty
from lamina.doctor.collector import ReadFiles
from lamina.doctor.findings import Finding, FindingPlace, RequestFigures
from lamina.doctor.records import DoctorReport, SessionSum
from lamina.doctor.report import Advice, CauseSum, ReportTotals, Unknown
from lamina.doctor.report_json import show_bytes
from lamina.doctor.sentences import describe_finding, name_program


class FindingRow(Struct, frozen=True, kw_only=True):
    """One loss. `before` and `after` are what stood at the byte, as a digest or as text. Money is
    in US dollars at list price; `extra` is what the loss cost over reading the same tokens."""

    id: str
    at: float | None
    source: str
    program: str
    session: str
    agent: str
    request: int
    request_id: str
    file: str
    line: int
    model: str
    record: RecordDepth
    kind: BreakKind
    cause: CauseName
    label: str
    blame: Blame | None
    certainty: Certainty
    candidates: tuple[CauseName, ...]
    detail: str
    sentence: str
    place: FindingPlace
    before: str | None
    after: str | None
    tokens: int
    paid: float | None
    would_have_cost: float | None
    extra: float | None
    avoidable: bool | None
    avoidable_cost: float | None
    fix: str
    chance: float | None
    sign: str
    gap: float | None


# So much of a report is shown; sums are of all of it.
MOST_FINDINGS, MOST_REQUESTS = 500, 5_000


class DoctorPage(Struct, frozen=True, kw_only=True):
    """A report as a page shows it. `with_text` says that what was said stands in it; `is_cut` that
    there are more findings or requests than are listed, the dearest findings first."""

    lamina: str
    prices_of: str
    with_text: bool
    is_cut: bool
    programs: tuple[str, ...]
    read: ReadFiles
    totals: ReportTotals
    lost_share: float
    causes: tuple[CauseSum, ...]
    findings: tuple[FindingRow, ...]
    fixes: tuple[Advice, ...]
    unknowns: tuple[Unknown, ...]
    sessions: tuple[SessionSum, ...]
    requests: tuple[RequestFigures, ...]


def show_report(report: DoctorReport, *, with_text: bool) -> DoctorPage:
    """The report with every finding in words."""
    return DoctorPage(
        lamina=report.lamina,
        prices_of=report.prices_of,
        with_text=with_text,
        is_cut=len(report.findings) > MOST_FINDINGS or len(report.requests) > MOST_REQUESTS,
        programs=tuple(name_program(source) for source in report.read.sources if source),
        read=report.read,
        totals=report.totals,
        lost_share=report.totals.lost_share,
        causes=report.causes,
        findings=tuple(
            _show_finding(finding, with_text) for finding in report.findings[:MOST_FINDINGS]
        ),
        fixes=report.fixes,
        unknowns=report.unknowns,
        sessions=report.sessions,
        requests=report.requests[:MOST_REQUESTS],
    )


def _show_finding(finding: Finding, with_text: bool) -> FindingRow:
    own = {name: getattr(finding, name) for name in finding.__struct_fields__}
    return FindingRow(
        **own
        | {
            "before": show_bytes(finding.before, with_text=with_text),
            "after": show_bytes(finding.after, with_text=with_text),
            "extra": finding.extra,
            "program": name_program(finding.source),
            "label": CAUSES[finding.cause].label,
            "sentence": describe_finding(finding),
        }
    )
