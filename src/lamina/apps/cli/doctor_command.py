"""`lamina doctor`: a report on one screen that claims no more than it knows."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import Annotated, get_args

import anyio
import typer

from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import exit_on_error, refuse_if
from lamina.apps.cli.terminal_text import one_line, print_text, visible
from lamina.apps.views.plain_text import format_json
from lamina.core.audit.break_causes import CAUSES, Certainty, count_of
from lamina.core.text.money import dollars
from lamina.doctor.collector import StoreListing, collect
from lamina.doctor.doctor_report import (
    Advice,
    Against,
    CauseSum,
    DoctorOptions,
    DoctorReport,
    ReportTotals,
    check_muted,
    compare_reports,
    parse_share,
    parse_since,
    plain_report,
    read_report,
    report_on,
)
from lamina.doctor.findings import Finding
from lamina.doctor.sentences import (
    describe_finding,
    describe_unpriced,
    explain_no_requests,
    explain_unjudged,
    name_day,
    name_program,
    short_count,
    short_tokens,
    write_amount,
)
from lamina.errors import UsageError

app = typer.Typer()

WIDTH = 79
DEAREST, FIXES, PROBLEMS = 5, 3, 3
_BAR = 7
# From this many files on, a bar is shown.
_MANY = 20


def track_files(files: Sequence[Path]) -> Iterator[Path]:
    """Yield the files one by one, with a bar on a terminal if there are many."""
    if len(files) < _MANY:
        return iter(files)
    from lamina.apps.cli.index_progress import track

    return track(files, "reading", _MANY)


async def list_own_sessions() -> Sequence[StoreListing]:
    """List Lamina's own sessions in all workspaces. Imported here, so that a run on named files
    does not wait for everything a session needs."""
    from lamina.apps.wiring.stores import list_everywhere

    return await list_everywhere()


async def examine(
    paths: Sequence[str], options: DoctorOptions, against: str | None
) -> DoctorReport:
    """Return the report on some files, compared with an earlier one if asked.

    Raises:
        UsageError: `against` is not a report, sessions or a time.
    """
    collector = await collect(paths, track_files, list_own_sessions)
    report = report_on(collector, options)
    if against is None:
        return report
    if (earlier := await _read_earlier(against, options)) is not None:
        return compare_reports(earlier, report, against)
    try:
        moment = parse_since(against, datetime.now(UTC))
    except UsageError:
        raise UsageError(
            f"--against {against!r} is not a report from --json, sessions, or a time such as 7d "
            f"or 2026-11-01"
        ) from None
    earlier = report_on(collector, _until(options, moment))
    now = report_on(collector, _from(options, moment))
    return compare_reports(earlier, now, f"what came before {name_day(moment)}")


async def _read_earlier(against: str, options: DoctorOptions) -> DoctorReport | None:
    """Return the report in a file, or on the sessions at a path; None if it is not a path."""
    if not await anyio.Path(against).exists():
        return None
    if (written := read_report(Path(against))) is not None:
        return written
    collector = await collect([against], track_files, list_own_sessions)
    earlier = report_on(collector, DoctorOptions(muted=options.muted))
    if not earlier.totals.requests:
        raise UsageError(f"--against {against!r}contains no readable request")
    return earlier


def _until(options: DoctorOptions, moment: float) -> DoctorOptions:
    return DoctorOptions(
        since=options.since, until=moment, session=options.session, muted=options.muted
    )


def _from(options: DoctorOptions, moment: float) -> DoctorOptions:
    since = max(moment, options.since or moment)
    return DoctorOptions(since=since, session=options.session, muted=options.muted)


def check_share(report: DoctorReport, limit: float, asked: str) -> tuple[int, str]:
    """Return the exit code of `--fail-over`, and a message if it is not 0: 1 if more than `limit`
    was lost, 2 if there is nothing to judge."""
    if unjudged := explain_unjudged(report):
        return 2, visible(f"--fail-over {asked} has nothing to judge. {unjudged}")
    share = report.totals.lost_share
    if share > limit:
        return 1, visible(f"{share:.1%} was lost, more than --fail-over {asked}")
    return 0, ""


# -- the screen ----------------------------------------------------------------------------------


def draw_report(report: DoctorReport) -> str:
    """The report on one screen of 80 columns."""
    totals = report.totals
    lines = [*_headline(report), ""]
    if not totals.requests:
        lines += [*wrap(visible(explain_no_requests(report)), WIDTH), *_draw_problems(report)]
        return "\n".join(visible(line) for line in lines)
    lines += _draw_totals(report)
    if report.causes:
        lines += ["", *_draw_causes(report.causes)]
        lines += ["", "Most expensive"]
        for number, finding in enumerate(report.findings[:DEAREST], 1):
            lines += _hang(f" {number}. ", f"{describe_finding(finding)} [{finding.id}]")
    if report.fixes:
        lines += ["", "What to change"]
        for number, advice in enumerate(report.fixes[:FIXES], 1):
            lines += _hang(f" {number}. ", _advise(advice))
    if report.against is not None:
        lines += ["", *_draw_against(report.against)]
    if report.unknowns:
        lines += ["", "Unknown, and what would reveal it"]
        for unknown in report.unknowns:
            lines += _hang(" - ", f"{unknown.what}: {unknown.record}")
    lines += _draw_problems(report)
    return "\n".join(visible(line) for line in lines)


def _headline(report: DoctorReport) -> list[str]:
    programs = [name_program(source) for source in report.read.sources if source]
    moments = [row.at for row in report.requests if row.at is not None]
    span = f", {name_day(min(moments))} to {name_day(max(moments))} (UTC)" if moments else ""
    return wrap(f"Lamina doctor: {', '.join(programs) or 'nothing'}{span}", WIDTH)


def _draw_totals(report: DoctorReport) -> list[str]:
    totals = report.totals
    share = totals.read / totals.input if totals.input else 0.0
    counts = (
        f"{count_of(totals.sessions, 'session')}, {count_of(totals.requests, 'request')}, "
        f"{short_tokens(totals.input)} in, {share:.1%} of them read from the cache"
    )
    lines = wrap(counts, WIDTH)
    lost = f"{short_tokens(totals.lost)} in {count_of(totals.findings, 'break')}"
    if totals.input_cost:
        left_out = _space(describe_unpriced(totals.unpriced, "request"))
        lines.append(f"Input at list price  {dollars(totals.input_cost)}{left_out}")
        lines += _hang("Lost to breaks       ", _tell_lost(totals, lost))
        left_out = _space(describe_unpriced(totals.unpriced_findings, "break"))
        lines.append(f"Avoidable            {write_amount(totals.avoidable_cost)}{left_out}")
    else:
        lines.append(f"Lost to breaks       {lost}")
    if report.causes:
        lines.append(f"How sure             {_sure(report.causes)}")
    if totals.muted:
        lines.append(f"Muted                {count_of(totals.muted, 'finding')}, not counted")
    note = f"List prices of {report.prices_of}; on a flat-rate plan this is quota, not money."
    return [*lines, note] if totals.input_cost else lines


def _tell_lost(totals: ReportTotals, lost: str) -> str:
    if totals.lost_cost is None:
        return f"{lost}, of unknown price"
    left_out = describe_unpriced(totals.unpriced_findings, "break")
    said = f"{dollars(totals.lost_cost)}  {totals.lost_share:.1%} of it"
    return f"{said}, {left_out}: {lost}" if left_out else f"{said}: {lost}"


def _space(text: str) -> str:
    return f"  {text}" if text else ""


def _draw_causes(causes: Sequence[CauseSum]) -> list[str]:
    has_prices = any(cause.extra for cause in causes)
    most = max((_weight(cause, has_prices) for cause in causes), default=0.0) or 1.0
    block = _block()
    lines = [f"{'Where it went':<39}{'':<{_BAR}}{'breaks':>7}{'tokens':>7}{'lost':>10}  blame"]
    for cause in causes:
        bar = block * max(1, round(_BAR * _weight(cause, has_prices) / most))
        head = f"{one_line(cause.label, 38):<39}{bar:<{_BAR}}"
        figures = (
            f"{cause.findings:>7,}{short_count(cause.tokens):>7}{write_amount(cause.extra):>10}  "
            f"{cause.blame or 'open'}"
        )
        # A large number or a tiny amount takes the room that it needs from the bar.
        lines.append(f"{head[: WIDTH - len(figures)]}{figures}")
        if cause.extra is not None and cause.unpriced:
            lines.append(f"  {describe_unpriced(cause.unpriced, 'break')}")
    return lines


def _block() -> str:
    """The character for bars, if the terminal's encoding has it."""
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
    return f"{dollars(advice.saves)}, {label} ({advice.findings:,}). {advice.fix}"


