"""Commands that talk to a model."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import anyio
import typer

from lamina.cli.flags import expand_flags
from lamina.cli.options import AllowTools, PersonFlags, PromptFlags, SessionFlags, session_flag
from lamina.cli.outcome import refuse_if
from lamina.errors import UsageError
from lamina.faces.options import PromptOptions, SettingChanges

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
) -> None:  # fmt: skip
    """Talk to a model about a folder, and see what it was shown.

    By default a small model answers on this machine; it is downloaded the first time. /help lists
    what you can type. Through a pipe every line is a message; standard output holds the answers and
    what commands show, standard error everything else.
    """
    from lamina.cli.chat.startup import run_chat

    refuse_if(
        opening.session is not None and latest, "--session and --continue exclude one another"
    )
    options = opening.options(SettingChanges(window=window))
    _run(run_chat, options, prompt.options(), latest=latest)


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
    allow_tools: AllowTools = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object at the end, instead of text.")
    ] = False,
) -> None:
    """Ask one question and print the answer as it comes.

    Standard output holds the answer and nothing else; the session's id, warnings and tool calls
    go to standard error. Text that is piped in follows the question as <stdin>...</stdin>; without
    a question it is the question. Terminals and sockets are not waited for. Tool calls that need
    your permission are denied unless you give --allow-tools.

    Exits with 0 if there is an answer, 1 if not, 130 after Ctrl-C; what has arrived is kept.
    """
    from lamina.cli.ask import ask as run_ask
    from lamina.cli.ask import read_question

    along = prompt.options()
    refuse_if(
        resume and (opening.session is None or question is not None or along != PromptOptions()),
        "--resume goes with --session, and with no question or attachment",
    )
    try:
        text = None if resume else read_question(question, sys.stdin)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    _run(run_ask, text, opening.options(), along, allow_tools=allow_tools, as_json=as_json)


@app.command()
@expand_flags
def rpc(*, prompt: PromptFlags, opening: SessionFlags, allow_tools: AllowTools = False) -> None:
    """Serve one session over JSON-RPC 2.0: one message per line on standard input and output.

    For programs in any language; docs/rpc.md describes the methods. --attach and --essential apply
    to every prompt. It ends with standard input; what has arrived of an answer is kept.
    """
    from lamina.cli.rpc.server import serve

    _run(serve, opening.options(), prompt.options(), allow_tools=allow_tools)


def _run(command: Callable[..., Awaitable[int]], *arguments: object, **named: Any) -> None:
    """Runs a command and exits with its code: 130 for Ctrl-C where signals cannot be caught."""
    from lamina.cli.stdio import fill_descriptors

    fill_descriptors()
    try:
        code = anyio.run(partial(command, *arguments, **named))
    except KeyboardInterrupt:
        code = 130
    if code:
        raise typer.Exit(code)
