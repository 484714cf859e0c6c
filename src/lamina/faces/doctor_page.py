"""The doctor's report as one page: no script, no font and no picture from elsewhere.

Laws: it can be read without colour and without a script, everything from a record is escaped, and
what was said stands in it as digests unless text is asked for.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from lamina.audit.doctor.findings import Finding, RequestFigures
from lamina.audit.doctor.report import label_of_finding
from lamina.audit.vocabulary import CAUSES
from lamina.faces.doctor import DoctorReport
from lamina.faces.doctor_json import show_bytes
from lamina.faces.doctor_sentences import (
    describe_finding,
    name_program,
    short_count,
    short_money,
)

# Sessions and findings that are drawn; the others are counted.
MOST_SESSIONS, MOST_FINDINGS, MOST_REQUESTS = 40, 500, 400
# A short session does not fill the width: columns stay columns.
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


def write_page(report: DoctorReport, *, with_text: bool) -> str:
    """The page."""
    totals = report.totals
    parts = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Lamina doctor</title><style>{_STYLE}</style></head><body>",
        "<h1>Where did the cache go?</h1>",
        f"<p>{totals.sessions:,} sessions, {totals.requests:,} requests, "
        f"{short_count(totals.input)} tokens in. Input at list price "
        f"{short_money(totals.input_cost)}; lost to breaks {short_money(totals.lost_cost)} "
        f"({totals.lost_share:.1%}); avoidable {short_money(totals.avoidable_cost)}. "
        f"List prices of {escape(report.prices_of)}: on a flat-fee plan it is quota, not money."
        "</p>",
        *_causes(report),
        *_fixes(report),
        *_sessions(report),
        *_findings(report.findings, with_text=with_text),
        *_unknowns(report),
        f"<p><small>lamina {escape(report.lamina)}, schema {report.schema}</small></p>",
        "</body></html>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _causes(report: DoctorReport) -> Iterable[str]:
    if not report.causes:
        yield "<p>No breaks were found.</p>"
        return
    most = max((cause.extra or 0.0 for cause in report.causes), default=0.0) or 1.0
    yield "<h2>Where it went</h2><table><tr><th>cause<th>kind<th>blame<th>certainty"
    yield '<th class="n">breaks<th class="n">tokens<th class="n">lost<th></tr>'
    for cause in report.causes:
        lost = "?" if cause.extra is None else short_money(cause.extra)
        width = round(100 * (cause.extra or 0.0) / most)
        sure = ", ".join(f"{count} {name}" for name, count in cause.certainties.items())
        yield (
            f"<tr><td>{escape(cause.label)}<td>{cause.kind}<td>{cause.blame or 'open'}<td>{sure}"
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
            f"<li><b>{short_money(advice.saves)}</b>, {escape(label)} ({advice.findings:,}): "
            f"{escape(advice.fix)}</li>"
        )
    yield "</ol>"


def _sessions(report: DoctorReport) -> Iterable[str]:
    rows: dict[str, list[RequestFigures]] = {}
    for row in report.requests:
        rows.setdefault(row.session, []).append(row)
    dearest = sorted(report.sessions, key=lambda session: -session.lost_cost)
    yield "<h2>Sessions</h2><p>Each column is a request: below what it read from the cache "
    yield "(light), above it what it wrote (dark) and what was fresh (orange). A red line on top "
    yield "marks a break.</p>"
    for session in dearest[:MOST_SESSIONS]:
        own = rows.get(session.session, [])
        cut = f"; the first {MOST_REQUESTS:,} are drawn" if len(own) > MOST_REQUESTS else ""
        yield (
            f"<h3>{escape(session.session)}</h3><p>{escape(name_program(session.source))}, "
            f"{session.requests:,} requests, {short_count(session.lost)} tokens lost, "
            f"{short_money(session.lost_cost)}{cut}</p>"
        )
        yield _timeline(own[:MOST_REQUESTS])
    if len(dearest) > MOST_SESSIONS:
        yield f"<p>and {len(dearest) - MOST_SESSIONS:,} more sessions</p>"


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
                f"{row.lost:,} tokens lost</title></a>"
            )
    return "".join([*parts, "</svg>"])


def _findings(findings: Sequence[Finding], *, with_text: bool) -> Iterable[str]:
    if not findings:
        return
    yield "<h2>Findings</h2>"
    for finding in findings[:MOST_FINDINGS]:
        extra = "?" if finding.extra is None else short_money(finding.extra)
        moment = "" if finding.at is None else datetime.fromtimestamp(finding.at, UTC).isoformat()
        yield (
            f'<details id="{escape(finding.id)}"><summary>{extra} '
            f"{escape(label_of_finding(finding))}</summary>"
            f"<p>{escape(describe_finding(finding))}</p><p>{escape(moment)} "
            f"{escape(finding.file)} line {finding.line}. {finding.kind}, "
            f"{finding.blame or 'open'}, {finding.certainty}.</p>"
        )
        for name, data in (("before", finding.before), ("after", finding.after)):
            shown = show_bytes(data, with_text=with_text)
            if shown is not None:
                yield f"<p>{name}: <code>{escape(shown)}</code></p>"
        yield f"<p>{escape(finding.fix)}</p></details>"
    if len(findings) > MOST_FINDINGS:
        yield f"<p>and {len(findings) - MOST_FINDINGS:,} more: lamina doctor --json</p>"


def _unknowns(report: DoctorReport) -> Iterable[str]:
    if not report.unknowns:
        return
    yield "<h2>Not known, and what would show it</h2><ul>"
    for unknown in report.unknowns:
        yield f"<li>{escape(unknown.what)}: {escape(unknown.record)}</li>"
    yield "</ul>"
