"""`lamina notes`: search and query a workspace's notes, and find problems in them.

Law: searches here find what a session finds. Nothing in a note can steer the terminal.
"""

import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from lamina.adapters.files.extras import require
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import AsJson, Lexical, Since, Until, Within, read_scope
from lamina.apps.cli.footnotes import list_hits
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import error_console, print_outcome, print_report, read_argument
from lamina.apps.cli.terminal_text import one_line, print_note, print_text, visible, visible_name
from lamina.apps.views.note_problems import (
    NoteProblem,
    count_nearness,
    count_tags,
    find_problems,
    open_notes,
    undo_change,
)
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_opener import ensure_search, show_progress
from lamina.apps.wiring.opened_workspace import Workspace, open_workspace
from lamina.core.audit.break_causes import count_of
from lamina.core.notes.query.rendered_query import render_query
from lamina.core.values.note import NoteSearchResult, Scope

app = typer.Typer(
    name="notes",
    help="Work with a workspace's notes: search them, query their properties, find problems.",
    no_args_is_help=True,
)

NoteFolder = Annotated[
    Path,
    typer.Option("--workspace", "-w", help="The folder of notes.", exists=True, file_okay=False),
]

WIDTH = 160
# How many findings of a check are shown; --all and --json show all of them.
MAX_OF_A_KIND = 40
MAX_DECISIONS = 5


async def search_notes(
    folder: Path,
    query: str,
    scope: Scope,
    top: int,
    lexical: bool,
    as_json: bool,
    console: Console,
) -> str:
    async with _open_search(folder, lexical, console) as workspace:
        result = await workspace.search(
            query, top=top, folder=scope.folders, tag=scope.tags,
            since=scope.since, until=scope.until,
        )  # fmt: skip
    for warning in result.warnings:
        # With --lexical, that was requested.
        if not (lexical and "by their words alone" in warning):
            print_note(console, f"warning: {one_line(warning)}")
    if as_json:
        # With --lexical, that was requested.
        return format_json(result.hits if lexical else _with_tier(result))
    if result.tier is not None and not lexical:
        print_note(console, f"{count_of(result.searched, 'note')}, {result.tier.words}")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return list_hits(result, width)


def _with_tier(result: NoteSearchResult) -> list[dict[str, Any]]:
    """The hits as plain records, with the method that found each."""
    tier = msgspec.to_builtins(result.tier)
    return [{**msgspec.to_builtins(hit), "tier": tier} for hit in result.hits]


async def index_notes(folder: Path, lexical: bool, console: Console) -> tuple[str, bool]:
    """Index the notes; return a report, and whether the index is there for the next search."""
    async with _open_search(folder, lexical, console) as workspace:
        ready = await workspace.index()
    for warning in ready.warnings:
        print_note(console, f"warning: {one_line(warning)}")
    notes = count_of(ready.searched, "note")
    are = "is" if ready.searched == 1 else "are"
    if ready.unkept:
        unkept = count_of(ready.unkept, "new passage")
        problem = f"{unkept} could not be saved, and will be indexed again"
        return f"{notes} {are} indexed in memory only: {problem}", False
    return f"{notes} {are} ready to be searched", True


async def query_notes(folder: Path, text: str) -> str:
    async with open_notes(folder) as workspace:
        notes = (await workspace.catalogue()).notes
        return visible(render_query(text, notes, at="", now=datetime.now(), zone=None))


async def list_tags(folder: Path, as_json: bool) -> str:
    async with open_notes(folder) as workspace:
        catalogue = await workspace.catalogue()
    tags = count_tags(catalogue)
    if as_json:
        return msgspec.json.encode([{"tag": tag, "notes": count} for tag, count in tags]).decode()
    if not tags:
        return f"no note of {len(catalogue.notes):,} has a tag"
    return "\n".join(f"{count:>6,}  #{visible(tag)}" for tag, count in tags)


async def check_notes(folder: Path, as_json: bool, show_all: bool) -> tuple[str, bool]:
    """Return a report of all problems, and whether there are none."""
    async with open_notes(folder) as workspace:
        catalogue = await workspace.catalogue()
        paths = await workspace.paths()
    findings = find_problems(catalogue, paths)
    problems = [finding for finding in findings if not finding.is_decided]
    if as_json:
        return msgspec.json.encode(findings).decode(), not problems
    lines = _list_problems(problems, len(problems) if show_all else MAX_OF_A_KIND)
    lines += _list_decisions(findings, len(findings) if show_all else MAX_DECISIONS)
    notes = count_of(len(catalogue.notes), "note")
    kinds = Counter(problem.what for problem in problems)
    summary = ", ".join(f"{what} {number:,}" for what, number in kinds.most_common())
    lines.append(f"{notes}: {summary}" if problems else f"{notes}, no problems")
    return "\n".join(lines), not problems


