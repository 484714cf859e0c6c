"""Commands that show what would be sent, and to whom."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lamina.apps.cli.flags import (
    AsJson,
    PersonFlags,
    SessionFlags,
    SessionName,
    SessionWorkspace,
    expand_flags,
)
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_report, refuse_if, run_on_session
from lamina.apps.cli.terminal_text import visible
from lamina.apps.views.session_options import SettingChanges
from lamina.core.values.settings import Promotion
from lamina.errors import UsageError

app = typer.Typer()
_limit_option = partial(typer.Option, rich_help_panel="Layout and limits")


@app.command()
@expand_flags
def context(
    question: Annotated[
        str | None, typer.Argument(help="What you would ask; '-' reads it from standard input.")
    ] = None,
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    script: Annotated[
        Path | None,
        typer.Option(help="A JSON conversation to play first; see `lamina demo --show-script`."),
    ] = None,
    promotion: Annotated[
        Promotion | None,
        _limit_option(
            help="When the text of items moves to the system prompt: at boundaries (lazy), or from "
            "the next turn on (eager). By default as the session or its agent says, else lazy."
        ),
    ] = None,
    window: Annotated[
        int | None,
        _limit_option(
            metavar="TOKENS",
            help="Limit the whole request to this many tokens; by default to the model's window.",
        ),
    ] = None,
    attachment_limit: Annotated[
        int | None,
        _limit_option(metavar="TOKENS", help="Limit all attachments to this many tokens together."),
    ] = None,
    as_json: AsJson = False,
    wire: Annotated[bool, typer.Option(help="The request in the vendor's wire format.")] = False,
    full: Annotated[bool, typer.Option(help="Do not shorten long texts.")] = False,
) -> None:
    """Show the request for a question as `lamina ask` would send it: layers, items, what is left
    out, and why.

    It takes what `ask` takes and refuses what `ask` refuses, but needs no key and no model. Nothing
    is sent to a model and nothing is kept, also of a session that is continued (--session).
    Attached pages are fetched if you allow it, and tool servers that you trust are started, as
    `ask` would: their tools are part of the request. Where a model is asked first (--mode plan, a
    summary of a history that is too long), what depends on its answer cannot be shown.
    """
    from lamina.apps.cli.ask import read_question
    from lamina.apps.cli.context import show_context
    from lamina.apps.cli.stdio import is_piped

    refuse_if(
        script is not None and opening.session is not None,
        "--script and --session do not go together: a script plays a session of its own",
    )
    if question is not None or script is None:
        refuse_if(
            question is None and not is_piped(sys.stdin),
            "give a question, '-' for standard input, or --script",
        )
        try:
            question = read_question(question, sys.stdin)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from error
    changes = SettingChanges(promotion=promotion, window=window, attachment_limit=attachment_limit)
    options = opening.options(changes)
    text = run_async(
        partial(
            show_context, question, options, prompt.options(),
            script=script, as_json=as_json, wire=wire, full=full,
        )
    )  # fmt: skip
    print_report(text if as_json or wire else visible(text), as_json=as_json or wire)


@app.command()
def why(
    session: SessionName,
    question: Annotated[
        int | None,
        typer.Argument(metavar="N", help="The number of the question; by default the last one."),
    ] = None,
    workspace: SessionWorkspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show which rules, references and tools a question was answered with, and why.

    With priorities, include modes, scores, what was left out, and what was missing.
    """
    from lamina.apps.cli.why_command import show_why

    run_on_session(
        session, workspace, partial(show_why, number=question, workspace=workspace, as_json=as_json)
    )


@app.command()
def demo(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", help="Your own folder, with --script.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(help="Your own conversation, written as --show-script is.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t",
            help="The local model; with --no-model, the one whose counts and cache rules to use.",
        ),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Take the answers from the script, and only count.")
    ] = False,
    show_script: Annotated[
        bool, typer.Option("--show-script", help="Print the sample conversation and stop.")
    ] = False,
) -> None:  # fmt: skip
    """Talk to the embedded model and measure what it has to read again: lazy, eager, naive.

    Five turns over a sample folder take two or three minutes. The model is downloaded if it is
    missing (93 MB, once); if that fails, the conversation is played without it and the exit code
    is 1.
    """
    from lamina.apps.cli.demo_command import play_demo, sample_script

    if show_script:
        typer.echo(sample_script().read_text("utf-8"), nl=False)
        return
    refuse_if((workspace is None) != (script is None), "--workspace and --script go together")
    if not run_async(play_demo, workspace, script, target, not no_model):
        raise typer.Exit(1)


@app.command()
def targets(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Only targets with these words in their names."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the providers and models Lamina knows: prices, windows, cache lifetimes, and sources.

    Prices are US dollars for a million tokens. Where a single target is meant, by its whole name or
    by words that only it has, everything that is known of it is shown. Prices and limits of your
    own go into a file that LAMINA_MODELS names.
    """
    from lamina.apps.cli.targets_command import show_targets

    show_targets(words or [], as_json)
