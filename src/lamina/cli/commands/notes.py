"""Commands about the notes of a workspace."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from lamina.cli.options import Since, Until, Within, read_scope

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer()
notes = typer.Typer(
    help="The notes of a workspace: search them, ask for their properties, see what is wrong.",
    no_args_is_help=True,
)
app.add_typer(notes, name="notes")

Workspace = Annotated[
    Path,
    typer.Option("--workspace", "-w", help="The folder of notes.", exists=True, file_okay=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Lexical = Annotated[bool, typer.Option("--lexical", help="By words alone, without embeddings.")]


@notes.command()
def search(
    query: Annotated[str, typer.Argument(help="What is looked for; '-' reads it from a pipe.")],
    workspace: Workspace = Path(),
    within: Within = None,
    since: Since = None,
    until: Until = None,
    top: Annotated[int, typer.Option(min=1, help="How many passages.")] = 8,
    lexical: Lexical = False,
    as_json: AsJson = False,
) -> None:
    """Find the passages that fit, each with its note, heading and lines.

    As `ask --mode qa` does it: by meaning and by words. What is new or changed is indexed first,
    with a progress bar; if embedding would take longer than ten seconds, it goes by words for now
    (`lamina notes index` does the rest). An embedding model that is not here is fetched (84 MB,
    once).
    """
    from lamina.cli.notes import search_notes
    from lamina.faces.notes import NoteSearchOptions

    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise typer.BadParameter("the query is empty")
    wanted = NoteSearchOptions(
        query=text, scope=read_scope(within, since, until), top=top, lexical=lexical
    )
    typer.echo(anyio.run(search_notes, workspace, wanted, as_json, _console()))


@notes.command()
def index(workspace: Workspace = Path(), lexical: Lexical = False) -> None:
    """Index the notes now, all of them, with a progress bar; only what changed is made.

    A search by itself does not wait longer than ten seconds for it.
    """
    from lamina.cli.notes import index_notes

    typer.echo(anyio.run(index_notes, workspace, lexical, _console()))


@notes.command()
def query(
    text: Annotated[str, typer.Argument(help="As 'LIST FROM #draft'; '-' reads it from a pipe.")],
    workspace: Workspace = Path(),
) -> None:
    """Ask for properties of notes, as a table or a list; docs/queries.md says how.

    The same query in a note, in a block called lamina-query, goes along when the note is attached.
    """
    from lamina.cli.notes import query_notes

    typer.echo(anyio.run(query_notes, workspace, sys.stdin.read() if text == "-" else text))


@notes.command()
def tags(workspace: Workspace = Path(), as_json: AsJson = False) -> None:
    """List the tags, and how many notes have each."""
    from lamina.cli.notes import list_tags

    typer.echo(anyio.run(list_tags, workspace, as_json))


@notes.command()
def undo(
    change: Annotated[
        str | None, typer.Argument(help="The undo id of a change; the last one by default.")
    ] = None,
    workspace: Workspace = Path(),
) -> None:
    """Take back what a model changed with --files: the last change, or one by its id.

    Removed and replaced files are kept in .lamina/trash of the workspace. A file that was changed
    since is left as it is.
    """
    from lamina.cli.terminal_text import visible
    from lamina.faces.notes import undo_change

    typer.echo(visible(anyio.run(undo_change, workspace, change)))


@notes.command()
def check(workspace: Workspace = Path(), as_json: AsJson = False) -> None:
    """Say what is wrong: links that lead nowhere or to several notes, frontmatter that cannot be
    read, queries that are wrong, files that cannot be opened.

    Exits with 1 if something is.
    """
    from lamina.cli.notes import check_notes

    report, is_sound = anyio.run(check_notes, workspace, as_json)
    typer.echo(report)
    if not is_sound:
        raise typer.Exit(1)


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)
