"""`lamina doctor`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import print_text

app = typer.Typer()


@app.command()
def doctor(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files or folders; - reads standard input. Without any: what is on this machine.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only requests since then: 12h, 30d, 4w, 2026-11-01."),
    ] = None,
    session: Annotated[
        str, typer.Option("--session", "-s", metavar="ID", help="Only sessions whose id begins so.")
    ] = "",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="EARLIER",
            help="Say what a fix saved: since a time, a report of --json, or other sessions.",
        ),
    ] = None,
    mute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FINDING", help="Leave out a finding by its id, or a cause. Repeatable."
        ),
    ] = None,
    fail_over: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with 1 if more was lost, such as 5%, with 2 if there is nothing to judge.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to a new file.")
    ] = None,
    with_text: Annotated[
        bool,
        typer.Option(
            "--with-text", help="Show what changed as text in --json and --html, not as digests."
        ),
    ] = False,
    findings: Annotated[
        bool, typer.Option("--findings", help="List every finding and not just the dearest.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Look at a small made-up session instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Where did the cache go? Looks through sessions for what was paid for twice, and says why.

    Reads transcripts of Claude Code, Codex, pi, OpenCode, Copilot CLI and Gemini CLI, Lamina's own
    sessions, logs of requests (OpenAI, Anthropic, Gemini, LiteLLM) and HAR files. Needs no key and
    no model, sends nothing anywhere and changes nothing. See docs/doctor.md.
    """
    from lamina.apps.cli.doctor_command import check_share, draw_report, examine, list_findings
    from lamina.apps.cli.outcome import exit_on_error, refuse_if
    from lamina.apps.views.plain_text import format_json
    from lamina.doctor.doctor_report import (
        DoctorOptions,
        check_muted,
        parse_share,
        parse_since,
        plain_report,
    )

    refuse_if(sample and paths, "--sample looks at no other files")
    refuse_if(findings and as_json, "--json lists every finding anyway")
    refuse_if(with_text and not (as_json or html), "--with-text is for --json and --html")
    # 1 is what a check says that failed.
    with exit_on_error(2):
        limit = parse_share(fail_over) if fail_over is not None else None
        check_muted(mute or [])
        options = DoctorOptions(
            since=parse_since(since, datetime.now(UTC)) if since is not None else None,
            session=session,
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
        typer.echo(list_findings(report.findings) or "No breaks were found.")
    else:
        typer.echo(draw_report(report))
    if limit is not None:
        code, problem = check_share(report, limit, fail_over or "")
        if code:
            print_text(problem, err=True)
            raise typer.Exit(code)