def _list_problems(problems: Sequence[NoteProblem], most: int) -> list[str]:
    """A line per problem, up to `most` of a kind."""
    counts: Counter[str] = Counter()
    lines = []
    for problem in problems:
        counts[problem.what] += 1
        if counts[problem.what] <= most:
            lines.append(
                f"{visible_name(problem.path)}: {problem.what}: {one_line(problem.detail)}"
            )
    for what, number in counts.items():
        if number > most:
            lines.append(f"... and {number - most:,} more of kind {what!r}: --all lists them")
    return lines


def _list_decisions(findings: Sequence[NoteProblem], most: int) -> list[str]:
    """How many links have a name that several files share, how they were resolved, and examples."""
    decisions = [finding for finding in findings if finding.is_decided]
    if not decisions:
        return []
    by_nearness = count_nearness(decisions)
    counts = ", ".join(f"{nearness} {number:,}" for nearness, number in by_nearness.items())
    still_open = sum(finding.what.startswith("ambiguous ") for finding in findings)
    several = (
        f"{len(decisions) + still_open:,} links and pictures have a name that several files share"
    )
    lines = [
        f"{several}: {len(decisions):,} lead to the nearest ({counts}), {still_open:,} ambiguous"
    ]
    lines += [
        f"  {visible_name(decision.path)}: {one_line(decision.detail)}"
        for decision in decisions[:most]
    ]
    if len(decisions) > most:
        lines.append(f"  ... and {len(decisions) - most:,} more: --all lists them")
    return lines


@asynccontextmanager
async def _open_search(folder: Path, lexical: bool, console: Console) -> AsyncIterator[Workspace]:
    notices = ConsoleNotices(console)
    if not lexical:
        await ensure_search(notices)
    async with await open_workspace(folder, lexical=lexical) as workspace:
        show_progress(workspace.searcher, notices)
        yield workspace


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for; '-' reads it from a pipe.")],
    workspace: NoteFolder = Path(),
    within: Within = None,
    since: Since = None,
    until: Until = None,
    top: Annotated[int, typer.Option(min=1, help="How many passages to show.")] = 8,
    lexical: Lexical = False,
    as_json: AsJson = False,
) -> None:
    """Find matching passages, with their note, heading and lines.

    Searches by meaning and by words, as `ask --mode qa` does. New and changed notes are indexed
    first, with a progress bar; if that would take longer than ten seconds, only the likeliest
    passages are compared by meaning (`lamina notes index` indexes the rest). The last line says how
    the search was made. The embedding model is downloaded if it is missing (84 MB, once).
    """
    require("search")

    text, scope = read_argument(query, "query"), read_scope(within, since, until)
    report = run_async(search_notes, workspace, text, scope, top, lexical, as_json, error_console())
    print_report(report, as_json=as_json)


@app.command()
def index(workspace: NoteFolder = Path(), lexical: Lexical = False) -> None:
    """Index all notes now, with a progress bar; only changed notes are indexed again.

    A search itself waits at most ten seconds for the index. Exits with 1 if the index could not be
    saved.
    """
    require("search")

    report, is_kept = run_async(index_notes, workspace, lexical, error_console())
    print_outcome(report, is_kept)


@app.command()
def query(
    text: Annotated[
        str, typer.Argument(help="Such as 'TASK FROM #draft'; '-' reads it from a pipe.")
    ],
    workspace: NoteFolder = Path(),
) -> None:
    """Query notes, their fields and their tasks, as in Dataview; see docs/queries.md.

    In a note, the results of a dataview or lamina-query block are sent when the note is attached.
    """
    print_text(run_async(query_notes, workspace, sys.stdin.read() if text == "-" else text))


@app.command()
def tags(workspace: NoteFolder = Path(), as_json: AsJson = False) -> None:
    """List the tags, with the number of notes for each."""
    typer.echo(run_async(list_tags, workspace, as_json))


@app.command()
def undo(
    change: Annotated[
        str | None, typer.Argument(help="The undo id of a change; by default the last one.")
    ] = None,
    workspace: NoteFolder = Path(),
) -> None:
    """Undo a change that a model made with --files: the last one, or one by its id.

    Removed and replaced files are kept in the workspace's .lamina/trash. A file that has changed
    since then is left alone.
    """
    print_text(visible(run_async(undo_change, workspace, change)))


@app.command()
def check(
    workspace: NoteFolder = Path(),
    as_json: AsJson = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="List everything, not just some of each kind.")
    ] = False,
) -> None:
    """Report problems: links and pictures that are broken or ambiguous, unreadable frontmatter,
    queries that are left out and why, and files that cannot be opened.

    Also counts links whose name several files share and that resolve to the nearest one, as in
    Obsidian; these are not problems, and --json has a row for each ("decided link").

    Exits with 1 if there are problems.
    """
    report, is_fine = run_async(check_notes, workspace, as_json, show_all)
    print_outcome(report, is_fine, as_json=as_json)
