"""`lamina log`: a session's entries as text; with `--result`, one complete tool result."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import asdict, replace
from rich.cells import cell_len

from lamina.apps.cli.flags import AsJson, SessionName, SessionWorkspace
from lamina.apps.cli.outcome import refuse_if, run_on_session
from lamina.apps.cli.report_text import WIDTH, damage_lines, first_line, moment
from lamina.apps.cli.request_view import render_request, render_requests
from lamina.apps.cli.terminal_text import one_line, print_text, terminal_width, visible
from lamina.apps.views.journal_log import (
    describe_entry,
    describe_log,
    display_lines,
    render_message,
)
from lamina.apps.views.plain_text import format_json, shorten
from lamina.apps.views.sent_requests import (
    describe_request,
    describe_requests,
    encode_wire,
    rebuild_stored,
)
from lamina.apps.views.stored_sessions import StoredSession
from lamina.core.audit.dropped_history import DroppedHistory, find_dropped_history
from lamina.core.audit.kept_results import KeptResult, find_result
from lamina.core.audit.requests import waiting_request
from lamina.core.audit.session_totals import name_of
from lamina.core.journal import Journal, path_to
from lamina.core.values.entry import Entry, RequestEntry, SessionEntry, TransformEntry
from lamina.engine.session.tree import labels_of

app = typer.Typer()


async def read_result(stored: StoredSession, what: str) -> KeptResult:
    """Return the result of a call with its full text, by the call's id or a digest.

    Raises:
        UsageError: there is no such result.
        JournalError: the part that was cut off no longer exists.
    """
    journal = await stored.read()
    result = find_result(journal.entries.values(), what)
    if not result.digest:
        return result
    whole = await stored.store.get_blob(result.digest)
    return replace(result, text=whole.decode())


def describe_result(result: KeptResult) -> dict[str, Any]:
    return asdict(result) | {"characters": len(result.text)}


# The width of a line of the tree on a usual terminal; deep branches may be wider.
TREE_WIDTH = 80
# How many branches are named at the point where they begin.
STARTS_SHOWN = 4


def render_log(journal: Journal, *, tree: bool, dropped: bool, full: bool) -> str:
    """Return the text that the command prints."""
    entries = tuple(journal.entries.values())
    path = path_to(journal.leaf, journal.entries)
    if dropped:
        return (
            "\n".join(_gone(history, full) for history in find_dropped_history(path))
            or "Nothing has been dropped."
        )
    labels = labels_of(entries)
    header = entries[0]
    assert isinstance(header, SessionEntry)
    lines = [f"# {name_of(entries) or header.session}", "", f"session {header.session}"]
    branches = sum(1 for count in _children(entries).values() if len(count) > 1)
    if branches and not tree:
        points = "branching point" + "s" * (branches > 1)
        lines.append(f"{branches} {points}; --tree shows what is not on the active path")
    lines.append("")
    if tree:
        lines += _tree(entries, {entry.id for entry in path}, journal.leaf, labels)
    else:
        for entry in path:
            lines += _entry(entry, labels, full)
        if waiting_request(path):
            lines.append("The last request was never answered; the session can continue with it.")
    if journal.damage:
        lines += ["", *damage_lines(journal.damage)]
    return "\n".join(lines)


def _children(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    behind: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.parent is not None:
            behind.setdefault(entry.parent, []).append(entry)
    return behind


def _entry(entry: Entry, labels: Mapping[str, str], full: bool) -> list[str]:
    label = f"  «{labels[entry.id]}»" if entry.id in labels else ""
    when = moment(entry.at, "%m-%d %H:%M:%S")
    kind, text = describe_entry(entry)
    first, *rest = text.splitlines() or [""]
    if not full and isinstance(entry, RequestEntry):
        first = shorten(first, WIDTH)
    elif not full:
        first, rest = first_line(text), []
    lines = [f"{entry.id}  {when}  {kind:<10} {first}{label}".rstrip()]
    lines += [f"{'':>35}{line}" for line in rest]
    if full and isinstance(entry, TransformEntry) and entry.patch.display:
        lines += [f"{'':>35}{line}" for line in display_lines(entry.patch.display)]
    return lines


def _tree(
    entries: Sequence[Entry], active: set[str], leaf: str, labels: Mapping[str, str]
) -> list[str]:
    """A line per entry; a star marks the active path, and branches start at their branching
    point."""
    behind = _children(entries)
    lines: list[str] = []
    # An entry, the prefix drawn before it, and the prefix of the entries after it.
    waiting = [(entries[0], "", "")]
    while waiting:
        entry, drawn, below = waiting.pop()
        mark = "*" if entry.id in active else " "
        kind, text = describe_entry(entry)
        # The trunk continues below its branches, to the end of the page.
        children = sorted(behind.get(entry.id, ()), key=lambda entry: entry.id in active)
        branches = children[:-1]
        notes = [f"«{labels[entry.id]}»"] if entry.id in labels else []
        if branches:
            starts = [child.id for child in children]
            more = f" and {len(starts) - STARTS_SHOWN} more" if len(starts) > STARTS_SHOWN else ""
            notes.append(f"(continues at {', '.join(starts[:STARTS_SHOWN])}{more})")
        notes += ["<- current leaf"] if entry.id == leaf else []
        head = f"{mark} {drawn}{entry.id} {kind} "
        tail = "".join(f"  {note}" for note in notes)
        room = max(20, TREE_WIDTH - cell_len(head) - cell_len(tail))
        lines.append(f"{head}{one_line((text.splitlines() or [''])[0], room)}{tail}".rstrip())
        waiting += [(trunk, below, below) for trunk in children[-1:]]
        waiting += [(branch, f"{below}├─", f"{below}│ ") for branch in reversed(branches)]
    return lines


def _gone(gone: DroppedHistory, full: bool) -> str:
    lines = [
        f"## {gone.entry} · {moment(gone.at)} · {gone.reason} (by {gone.by})",
        "",
        f"{len(gone.messages)} message{'s' * (len(gone.messages) != 1)} replaced by:",
        "",
        *(f"> {line}" for line in (gone.summary or "(nothing)").splitlines()),
        "",
    ]
    for message in gone.messages:
        first, *rest = render_message(message).splitlines() or [""]
        if not full:
            first, rest = shorten(first, WIDTH), []
        lines.append(f"- {message.role} {message.id}: {first}")
        lines += [f"  {line}" for line in rest]
    return "\n".join([*lines, ""])


@app.command()
def log(
    session: SessionName,
    workspace: SessionWorkspace = Path(),
    tree: Annotated[
        bool, typer.Option("--tree", help="Show all branches, not just the active path.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Show what compactions removed from the context.")
    ] = False,
    requests: Annotated[
        bool, typer.Option("--requests", help="List every request and how much of it was cached.")
    ] = False,
    request: Annotated[
        str | None,
        typer.Option(
            "--request", "-r", metavar="N",
            help="Show one request, compared with the one before it: its number, its entry, or -1 "
            "or 'last' for the last one.",
        ),
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(
            "--result", metavar="CALL",
            help="Show a complete tool result, including what was cut off before sending, by its "
            "call's id, its handle, or its digest.",
        ),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="With --request: show the vendor's wire format.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten anything.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show a session's entries: messages, requests, changes, what was left out, and the cost."""
    refuse_if(
        sum((tree, dropped, requests, request is not None, result is not None)) > 1,
        "--tree, --dropped, --requests, --request and --result cannot be combined",
    )
    refuse_if(wire and request is None, "--wire needs --request N")

    async def show(stored: StoredSession) -> tuple[str, tuple[str, ...]]:
        if result is not None:
            kept = await read_result(stored, result)
            return format_json(describe_result(kept)) if as_json else kept.text, ()
        if request is not None and wire:
            body, problems = await encode_wire(stored, request)
            return format_json(body), problems
        if request is not None:
            rebuilt, others = await rebuild_stored(stored, request)
            if as_json:
                return format_json(describe_request(rebuilt, others)), ()
            return render_request(rebuilt, others, full=full), ()
        journal = await stored.read()
        if as_json:
            describe = describe_requests if requests else describe_log
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
        print_text(f"differs from what was sent: {problem}", err=True)
    if problems:
        raise typer.Exit(1)
