"""Commands that talk to a model."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import anyio
import typer

from lamina.cli.chat_options import (
    Active,
    AllowHost,
    Files,
    Mode,
    NoMemory,
    Since,
    Until,
    Web,
    Within,
    read_scope,
    refuse_files_in_qa,
    settings_changes,
)
from lamina.cli.options import text_or_file
from lamina.errors import UsageError

app = typer.Typer()

TalkWorkspace = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", help="Folder that attached paths are read from.",
        exists=True, file_okay=False,
    ),
]  # fmt: skip
Attach = Annotated[
    list[str] | None,
    typer.Option(
        "--attach", "-a", metavar="REFERENCE",
        help="What goes along: a path or the name of a note, a folder/, #tag, lines "
        "(note.md#L3-L9), a section (note#Heading) or a URL; may be given often.",
    ),
]  # fmt: skip
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
    typer.Option("--model", "--target", "-m", "-t", help="provider:model, as local:smollm2-135m."),
]
System = Annotated[str, typer.Option(help="The system prompt, or @FILE to read it.")]
WithAgent = Annotated[
    str | None,
    typer.Option(
        "--agent", "-A", metavar="PATH|NAME",
        help="An agent by name or path: persona, rules, references, tools. See `lamina agent`.",
    ),
]  # fmt: skip
WithProject = Annotated[str | None, typer.Option("--project", help="A project of the agent.")]
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
    model: Model = None,
    attach: Attach = None,
    essential: Essential = None,
    active: Active = None,
    mode: Mode = "agent",
    files: Files = False,
    within: Within = None,
    since: Since = None,
    until: Until = None,
    web: Web = None,
    allow_host: AllowHost = None,
    no_memory: NoMemory = False,
    system: System = "",
    agent: WithAgent = None,
    project: WithProject = None,
    mcp: Mcp = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a whole request; the model's own by default."),
    ] = None,
    max_tokens: MaxTokens = None,
) -> None:
    """Talk to a model about a folder, and see what it was shown.

    By default a small model answers on this machine; it is fetched at the first start. /help lists
    what can be typed. Through a pipe every line is a message; standard output holds the answers and
    what commands show, standard error all else.
    """
    from lamina.cli.chat.startup import ChatOptions, run_chat

    if session is not None and latest:
        raise typer.BadParameter("--session and --continue exclude one another")
    refuse_files_in_qa(mode, files)
    options = ChatOptions(
        workspace=workspace,
        session=session,
        latest=latest,
        target=model,
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        system=text_or_file(system),
        agent=agent,
        project=project,
        mcp=mcp,
        window=window,
        max_tokens=max_tokens,
        active=active,
        mode=mode,
        files=files,
        scope=read_scope(within, since, until),
        memory=not no_memory,
        changes=settings_changes(web, allow_host),
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
    active: Active = None,
    mode: Mode = "agent",
    files: Files = False,
    within: Within = None,
    since: Since = None,
    until: Until = None,
    web: Web = None,
    allow_host: AllowHost = None,
    no_memory: NoMemory = False,
    system: System = "",
    agent: WithAgent = None,
    project: WithProject = None,
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
    from lamina.cli.ask import AskOptions, read_question
    from lamina.cli.ask import ask as run_ask
    from lamina.cli.runner import RunOptions

    if resume and (session is None or question is not None or attach or essential or active):
        raise typer.BadParameter("--resume goes with --session, and with no question or attachment")
    try:
        text = None if resume else read_question(question, sys.stdin)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    asked = AskOptions(
        text=text,
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        allow_tools=allow_tools,
        as_json=as_json,
        max_tokens=max_tokens,
        active=active,
    )
    refuse_files_in_qa(mode, files)
    options = RunOptions(
        workspace=workspace,
        session=session,
        target=model,
        system=text_or_file(system),
        agent=agent,
        project=project,
        mcp=mcp,
        mode=mode,
        files=files,
        scope=read_scope(within, since, until),
        memory=not no_memory,
        changes=settings_changes(web, allow_host),
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
    mode: Mode = "agent",
    files: Files = False,
    within: Within = None,
    since: Since = None,
    until: Until = None,
    web: Web = None,
    allow_host: AllowHost = None,
    no_memory: NoMemory = False,
    system: System = "",
    agent: WithAgent = None,
    project: WithProject = None,
    mcp: Mcp = None,
    allow_tools: AllowTools = False,
    max_tokens: MaxTokens = None,
) -> None:
    """Serve one session over JSON-RPC 2.0: a message a line on standard input and output.

    For programs in any language; docs/rpc.md describes the methods. --attach and --essential apply
    to every prompt. The end of standard input ends it; what came of an answer is kept.
    """
    from lamina.cli.rpc.server import PromptDefaults, serve
    from lamina.cli.runner import RunOptions

    refuse_files_in_qa(mode, files)
    served = PromptDefaults(
        attach=tuple(attach or ()),
        essential=tuple(essential or ()),
        allow_tools=allow_tools,
        max_tokens=max_tokens,
    )
    options = RunOptions(
        workspace=workspace,
        session=session,
        target=model,
        system=text_or_file(system),
        agent=agent,
        project=project,
        mcp=mcp,
        mode=mode,
        files=files,
        scope=read_scope(within, since, until),
        memory=not no_memory,
        changes=settings_changes(web, allow_host),
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