def _draw_against(against: Against) -> list[str]:
    head = (
        f"Against {against.earlier}: {against.share_before:.1%} lost then, "
        f"{against.share_now:.1%} now{_tell_saved(against.saved)}"
    )
    lines = wrap(visible(head), WIDTH)
    for cause in against.causes[:5]:
        sign = "-" if (cause.saved or 0.0) < 0 else "+"
        saved = "?" if cause.saved is None else sign + dollars(abs(cause.saved))
        lines.append(
            f"  {one_line(cause.label, 40):<41}{cause.share_before:>8.1%} ->{cause.share_now:>7.1%}"
            f"{saved:>12}"
        )
    return lines


def _tell_saved(saved: float | None) -> str:
    if saved is None:
        return "; price unknown"
    return f"; {'saved' if saved >= 0 else 'cost more by'} {dollars(abs(saved))}"


def _draw_problems(report: DoctorReport) -> list[str]:
    read = report.read
    unknown = read.sources.get("", 0)
    lines: list[str] = []
    if not read.problem_count:
        return lines
    passed = f", {count_of(unknown, 'file')} in unknown formats" if unknown else ""
    lines += ["", f"Skipped: {count_of(read.problem_count, 'place')} in the files{passed}"]
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


def list_findings(findings: Sequence[Finding]) -> str:
    """All findings, one or two lines per finding."""
    lines: list[str] = []
    for finding in findings:
        lines += _hang(f"{finding.id}  ", describe_finding(finding))
    return "\n".join(lines)


