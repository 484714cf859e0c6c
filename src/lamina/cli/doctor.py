"""What `lamina doctor` prints: one screen, and no more than it knows."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import get_args

import anyio

from lamina.audit.doctor.findings import Finding
from lamina.audit.doctor.report import Advice, CauseSum, ReportTotals
from lamina.audit.vocabulary import CAUSES
from lamina.cli.terminal_text import one_line, visible
from lamina.errors import UsageError
from lamina.faces.doctor import (
    Against,
    DoctorOptions,
    DoctorReport,
    compare_reports,
    parse_since,
    report_on,
)
from lamina.faces.doctor_collector import collect
from lamina.faces.doctor_json import read_report
from lamina.faces.doctor_sentences import describe_finding, name_program, short_count, short_money
from lamina.values.cache_break import Certainty

WIDTH = 79
DEAREST, FIXES, PROBLEMS = 5, 3, 3
_BAR = 9
# So many files are worth a bar.
_MANY = 20


def track_files(files: Sequence[Path]) -> Iterator[Path]:
    """The files one by one, with a bar on a terminal if they are many."""
    if len(files) < _MANY:
        return iter(files)
    from lamina.cli.index_progress import track

    return track(files, "reading", _MANY)


async def examine(
    paths: Sequence[str], options: DoctorOptions, against: str | None
) -> DoctorReport:
    """The report on some files, beside an earlier one if that was asked for.

    Raises:
        UsageError: `against` is neither a report, nor sessions, nor a time.
    """
    collector = await collect(paths, track_files)
    report = report_on(collector, options)
    if against is None:
        return report
    if (earlier := await _read_earlier(against, options)) is not None:
        return compare_reports(earlier, report, against)
    try:
        moment = parse_since(against, datetime.now(UTC))
    except UsageError:
        raise UsageError(
            f"--against {against!r} is neither a report of --json, nor sessions, nor a time "
            f"such as 7d or 2026-11-01"
        ) from None
    earlier = report_on(collector, _until(options, moment))
    now = report_on(collector, _from(options, moment))
    return compare_reports(earlier, now, f"what came before {_day(moment)}")


async def _read_earlier(against: str, options: DoctorOptions) -> DoctorReport | None:
    """The report that a path holds, or that comes of the sessions there; None if it is no path."""
    if not await anyio.Path(against).exists():
        return None
    if (written := read_report(Path(against))) is not None:
        return written
    collector = await collect([against], track_files)
    earlier = report_on(collector, DoctorOptions(muted=options.muted))
    if not earlier.totals.requests:
        raise UsageError(f"--against {against!r}: no request in it could be read")
    return earlier


def _until(options: DoctorOptions, moment: float) -> DoctorOptions:
    return DoctorOptions(
        since=options.since, until=moment, session=options.session, muted=options.muted
    )


def _from(options: DoctorOptions, moment: float) -> DoctorOptions:
    since = max(moment, options.since or moment)
    return DoctorOptions(since=since, session=options.session, muted=options.muted)


# -- the screen ----------------------------------------------------------------------------------


def draw_report(report: DoctorReport) -> str:
    """The report on one screen of 80 columns."""
    totals = report.totals
    lines = [*_headline(report), ""]
    if not totals.requests:
        return "\n".join([*lines, *_nothing_found(report), *_draw_problems(report)])
    lines += _draw_totals(report)
    if report.causes:
        lines += ["", *_draw_causes(report.causes)]
        lines += ["", "The dearest"]
        for number, finding in enumerate(report.findings[:DEAREST], 1):
            lines += _hang(f" {number}. ", f"{describe_finding(finding)} [{finding.id}]")
    if report.fixes:
        lines += ["", "What to change"]
        for number, advice in enumerate(report.fixes[:FIXES], 1):
            lines += _hang(f" {number}. ", _advise(advice))
    if report.against is not None:
        lines += ["", *_draw_against(report.against)]
    if report.unknowns:
        lines += ["", "Not known, and what would show it"]
        for unknown in report.unknowns:
            lines += _hang(" - ", f"{unknown.what}: {unknown.record}")
    lines += _draw_problems(report)
    return "\n".join(visible(line) for line in lines)


def _headline(report: DoctorReport) -> list[str]:
    programs = [name_program(source) for source in report.read.sources if source]
    moments = [row.at for row in report.requests if row.at is not None]
    span = f", {_day(min(moments))} to {_day(max(moments))} (UTC)" if moments else ""
    return wrap(f"Lamina doctor: {', '.join(programs) or 'nothing'}{span}", WIDTH)


def _nothing_found(report: DoctorReport) -> list[str]:
    files = report.read.files
    if not files:
        text = (
            "No sessions were found on this machine. Give files or folders: transcripts of Claude "
            "Code, Codex, pi, OpenCode, Copilot CLI or Gemini CLI, journals of Lamina, logs of "
            "requests, HAR. lamina doctor --sample shows what comes out."
        )
    else:
        text = f"{_count(files, 'file')} read, and no request with usage among what they hold."
    return wrap(text, WIDTH)


def _draw_totals(report: DoctorReport) -> list[str]:
    totals = report.totals
    share = totals.read / totals.input if totals.input else 0.0
    counts = (
        f"{_count(totals.sessions, 'session')}, {_count(totals.requests, 'request')}, "
        f"{short_count(totals.input)} tokens in, {share:.1%} of them read from the cache"
    )
    lines = wrap(counts, WIDTH)
    if totals.input_cost:
        lines.append(f"Input at list price  {short_money(totals.input_cost)}{_left_out(totals)}")
    lost = f"{short_count(totals.lost)} tokens in {_count(totals.findings, 'break')}"
    if totals.input_cost:
        money = short_money(totals.lost_cost)
        lines.append(f"Lost to breaks       {money}  {totals.lost_share:.1%} of it: {lost}")
        lines.append(f"Avoidable            {short_money(totals.avoidable_cost)}")
    else:
        lines.append(f"Lost to breaks       {lost}")
    if report.causes:
        lines.append(f"How sure             {_sure(report.causes)}")
    if totals.muted:
        lines.append(f"Muted                {_count(totals.muted, 'finding')}, in no sum")
    note = f"List prices of {report.prices_of}; on a flat-fee plan it is quota, not money."
    return [*lines, note] if totals.input_cost else lines


def _left_out(totals: ReportTotals) -> str:
    if not totals.unpriced:
        return ""
    return f"  without {_count(totals.unpriced, 'request')} of unknown price"


def _draw_causes(causes: Sequence[CauseSum]) -> list[str]:
    has_prices = any(cause.extra for cause in causes)
    most = max((_weight(cause, has_prices) for cause in causes), default=0.0) or 1.0
    block = _block()
    lines = [f"{'Where it went':<39}{'':<{_BAR}}{'breaks':>7}{'tokens':>7}{'lost':>8}  blame"]
    for cause in causes:
        bar = block * max(1, round(_BAR * _weight(cause, has_prices) / most))
        lost = "?" if cause.extra is None else short_money(cause.extra)
        lines.append(
            f"{one_line(cause.label, 38):<39}{bar:<{_BAR}}{cause.findings:>7,}"
            f"{short_count(cause.tokens):>7}{lost:>8}  {cause.blame or 'open'}"
        )
    return lines


def _block() -> str:
    """What bars are drawn with, if the terminal's encoding has it."""
    try:
        "█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "#"
    return "█"


