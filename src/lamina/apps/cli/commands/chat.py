"""Commands that talk to a model."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import typer

from lamina.apps.cli.flags import (
    AllowTools,
    PersonFlags,
    PromptFlags,
    SessionFlags,
    SpendUnasked,
    expand_flags,
    session_flag,
)
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if
from lamina.apps.views.session_options import PromptOptions, SettingChanges
from lamina.errors import UsageError

app = typer.Typer()


@app.command()
@expand_flags
def chat(
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    latest: Annotated[
        bool, session_flag("--continue", "-c", help="Continue the latest session.")
    ] = False,
    window: Annotated[
        int | None,
        session_flag(
            min=1, metavar="TOKENS",
            help="Limit a whole request to this many tokens; by default to the model's window.",
        ),
    ] = None,
    yes: SpendUnasked = False,
) -> None:  # fmt: skip
    """Talk to a model about a folder, and see what it was shown.

    By default a small model answers on this machine; it is downloaded the first time. /help lists
    what you can type. Through a pipe every line is a message; standard output holds the answers and
    what commands show, standard error everything else.
    """
    from lamina.apps.cli.chat.startup import run_chat

    refuse_if(
        opening.session is not None and latest, "--session and --continue exclude one another"
    )
    refuse_if(opening.new and latest, "--new and --continue exclude one another")
    options = opening.options(SettingChanges(window=window))
    _run(run_chat, options, prompt.options(), latest=latest, asks_price=not yes)


@app.command()
@expand_flags
def ask(
    question: Annotated[
        str | None, typer.Argument(help="What you ask; '-' reads it from standard input.")
    ] = None,
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    resume: Annotated[
        bool, session_flag("--resume", help="With --session: continue a turn that was interrupted.")
    ] = False,
    edit: Annotated[
        str | None,
        session_flag(
            "--edit", metavar="ENTRY",
            help="With --session: ask in place of an earlier question, or of the `last` one, which "
            "stays as a branch. What was attached to it goes along, unless you attach anything.",
        ),
    ] = None,
    regenerate: Annotated[
        str | None,
        session_flag(
            "--regenerate", metavar="ENTRY",
            help="With --session: ask for an answer again, or for the `last` one, which stays as "
            "a branch. No tool is run again for it.",
        ),
    ] = None,
    allow_tools: AllowTools = False,
    yes: SpendUnasked = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object at the end, instead of text.")
    ] = False,
) -> None:  # fmt: skip
    """Ask one question and print the answer as it comes.

    Standard output holds the answer and nothing else; the session's id, warnings and tool calls
    go to standard error. Text that is piped in follows the question as <stdin>...</stdin>; without
    a question it is the question. Terminals and sockets are not waited for. Tool calls that need
    your permission are denied unless you give --allow-tools. Before a request that writes a cache
    again at a price you are asked; where nobody can be, it is not sent unless you give --yes.

    Exits with 0 if there is an answer, 1 if not, 130 after Ctrl-C; what has arrived is kept.
    """
    from lamina.apps.cli.ask import AskPlace, read_question
    from lamina.apps.cli.ask import ask as run_ask

    along = prompt.options()
    has_more = opening.session is None or question is not None or along != PromptOptions()
    refuse_if(
        resume and has_more, "--resume goes with --session, and with no question or attachment"
    )
    refuse_if(
        regenerate is not None and has_more,
        "--regenerate goes with --session, and with no question or attachment",
    )
    refuse_if(edit is not None and opening.session is None, "--edit goes with --session")
    refuse_if(
        opening.new and (resume or edit is not None or regenerate is not None),
        "--new begins a session: there is nothing in it to --resume, --edit or --regenerate",
    )
    refuse_if(
        sum((resume, edit is not None, regenerate is not None)) > 1,
        "--resume, --edit and --regenerate exclude one another",
    )
    try:
        is_asked = not resume and regenerate is None
        text = read_question(question, sys.stdin) if is_asked else None
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    place = AskPlace(edit=edit, regenerate=regenerate)
    _run(
        run_ask, text, opening.options(), along,
        place=place, allow_tools=allow_tools, as_json=as_json, asks_price=not yes,
    )  # fmt: skip


@app.command()
@expand_flags
def rpc(*, prompt: PromptFlags, opening: SessionFlags, allow_tools: AllowTools = False) -> None:
    """Serve one session over JSON-RPC 2.0: one message per line on standard input and output.

    For programs in any language; docs/rpc.md describes the methods. --attach and --essential apply
    to every prompt. It ends with standard input; what has arrived of an answer is kept.
    """
    from lamina.apps.cli.rpc.rpc_server import serve

    _run(serve, opening.options(), prompt.options(), allow_tools=allow_tools)


def _run(command: Callable[..., Awaitable[int]], *arguments: object, **named: Any) -> None:
    """Runs a command and exits with its code: 130 for Ctrl-C where signals cannot be caught."""
    from lamina.apps.cli.stdio import fill_descriptors

    fill_descriptors()
    try:
        code = run_async(partial(command, *arguments, **named))
    except KeyboardInterrupt:
        code = 130
    if code:
        raise typer.Exit(code)
