"""Commands and their options. What they do lives beside this file, one module a command."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from lamina import __version__
from lamina.errors import LaminaError
from lamina.values.settings import Settings

if TYPE_CHECKING:
    from lamina.engine.verifying import Verdict

app = typer.Typer(
    help="Lamina decides what a model sees, keeps those bytes still, and shows you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def run() -> None:
    """Runs the command line; an error of ours is one line and an exit code, not a traceback."""
    try:
        app()
    except (LaminaError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lamina {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Lamina decides what a model sees, keeps those bytes still, and shows you."""


@app.command()
def context(
    question: Annotated[
        str | None, typer.Argument(help="What you would ask; '-' reads it from standard input.")
    ] = None,
    workspace: Annotated[
        Path, typer.Option("--workspace", "-w", help="Folder that attached paths are read from.")
    ] = Path(),
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", "-a", help="A path in the workspace; may be given often."),
    ] = None,
    essential: Annotated[
        list[str] | None,
        typer.Option("--essential", help="Like --attach, but never left out for want of room."),
    ] = None,
    system: Annotated[str, typer.Option(help="The system prompt, or @FILE to read it.")] = "",
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="provider:model, as anthropic:claude-opus-5."),
    ] = None,
    promotion: Annotated[
        Literal["lazy", "eager"], typer.Option(help="Where laid-down items stand.")
    ] = "lazy",
    window: Annotated[
        int | None, typer.Option(help="Tokens of the whole request; the target's own by default.")
    ] = None,
    attachment_limit: Annotated[
        int | None, typer.Option(help="Tokens of all attachments together.")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(help="A JSON conversation to play first; see `lamina demo --show-script`."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    wire: Annotated[bool, typer.Option(help="The request in the vendor's wire form.")] = False,
    full: Annotated[bool, typer.Option(help="Do not shorten long texts.")] = False,
) -> None:
    """Print the envelope of a prepared turn: layers, items, what was left out, and why.

    Nothing is sent anywhere.
    """
    from lamina.cli.context import Request, show_context

    if question == "-":
        question = sys.stdin.read()
    if question is None and script is None:
        raise typer.BadParameter("give a question, '-' for standard input, or --script")
    settings = Settings(promotion=promotion, window=window, attachment_limit=attachment_limit)
    request = Request(
        question=question,
        workspace=workspace,
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        system=_text_or_file(system),
        target=target,
        settings=settings,
        script=script,
    )
    typer.echo(anyio.run(show_context, request, as_json, wire, full))


@app.command()
def demo(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", help="Your own folder, with --script.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(help="Your own conversation in the form of --show-script.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Whose token counts and cache rules to use.")
    ] = "openai:gpt-5",
    show_script: Annotated[
        bool, typer.Option("--show-script", help="Print the sample conversation and stop.")
    ] = False,
) -> None:
    """Play a scripted conversation and draw, turn by turn, what is sent: lazy, eager, naive.

    No model and no network is used: the answers are in the script.
    """
    from lamina.cli.demo import play_demo, sample_script

    if show_script:
        typer.echo(sample_script().read_text("utf-8"))
        return
    if (workspace is None) != (script is None):
        raise typer.BadParameter("--workspace and --script go together")
    anyio.run(play_demo, workspace, script, target)


@app.command()
def targets() -> None:
    """List the providers Lamina knows, with windows and cache rules."""
    from lamina.cli.targets import show_targets

    show_targets()


Workspace = Annotated[
    Path,
    typer.Option(
        "--workspace",
        "-w",
        help="The folder whose sessions are meant.",
        exists=True,
        file_okay=False,
    ),
]
SessionName = Annotated[
    str, typer.Argument(help="A session's id, the beginning of one, or its .jsonl file.")
]


@app.command()
def sessions(
    workspace: Workspace = Path(),
    everywhere: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the sessions that are kept, with what they cost."""
    from lamina.cli.sessions import list_sessions, show_sessions

    show_sessions(anyio.run(list_sessions, workspace, everywhere), as_json, everywhere)


@app.command()
def log(
    session: SessionName,
    workspace: Workspace = Path(),
    tree: Annotated[
        bool, typer.Option("--tree", help="All branches, not the active path.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="What compactions took out of the context.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten anything.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show a session's entries: what was said, sent, changed and left out, and what it cost."""
    from lamina.cli.finding import find_session
    from lamina.cli.log import describe_log, render_log

    async def show() -> str:
        journal = await (await find_session(session, workspace)).read()
        if as_json:
            return describe_log(journal).decode()
        return render_log(journal, tree=tree, dropped=dropped, full=full)

    typer.echo(anyio.run(show))


@app.command()
def verify(
    session: SessionName,
    workspace: Workspace = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Rebuild every request of a session from its journal and compare it with what was sent.

    Exits with 1 if anything differs or is damaged.
    """
    from lamina.cli.finding import find_session
    from lamina.cli.mending import check, describe_verdict, render_verdict

    async def run_check() -> "Verdict":
        return await check(await find_session(session, workspace))

    verdict = anyio.run(run_check)
    typer.echo(describe_verdict(verdict) if as_json else render_verdict(verdict))
    if not verdict.sound:
        raise typer.Exit(1)


@app.command()
def repair(session: SessionName, workspace: Workspace = Path()) -> None:
    """Write a repaired copy beside a damaged session; the damaged file is not touched."""
    from lamina.cli.finding import find_session
    from lamina.cli.mending import repair as write_copy

    async def run_repair() -> str:
        return await write_copy(await find_session(session, workspace))

    typer.echo(anyio.run(run_repair))


@app.command()
def export(
    session: SessionName,
    workspace: Workspace = Path(),
    form: Annotated[
        Literal["markdown", "jsonl", "json"],
        typer.Option("--format", "-f", help="A chat for people, the journal itself, or JSON."),
    ] = "markdown",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A file that is not there yet, or a folder."),
    ] = None,
) -> None:
    """Write a session as a Markdown chat (Obsidian Copilot's format) or as its journal."""
    from lamina.cli.exporting import export_session
    from lamina.cli.finding import find_session

    async def run_export() -> str:
        return await export_session(await find_session(session, workspace), form, out)

    typer.echo(anyio.run(run_export), nl=out is not None)


@app.command(name="import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Files of other systems, or chats.")],
    workspace: Workspace = Path(),
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="The id it gets; for one file.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="provider:model to go on with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Make sessions of what other systems keep.

    Reads sessions of pi, Claude Code, Codex, OpenCode and Copilot CLI, logs of requests to OpenAI
    and Anthropic, Markdown chats, and journals of Lamina. What could not be taken as it was is
    listed; the files are not touched.
    """
    from lamina.cli.exporting import import_files

    if session is not None and len(files) > 1:
        raise typer.BadParameter("--session is for one file")
    report, failed = anyio.run(import_files, files, workspace, session, target, as_json)
    typer.echo(report)
    if failed:
        raise typer.Exit(1)


def _text_or_file(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error
