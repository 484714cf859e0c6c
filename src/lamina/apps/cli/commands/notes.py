"""Commands about the notes of a workspace."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lamina.adapters.files.extras import require
from lamina.apps.cli.flags import AsJson, Lexical, Since, Until, Within, read_scope
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import error_console, print_outcome, print_report, read_argument
from lamina.apps.cli.terminal_text import print_text

app = typer.Typer(
    name="notes",
    help="The notes of a workspace: search them, query their properties, find what is wrong.",
    no_args_is_help=True,
)

NoteFolder = Annotated[
    Path,
    typer.Option("--workspace", "-w", help="The folder of notes.", exists=True, file_okay=False),
]


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for; '-' reads it from a pipe.")],
    workspace: NoteFolder = Path(),
    within: Within = None,
    since: Since = None,
    until: Until = None,
    top: Annotated[int, typer.Option(min=1, help="How many passages.")] = 8,
    lexical: Lexical = False,
    as_json: AsJson = False,
) -> None:
    """Find the passages that fit, each with its note, heading and lines.

    Searches by meaning and by words, as `ask --mode qa` does. What is new or changed is indexed
    first, with a progress bar; if that would take longer than ten seconds, only what looks most
    like the question is compared by meaning (`lamina notes index` indexes the rest). A line says
    how it was searched. The embedding model is downloaded if it is missing (84 MB, once).
    """
    require("search")
    from lamina.apps.cli.notes_commands import search_notes

    text, scope = read_argument(query, "query"), read_scope(within, since, until)
    report = run_async(search_notes, workspace, text, scope, top, lexical, as_json, error_console())
    print_report(report, as_json=as_json)


@app.command()
def index(workspace: NoteFolder = Path(), lexical: Lexical = False) -> None:
    """Index all notes now, with a progress bar; only what changed is indexed again.

    A search on its own waits no longer than ten seconds for it. Exits with 1 if the index could
    not be kept.
    """
    require("search")
    from lamina.apps.cli.notes_commands import index_notes

    report, is_kept = run_async(index_notes, workspace, lexical, error_console())
    print_outcome(report, is_kept)


@app.command()
def query(
    text: Annotated[
        str, typer.Argument(help="Such as 'TASK FROM #draft'; '-' reads it from a pipe.")
    ],
    workspace: NoteFolder = Path(),
) -> None:
    """Query notes, their fields and their tasks, as Dataview does; docs/queries.md explains how.

    The same query in a note, in a dataview or lamina-query block, is sent along when the note is
    attached.
    """
    from lamina.apps.cli.notes_commands import query_notes

    print_text(run_async(query_notes, workspace, sys.stdin.read() if text == "-" else text))


@app.command()
def tags(workspace: NoteFolder = Path(), as_json: AsJson = False) -> None:
    """List the tags, and how many notes have each."""
    from lamina.apps.cli.notes_commands import list_tags

    typer.echo(run_async(list_tags, workspace, as_json))


@app.command()
def undo(
    change: Annotated[
        str | None, typer.Argument(help="The undo id of a change; the last one by default.")
    ] = None,
    workspace: NoteFolder = Path(),
) -> None:
    """Undo what a model changed with --files: the last change, or one by its id.

    Removed and replaced files are kept in the workspace's .lamina/trash. A file that has changed
    since is left as it is.
    """
    from lamina.apps.cli.terminal_text import visible
    from lamina.apps.views.note_problems import undo_change

    print_text(visible(run_async(undo_change, workspace, change)))


@app.command()
def check(
    workspace: NoteFolder = Path(),
    as_json: AsJson = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="List everything, not just some of each kind.")
    ] = False,
) -> None:
    """Report what is wrong: links and pictures that lead nowhere or to several files, unreadable
    frontmatter, queries that are left out and why, files that cannot be opened.

    Also counts the links whose name several files have and that mean the nearest of them, as in
    Obsidian; that is not wrong, and --json has a row for each ("decided link").

    Exits with 1 if anything is wrong.
    """
    from lamina.apps.cli.notes_commands import check_notes

    report, is_fine = run_async(check_notes, workspace, as_json, show_all)
    print_outcome(report, is_fine, as_json=as_json)
