"""Writes the doctor's report as one page, without scripts and without external fonts or pictures.

Laws: the page is readable without colour and without scripts, all recorded content is escaped, and
session text appears as digests unless text is requested. Names cannot change its layout or
direction.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from lamina.core.audit.break_causes import CAUSES, count_of
from lamina.core.text.characters import visible
from lamina.core.text.money import dollars
from lamina.doctor.doctor_report import DoctorReport, label_of_finding, show_bytes
from lamina.doctor.findings import Finding, RequestFigures
from lamina.doctor.sentences import (
    describe_finding,
    describe_unpriced,
    explain_no_requests,
    name_program,
    short_tokens,
    write_amount,
)

# The number of sessions, findings and requests drawn; the others are counted.
MAX_SESSIONS, MAX_FINDINGS, MAX_REQUESTS = 40, 500, 400
# A short session does not fill the width, which keeps its columns narrow.
LEAST_COLUMNS = 60
_HEIGHT = 90
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .2rem .6rem;
border-bottom: 1px solid #8884; vertical-align: top } td.n, th.n { text-align: right }
.bar { background: #456; height: .7rem; display: inline-block } code { overflow-wrap: anywhere }
svg { width: 100%; height: 8rem; border: 1px solid #8884 } .read { fill: #9ab } .written { fill:
#456 } .fresh { fill: #c63 } .tick { stroke: #c00; stroke-width: 2 } summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Direction marks, never needed in names.
_DIRECTION_MARKS = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\u061c\u200e\u200f"})


def write_page(report: DoctorReport, *, with_text: bool) -> str:
    """Return the report as a page."""
    parts = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Lamina doctor</title><style>{_STYLE}</style></head><body>",
        "<h1>Where did the cache go?</h1>",
        *_totals(report),
        *_causes(report),
        *_fixes(report),
        *_sessions(report),
        *_findings(report.findings, with_text=with_text),
        *_unknowns(report),
        f"<p><small>lamina {_show(report.lamina)}, schema {report.schema}</small></p>",
        "</body></html>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _show(text: str) -> str:
    """Escape recorded text so that it can neither add markup nor change direction."""
    return escape(visible(text).translate(_DIRECTION_MARKS))


def _totals(report: DoctorReport) -> Iterable[str]:
    totals = report.totals
    if not totals.requests:
        yield f"<p>{_show(explain_no_requests(report))}</p>"
        return
    counts = (
        f"{count_of(totals.sessions, 'session')}, {count_of(totals.requests, 'request')}, "
        f"{short_tokens(totals.input)} in."
    )
    lost = f"{short_tokens(totals.lost)} in {count_of(totals.findings, 'break')}"
    if totals.input_cost is None:
        yield f"<p>{counts} Lost to breaks: {lost}. The cost is not known.</p>"
        return
    requests = _comma(describe_unpriced(totals.unpriced, "request"))
    breaks = _comma(describe_unpriced(totals.unpriced_findings, "break"))
    share = f" ({totals.lost_share:.1%})" if totals.lost_cost is not None else ""
    yield (
        f"<p>{counts} Input at list price {dollars(totals.input_cost)}{requests}; lost to "
        f"breaks {lost}, {_money_or_word(totals.lost_cost)}{share}{breaks}; avoidable "
        f"{write_amount(totals.avoidable_cost)}{breaks}. List prices of {_show(report.prices_of)}: "
        f"on a flat-rate plan this is quota, not money.</p>"
    )


def _money_or_word(amount: float | None) -> str:
    return "of unknown price" if amount is None else dollars(amount)


def _comma(text: str) -> str:
    return f", {text}" if text else ""


def _causes(report: DoctorReport) -> Iterable[str]:
    if not report.totals.requests:
        return
    if not report.causes:
        yield "<p>No breaks were found.</p>"
        return
    most = max((cause.extra or 0.0 for cause in report.causes), default=0.0) or 1.0
    yield "<h2>Where it went</h2><table><tr><th>cause<th>kind<th>blame<th>certainty"
    yield '<th class="n">breaks<th class="n">tokens<th class="n">lost<th></tr>'
    for cause in report.causes:
        lost = write_amount(cause.extra)
        if cause.extra is not None:
            lost += _comma(describe_unpriced(cause.unpriced, "break"))
        width = round(100 * (cause.extra or 0.0) / most)
        sure = ", ".join(f"{count} {name}" for name, count in cause.certainties.items())
        yield (
            f"<tr><td>{_show(cause.label)}<td>{cause.kind}<td>{cause.blame or 'open'}<td>{sure}"
            f'<td class="n">{cause.findings:,}<td class="n">{cause.tokens:,}<td class="n">{lost}'
            f'<td style="width:7rem"><span class="bar" style="width:{width}%"></span></tr>'
        )
    yield "</table>"


def _fixes(report: DoctorReport) -> Iterable[str]:
    if not report.fixes:
        return
    yield "<h2>What to change</h2><ol>"
    for advice in report.fixes:
        label = CAUSES[advice.cause].label
        yield (
            f"<li><b>{dollars(advice.saves)}</b>, {_show(label)} ({advice.findings:,}): "
            f"{_show(advice.fix)}</li>"
        )
    yield "</ol>"


def _sessions(report: DoctorReport) -> Iterable[str]:
    if not report.sessions:
        return
    rows: dict[str, list[RequestFigures]] = {}
    for row in report.requests:
        rows.setdefault(row.session, []).append(row)
    dearest = sorted(report.sessions, key=lambda session: -(session.lost_cost or 0.0))
    yield "<h2>Sessions</h2><p>Each column is a request: at the bottom what it read from the cache "
    yield "(light), above that what it wrote (dark) and what was fresh (orange). A red line on top "
    yield "marks a break.</p>"
    for session in dearest[:MAX_SESSIONS]:
        own = rows.get(session.session, [])
        cut = f"; the first {MAX_REQUESTS:,} are drawn" if len(own) > MAX_REQUESTS else ""
        yield (
            f"<h3>{_show(session.session)}</h3><p>{_show(name_program(session.source))}, "
            f"{count_of(session.requests, 'request')}, {short_tokens(session.lost)} lost, "
            f"{_money_or_word(session.lost_cost)}{cut}</p>"
        )
        yield _timeline(own[:MAX_REQUESTS])
    if len(dearest) > MAX_SESSIONS:
        more = count_of(len(dearest) - MAX_SESSIONS, "more session")
        yield f"<p>and {more}</p>"


def _timeline(rows: Sequence[RequestFigures]) -> str:
    most = max((row.input for row in rows), default=0) or 1
    width = max(LEAST_COLUMNS, len(rows)) * 6
    box = f'viewBox="0 0 {width} {_HEIGHT + 10}" preserveAspectRatio="none"'
    parts = [f'<svg {box} role="img">']
    parts.append("<title>requests in order: read, written, fresh</title>")
    for place, row in enumerate(rows):
        read, written = row.read or 0, row.written or 0
        fresh = max(0, row.input - read - written)
        top = float(_HEIGHT + 10)
        for name, tokens in (("read", read), ("written", written), ("fresh", fresh)):
            height = _HEIGHT * tokens / most
            top -= height
            parts.append(
                f'<rect class="{name}" x="{place * 6}" y="{top:.1f}" width="5" '
                f'height="{height:.1f}"/>'
            )
        if row.finding:
            parts.append(
                f'<a href="#{row.finding}"><line class="tick" x1="{place * 6 + 2.5}" y1="0" '
                f'x2="{place * 6 + 2.5}" y2="8"/><title>request {row.number}: '
                f"{count_of(row.lost, 'token')} lost</title></a>"
            )
    return "".join([*parts, "</svg>"])


def _findings(findings: Sequence[Finding], *, with_text: bool) -> Iterable[str]:
    if not findings:
        return
    yield "<h2>Findings</h2>"
    for finding in findings[:MAX_FINDINGS]:
        moment = "" if finding.at is None else datetime.fromtimestamp(finding.at, UTC).isoformat()
        yield (
            f'<details id="{_show(finding.id)}"><summary>{write_amount(finding.extra)} '
            f"{_show(label_of_finding(finding))}</summary>"
            f"<p>{_show(describe_finding(finding))}</p><p>{_show(moment)} "
            f"{_show(finding.file)} line {finding.line}. {finding.kind}, "
            f"{finding.blame or 'open'}, {finding.certainty}.</p>"
        )
        for name, data in (("before", finding.before), ("after", finding.after)):
            shown = show_bytes(data, with_text=with_text)
            if shown is not None:
                yield f"<p>{name}: <code>{_show(shown)}</code></p>"
        yield f"<p>{_show(finding.fix)}</p></details>"
    if len(findings) > MAX_FINDINGS:
        yield f"<p>and {len(findings) - MAX_FINDINGS:,} more: see lamina doctor --json</p>"


def _unknowns(report: DoctorReport) -> Iterable[str]:
    if not report.unknowns:
        return
    yield "<h2>Not known, and what would show it</h2><ul>"
    for unknown in report.unknowns:
        yield f"<li>{_show(unknown.what)}: {_show(unknown.record)}</li>"
    yield "</ul>"
