"""`lamina export` and `lamina import`."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import anyio
import typer

from lamina.adapters.files.durable_writes import write_new_file
from lamina.apps.cli.flags import AsJson, SessionName, SessionWorkspace
from lamina.apps.cli.index_progress import track
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_outcome, refuse_if, run_on_session
from lamina.apps.cli.terminal_text import visible
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_transfer import ExportForm, export_data, import_all, list_sources
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.wiring.session_importer import ImportReport
from lamina.errors import UsageError

app = typer.Typer()

SHOWN = 20


async def export_session(stored: StoredSession, form: ExportForm, out: str | None) -> str:
    """Return what the command prints: the session, or where it was written. `out` is a folder if
    one exists or if it ends with a slash; the folder is created, and the file gets its own name.

    Raises:
        UsageError: the file exists already, or cannot be written.
    """
    name, data = await export_data(stored, form)
    if out is None:
        return data.decode("utf-8", "surrogateescape")
    place = Path(out)
    try:
        if await _is_folder(out):
            place /= name
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error}") from error
    write_output(place, data)
    return f"{place}: {len(data):,} bytes"


def write_output(place: Path, data: bytes) -> None:
    """Write a new file.

    Raises:
        UsageError: the file exists already, or cannot be written.
    """
    try:
        write_new_file(place, data)
    except FileExistsError:
        raise UsageError(f"{place} exists already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error}") from error


async def _is_folder(out: str) -> bool:
    """Whether `out` means a folder; a missing one is created."""
    folder = anyio.Path(out)
    if os.path.basename(out) in ("", ".", "..") and not await folder.is_dir():
        if await folder.exists():
            raise UsageError(f"{folder} is a file, not a folder; nothing was written")
        await folder.mkdir(parents=True)
    return await folder.is_dir()


async def import_files(
    files: Sequence[Path], workspace: Path, session: str | None, target: str | None, as_json: bool
) -> tuple[str, bool]:
    """Return what the command prints, and whether a file could not be imported."""
    listed = list_sources(files)
    sources = listed.sources
    if session is not None and len(sources) > 1:
        raise UsageError(f"--session works with one session only, and there are {len(sources)}")
    shown = track(sources, "importing", 2)
    imported, failed = await import_all(shown, workspace, session, target)
    if as_json:
        failures = [{"file": path, "problem": problem} for path, problem in failed]
        outcome: dict[str, object] = {"imported": imported, "failed": failures}
        if listed.passed_over:
            outcome["passed_over"] = listed.passed_over
        return format_json(outcome), bool(failed)
    lines = [line for report in imported for line in _report(report)]
    lines += [f"{path}: {problem}" for path, problem in failed]
    if imported and listed.passed_over:
        is_one = listed.passed_over == 1
        notes = "1 Markdown file" if is_one else f"{listed.passed_over:,} Markdown files"
        lines.append(f"skipped {notes} without a chat")
    return "\n".join(lines), bool(failed)


def _report(report: ImportReport) -> list[str]:
    lines = [f"{report.session}: {report.entries:,} entries from {report.source}"]
    if report.laid:
        lines.append(f"  added to the library in their current version: {', '.join(report.laid)}")
    for problem in report.problems[:SHOWN]:
        place = f"line {problem.line}: " if problem.line else ""
        lines.append(f"  {place}{problem.what}: {problem.detail}")
    if len(report.problems) > SHOWN:
        lines.append(f"  and {len(report.problems) - SHOWN:,} more; --json lists them all")
    return lines


@app.command()
def export(
    session: SessionName,
    workspace: SessionWorkspace = Path(),
    form: Annotated[
        Literal["markdown", "jsonl", "json", "requests"],
        typer.Option(
            "--format", "-f", metavar="FORM",
            help="markdown: a readable chat. jsonl: the journal itself, with its pictures. "
            "json: everything as JSON. requests: the contents and cost of every request, one "
            "line of JSON per request.",
        ),
    ] = "markdown",
    # Not a Path, which drops a trailing slash.
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="PATH",
            help="A new file, or a folder; folder/ is created if it does not exist.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Export a session as a Markdown chat (Obsidian Copilot's format), as its journal, or as a list
    of what each request contained (docs/requests.md)."""
    text = run_on_session(session, workspace, partial(export_session, form=form, out=out))
    typer.echo(text, nl=out is not None)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(help="Files of other tools, chats, or folders of them.")
    ],
    workspace: SessionWorkspace = Path(),
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="The new session's id; with one file only."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "--model", "-t", "-m", help="The provider:model to continue with."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import sessions from other tools.

    Reads sessions of pi, Claude Code (with its subagents), Codex, OpenCode (exports, its folder and
    its database), Copilot CLI and Gemini CLI, logs of requests to OpenAI and Anthropic, Markdown
    chats, and Lamina's own journals; from a folder, every session in it. Anything that could not be
    imported unchanged is listed; the files are not touched.
    """
    refuse_if(session is not None and len(files) > 1, "--session works with one file only")
    report, failed = run_async(import_files, files, workspace, session, target, as_json)
    print_outcome(report if as_json else visible(report), not failed, as_json=as_json)