@app.command()
def doctor(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files or folders; - reads standard input. Default: everything on this machine.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only requests since then: 12h, 30d, 4w, 2026-11-01."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", metavar="ID", help="Only sessions whose id starts so."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="EARLIER",
            help="Show what a fix saved: since a time, against a --json report, or other sessions.",
        ),
    ] = None,
    mute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FINDING", help="Leave out a finding (by its id) or a cause. Repeatable."
        ),
    ] = None,
    fail_over: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with 1 if more was lost, such as 5%, or with 2 if nothing can be judged.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to a new file.")
    ] = None,
    with_text: Annotated[
        bool,
        typer.Option(
            "--with-text", help="In --json and --html, show changes as text instead of digests."
        ),
    ] = False,
    findings: Annotated[
        bool, typer.Option("--findings", help="List every finding, not just the most expensive.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Examine a small made-up session instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Find out where the cache was lost: what sessions paid for twice, and why.

    Reads transcripts of Claude Code, Codex, pi, OpenCode, Copilot CLI and Gemini CLI, Lamina's own
    sessions, request logs (OpenAI, Anthropic, Gemini, LiteLLM) and HAR files. Needs no key and no
    model, sends nothing anywhere and changes nothing. See docs/doctor.md.
    """
    refuse_if(sample and paths, "--sample accepts no other files")
    refuse_if(
        findings and as_json, "--findings is not needed with --json, which lists every finding"
    )
    refuse_if(with_text and not (as_json or html), "--with-text needs --json or --html")
    # Exit code 1 is for a failed check.
    with exit_on_error(2):
        limit = parse_share(fail_over) if fail_over is not None else None
        check_muted(mute or [])
        options = DoctorOptions(
            since=parse_since(since, datetime.now(UTC)) if since is not None else None,
            session=session or "",
            muted=tuple(mute or ()),
        )
        if sample:
            from lamina.doctor.sample import sample_files

            with sample_files() as files:
                report = run_async(examine, files, options, against)
        else:
            report = run_async(examine, paths or [], options, against)
        if html is not None:
            from lamina.apps.cli.import_export import write_output
            from lamina.doctor.report_page import write_page

            write_output(html, write_page(report, with_text=with_text).encode())
            typer.echo(f"{html}: written", err=True)
    if as_json:
        typer.echo(format_json(plain_report(report, with_text=with_text)))
    elif findings and report.totals.requests:
        typer.echo(list_findings(report.findings) or "No breaks found.")
    else:
        typer.echo(draw_report(report))
    if limit is not None:
        code, problem = check_share(report, limit, fail_over or "")
        if code:
            print_text(problem, err=True)
            raise typer.Exit(code)
