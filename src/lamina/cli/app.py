"""Commands and their options. What they do lives beside this file, one module a command."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import anyio
import typer

from lamina import __version__
from lamina.errors import LaminaError
from lamina.values.settings import Settings

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
    except LaminaError as error:
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


def _text_or_file(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error
