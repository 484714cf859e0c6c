"""`lamina doctor`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import anyio
import typer

from lamina.cli.options import AsJson

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
        typer.Option(metavar="SHARE", help="Exit with 1 if more was lost, such as 5%. For CI."),
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
    from lamina.cli.doctor import draw_report, examine, list_findings
    from lamina.cli.outcome import refuse_if
    from lamina.cli.terminal_text import visible
    from lamina.faces.doctor import (
        DoctorOptions,
        check_muted,
        parse_share,
        parse_since,
    )
    from lamina.faces.doctor_json import plain_report
    from lamina.faces.plain_text import format_json

    refuse_if(sample and paths, "--sample looks at no other files")
    refuse_if(findings and as_json, "--json lists every finding anyway")
    refuse_if(with_text and not (as_json or html), "--with-text is for --json and --html")
    limit = parse_share(fail_over) if fail_over is not None else None
    check_muted(mute or [])
    options = DoctorOptions(
        since=parse_since(since, datetime.now(UTC)) if since is not None else None,
        session=session,
        muted=tuple(mute or ()),
    )
    if sample:
        from lamina.faces.doctor_sample import sample_files

        with sample_files() as files:
            report = anyio.run(examine, files, options, against)
    else:
        report = anyio.run(examine, paths or [], options, against)
    if html is not None:
        from lamina.cli.transfer import write_output
        from lamina.faces.doctor_page import write_page

        write_output(html, write_page(report, with_text=with_text).encode())
        typer.echo(f"{html}: written", err=True)
    if as_json:
        typer.echo(format_json(plain_report(report, with_text=with_text)))
    elif findings:
        typer.echo(list_findings(report.findings) or "No breaks were found.")
    else:
        typer.echo(draw_report(report))
    if limit is not None and report.totals.lost_share > limit:
        share = f"{report.totals.lost_share:.1%}"
        typer.echo(visible(f"{share} was lost, more than --fail-over {fail_over}"), err=True)
        sys.exit(1)