def _sure(causes: Sequence[CauseSum]) -> str:
    counts: dict[str, int] = {}
    for cause in causes:
        for certainty, count in cause.certainties.items():
            counts[certainty] = counts.get(certainty, 0) + count
    order = [name for name in get_args(Certainty) if name in counts]
    return ", ".join(f"{counts[name]:,} {name}" for name in order)


def _weight(cause: CauseSum, has_prices: bool) -> float:
    return (cause.extra or 0.0) if has_prices else float(cause.tokens)


def _advise(advice: Advice) -> str:
    label = CAUSES[advice.cause].label
    return f"{short_money(advice.saves)}, {label} ({advice.findings:,}). {advice.fix}"


def _draw_against(against: Against) -> list[str]:
    verb = "saved" if against.saved >= 0 else "cost more by"
    head = (
        f"Against {against.earlier}: {against.share_before:.1%} lost then, "
        f"{against.share_now:.1%} now; {verb} {short_money(abs(against.saved))}"
    )
    lines = wrap(visible(head), WIDTH)
    for cause in against.causes[:5]:
        sign = "-" if cause.saved < 0 else "+"
        lines.append(
            f"  {one_line(cause.label, 40):<41}{cause.share_before:>8.1%} ->{cause.share_now:>7.1%}"
            f"{sign + short_money(abs(cause.saved)):>12}"
        )
    return lines


def _draw_problems(report: DoctorReport) -> list[str]:
    read = report.read
    unknown = read.sources.get("", 0)
    lines: list[str] = []
    if not read.problem_count:
        return lines
    passed = f", {_count(unknown, 'file')} of no known form" if unknown else ""
    lines += ["", f"Passed over: {_count(read.problem_count, 'place')} in the files{passed}"]
    for problem in read.problems[:PROBLEMS]:
        place = f" line {problem.line}" if problem.line else ""
        name = Path(problem.file).name
        lines.append(f" - {one_line(f'{name}{place}: {problem.detail}', WIDTH - 3)}")
    if read.problem_count > PROBLEMS:
        lines.append(" - and more: --json lists them")
    return lines


def _hang(mark: str, text: str) -> list[str]:
    room = WIDTH - len(mark)
    first, *rest = wrap(visible(text), room) or [""]
    return [mark + first, *(" " * len(mark) + line for line in rest)]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def list_findings(findings: Sequence[Finding]) -> str:
    """Every finding, a line or two each."""
    lines: list[str] = []
    for finding in findings:
        lines += _hang(f"{finding.id}  ", describe_finding(finding))
    return "\n".join(lines)
