"""Commands about stored sessions."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lamina.apps.cli.flags import AsJson, SessionName, SessionWorkspace
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_outcome, print_report, refuse_if, run_on_session
from lamina.apps.cli.terminal_text import print_text, terminal_width, visible

if TYPE_CHECKING:
    from lamina.apps.views.stored_sessions import StoredSession

app = typer.Typer()
sessions_app = typer.Typer(invoke_without_command=True)
app.add_typer(sessions_app, name="sessions")
Everywhere = Annotated[bool, typer.Option("--all", help="Of every workspace.")]


@sessions_app.callback()
def sessions(
    context: typer.Context,
    workspace: SessionWorkspace = Path(),
    everywhere: Everywhere = False,
    as_json: AsJson = False,
) -> None:
    """List the stored sessions, with what they cost; `sessions delete` deletes some."""
    if (command := context.invoked_subcommand) is not None:
        is_given = everywhere or as_json or workspace != Path()
        refuse_if(is_given, f"options stand behind the command: lamina sessions {command} ...")
        return
    from lamina.apps.cli.session_commands import show_sessions
    from lamina.apps.views.stored_sessions import describe_elsewhere, list_sessions

    show_sessions(run_async(list_sessions, workspace, everywhere), as_json, everywhere)
    if elsewhere := run_async(describe_elsewhere, workspace):
        print_text(f"Of this workspace there are more: {elsewhere}.", err=True)


# Bare, and by the name that other lists have.
sessions_app.command(name="list")(sessions)


@sessions_app.command()
def delete(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION...", help="Ids, or the beginnings of ids."),
    ] = None,
    workspace: SessionWorkspace = Path(),
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Those not written to for so long: 12h, 30d, 4w."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="With --older-than: of every workspace.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --yes: print JSON.")] = False,
) -> None:
    """Delete sessions for good, with the pictures and results that no other session uses.

    Shows what goes, and asks. Also forgets what the embedded model read of them. A session that is
    open is left as it is. Exits with 1 if one is still there.
    """
    from lamina.apps.cli.session_commands import delete_sessions

    refuse_if(not names and older_than is None, "name sessions, or give --older-than AGE")
    refuse_if(names and older_than is not None, "sessions and --older-than exclude one another")
    refuse_if(everywhere and older_than is None, "--all goes with --older-than")
    refuse_if(as_json and not yes, "--json goes with --yes: nobody is asked")
    is_done = delete_sessions(
        names or (), workspace,
        older_than=older_than, everywhere=everywhere, asks=not yes, as_json=as_json,
    )  # fmt: skip
    if not is_done:
        raise typer.Exit(1)


@sessions_app.command()
def adopt(
    session: SessionName, workspace: SessionWorkspace = Path(), as_json: AsJson = False
) -> None:
    """Take over what changed in the files of a session's agent since the session began.

    A session keeps the rules, references and tools that it began with, whatever becomes of their
    include modes in the agent's files; edited texts are always sent as they are now. What you added
    or took out yourself stays.
    """
    from lamina.apps.cli.session_commands import adopt_agent

    print_report(
        run_on_session(session, workspace, partial(adopt_agent, workspace, as_json=as_json)),
        as_json=as_json,
    )


@app.command()
def log(
    session: SessionName,
    workspace: SessionWorkspace = Path(),
    tree: Annotated[
        bool, typer.Option("--tree", help="All branches, not just the active path.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="What compactions took out of the context.")
    ] = False,
    requests: Annotated[
        bool, typer.Option("--requests", help="Every request, and how much of it was cached.")
    ] = False,
    request: Annotated[
        str | None,
        typer.Option(
            "--request", "-r", metavar="N",
            help="One request, compared with the one before it: its number, -1 or 'last' for the "
            "last one, or its entry.",
        ),
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(
            "--result", metavar="CALL",
            help="All of what a tool gave, also what was cut off before it was sent: by the id of "
            "its call, its handle, or its digest.",
        ),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="With --request: in the vendor's wire format.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten anything.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show a session's entries: what was said, sent, changed and left out, and what it cost."""
    refuse_if(
        sum((tree, dropped, requests, request is not None, result is not None)) > 1,
        "--tree, --dropped, --requests, --request and --result exclude one another",
    )
    refuse_if(wire and request is None, "--wire goes with --request N")

    async def show(stored: "StoredSession") -> tuple[str, tuple[str, ...]]:
        from lamina.apps.cli import log as kept_results
        from lamina.apps.cli.log import render_log
        from lamina.apps.cli.request_view import render_request, render_requests
        from lamina.apps.views import sent_requests
        from lamina.apps.views.journal_log import describe_log
        from lamina.apps.views.plain_text import format_json

        if result is not None:
            kept = await kept_results.read_result(stored, result)
            return format_json(kept_results.describe_result(kept)) if as_json else kept.text, ()
        if request is not None and wire:
            body, problems = await sent_requests.encode_wire(stored, request)
            return format_json(body), problems
        if request is not None:
            rebuilt, others = await sent_requests.rebuild_stored(stored, request)
            if as_json:
                return format_json(sent_requests.describe_request(rebuilt, others)), ()
            return render_request(rebuilt, others, full=full), ()
        journal = await stored.read()
        if as_json:
            describe = sent_requests.describe_requests if requests else describe_log
            return format_json(describe(journal)), ()
        if requests:
            return render_requests(journal, terminal_width()), ()
        return render_log(journal, tree=tree, dropped=dropped, full=full), ()

    text, problems = run_on_session(session, workspace, show)
    if as_json or wire or result is not None:
        typer.echo(text if as_json or wire else visible(text))
    else:
        print_text(visible(text))
    for problem in problems:
        print_text(f"not as it was sent: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


@app.command()
def verify(
    session: SessionName, workspace: SessionWorkspace = Path(), as_json: AsJson = False
) -> None:
    """Rebuild every request of a session from its journal and compare it with what was sent.

    Exits with 1 if anything differs or is damaged. What a record cannot prove, because it was
    written before all of it was recorded, is told as not covered: neither sound nor broken.
    """
    from lamina.apps.cli.verify_command import render_verification
    from lamina.apps.views.plain_text import format_json
    from lamina.apps.views.session_check import check_session, describe_verification

    verification = run_on_session(session, workspace, check_session)
    if as_json:
        text = format_json(describe_verification(verification))
    else:
        text = visible(render_verification(verification))
    print_outcome(text, verification.state != "broken", as_json=as_json)


@app.command()
def repair(session: SessionName, workspace: SessionWorkspace = Path()) -> None:
    """Write a repaired copy beside a damaged session; the damaged file is not touched."""
    from lamina.apps.cli.verify_command import repair_session

    print_text(run_on_session(session, workspace, repair_session))


@app.command()
def export(
    session: SessionName,
    workspace: SessionWorkspace = Path(),
    form: Annotated[
        Literal["markdown", "jsonl", "json", "requests"],
        typer.Option(
            "--format", "-f", metavar="FORM",
            help="markdown: a readable chat. jsonl: the journal itself, with its pictures. "
            "json: all of it as JSON. requests: what every request was made of and cost, a line of "
            "JSON each.",
        ),
    ] = "markdown",
    # Not a Path, which forgets the slash at its end.
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="PATH",
            help="A new file, or a folder; folder/ is created if it does not exist.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Write a session as a Markdown chat (Obsidian Copilot's format), as its journal, or what its
    requests were made of (docs/requests.md)."""
    from lamina.apps.cli.import_export import export_session

    text = run_on_session(session, workspace, partial(export_session, form=form, out=out))
    typer.echo(text, nl=out is not None)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(help="Files of other systems, chats, or folders of them.")
    ],
    workspace: SessionWorkspace = Path(),
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="The new session's id; for one file.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "--model", "-t", "-m", help="provider:model to continue with."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Turn what other systems store into sessions.

    Reads sessions of pi, Claude Code (with its subagents), Codex, OpenCode (exports, its folder and
    its database), Copilot CLI and Gemini CLI, logs of requests to OpenAI and Anthropic, Markdown
    chats, and Lamina's own journals. Of a folder, every session in it. Whatever could not be taken
    over as it was is listed; the files are not touched.
    """
    from lamina.apps.cli.import_export import import_files

    refuse_if(session is not None and len(files) > 1, "--session is for one file")
    report, failed = run_async(import_files, files, workspace, session, target, as_json)
    print_outcome(report if as_json else visible(report), not failed, as_json=as_json)
