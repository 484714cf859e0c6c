"""Commands about the sessions that are kept."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from lamina.cli.terminal_text import visible

if TYPE_CHECKING:
    from lamina.audit.verification import Verification

app = typer.Typer()

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
    from lamina.cli.sessions import show_sessions
    from lamina.faces.session_list import list_sessions

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
    if sum((tree, dropped, requests, request is not None)) > 1:
        raise typer.BadParameter("--tree, --dropped, --requests and --request exclude one another")
    if wire and request is None:
        raise typer.BadParameter("--wire goes with --request N")

    async def show() -> tuple[str, tuple[str, ...]]:
        from lamina.cli.log import render_log
        from lamina.cli.recorder import render_requests
        from lamina.cli.request_view import render_request
        from lamina.faces import recorder
        from lamina.faces.journal_log import describe_log
        from lamina.faces.plain_text import format_json
        from lamina.faces.stored_session import find_session

        stored = await find_session(session, workspace)
        if request is not None and wire:
            body, problems = await recorder.encode_wire(stored, request)
            return format_json(body), problems
        if request is not None:
            rebuilt, others = await recorder.rebuild_stored(stored, request)
            if as_json:
                return format_json(recorder.describe_request(rebuilt, others)), ()
            return render_request(rebuilt, others, full=full), ()
        journal = await stored.read()
        if as_json:
            describe = recorder.describe_requests if requests else describe_log
            return format_json(describe(journal)), ()
        if requests:
            return render_requests(journal), ()
        return render_log(journal, tree=tree, dropped=dropped, full=full), ()

    shown, problems = anyio.run(show)
    typer.echo(shown if as_json or wire else visible(shown))
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
    from lamina.cli.verdict import render_verdict
    from lamina.faces.plain_text import format_json
    from lamina.faces.stored_session import find_session
    from lamina.faces.verdict import check_session, describe_verdict

    async def run_check() -> "Verification":
        return await check_session(await find_session(session, workspace))

    verdict = anyio.run(run_check)
    shown = format_json(describe_verdict(verdict)) if as_json else visible(render_verdict(verdict))
    typer.echo(shown)
    if not verdict.sound:
        raise typer.Exit(1)


@app.command()
def repair(session: SessionName, workspace: Workspace = Path()) -> None:
    """Write a repaired copy beside a damaged session; the damaged file is not touched."""
    from lamina.cli.verdict import render_repair
    from lamina.faces.stored_session import find_session
    from lamina.faces.verdict import write_repaired_copy

    async def run_repair() -> str:
        stored = await find_session(session, workspace)
        return render_repair(stored, await write_repaired_copy(stored))

    typer.echo(anyio.run(run_repair))


@app.command()
def export(
    session: SessionName,
    workspace: Workspace = Path(),
    form: Annotated[
        Literal["markdown", "jsonl", "json"],
        typer.Option("--format", "-f", help="A chat for people, the journal itself, or JSON."),
    ] = "markdown",
    # Not a Path, which forgets the slash at its end.
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A file that is not there yet, or a folder; folder/ is made if need be.",
        ),
    ] = None,
) -> None:
    """Write a session as a Markdown chat (Obsidian Copilot's format) or as its journal."""
    from lamina.cli.transfer import export_session
    from lamina.faces.stored_session import find_session

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
        str | None,
        typer.Option("--target", "--model", "-t", "-m", help="provider:model to go on with."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Make sessions of what other systems keep.

    Reads sessions of pi, Claude Code, Codex, OpenCode and Copilot CLI, logs of requests to OpenAI
    and Anthropic, Markdown chats, and journals of Lamina. What could not be taken as it was is
    listed; the files are not touched.
    """
    from lamina.cli.transfer import import_files

    if session is not None and len(files) > 1:
        raise typer.BadParameter("--session is for one file")
    report, failed = anyio.run(import_files, files, workspace, session, target, as_json)
    typer.echo(report if as_json else visible(report))
    if failed:
        raise typer.Exit(1)
