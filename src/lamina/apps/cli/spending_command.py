"""`lamina spend`: what was spent, and what is reserved for answers that have not arrived."""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import typer
from rich.console import Console

from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if
from lamina.apps.cli.screen import make_table
from lamina.apps.cli.terminal_text import visible
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.spending_report import (
    SpendGrouping,
    SpendReport,
    SpendRow,
    describe_report,
    find_waiting,
    first_day,
    left_out_of,
    report_spending,
    sum_amounts,
)
from lamina.apps.wiring.sessions import SystemClock
from lamina.apps.wiring.spending_account import default_ledger, limits_of_environment
from lamina.core.text.money import dollars
from lamina.core.values.spend_limits import SpendEntry

app = typer.Typer()
spend_app = typer.Typer(invoke_without_command=True)
app.add_typer(spend_app, name="spend")

_FIGURES = ("requests", "in", "cached", "out", "spent")


async def show_spending(
    by: SpendGrouping, since: str | None, *, everything: bool, as_json: bool
) -> None:
    """
    Raises:
        UsageError: `since` is not a day.
        SpendLedgerError: the ledger cannot be read.
    """
    ledger = default_ledger()
    first = first_day(since, ledger.day_of(SystemClock().now()), everything=everything)
    report = report_spending(await ledger.read(), by, first)
    if as_json:
        typer.echo(format_json(describe_report(report)))
        return
    _render(report, Console(highlight=False, markup=False, emoji=False))


def _render(report: SpendReport, console: Console) -> None:
    period = f"since {report.since}" if report.since else "since the beginning"
    if not report.rows:
        console.print(f"Nothing was spent {period}.")
    else:
        table = make_table(report.by, *_FIGURES, right=_FIGURES)
        for row in (*report.rows, *((report.total,) if len(report.rows) > 1 else ())):
            table.add_row(*_cells(row))
        console.print(table)
        if words := left_out_of(report.total):
            console.print(f"* The total excludes {' and '.join(words)}.")
    if limit := limits_of_environment().day:
        console.print(f"The daily limit is {dollars(limit)} (LAMINA_SPEND_DAY).")
    if report.waiting:
        console.print()
        console.print(_waiting_line(report))
        _show_waiting(report.waiting, console)
    for damage in report.damage:
        typer.echo(visible(f"not readable and left unchanged: {damage}"), err=True)


def _cells(row: SpendRow) -> tuple[str, ...]:
    mark = "*" if row.assumed or row.unpriced else ""
    return (
        visible(row.name), f"{row.requests:,}", f"{row.input:,}", f"{row.cached:,}",
        f"{row.output:,}", f"{'?' if row.spent is None else dollars(row.spent)}{mark}",
    )  # fmt: skip


def _waiting_line(report: SpendReport) -> str:
    count = len(report.waiting)
    answers = "an answer that has" if count == 1 else f"{count:,} answers that have"
    return (
        f"Reserved: up to {dollars(report.reserved)} for {answers} not arrived; "
        f"`lamina spend clear ID` or `--all` releases it."
    )


def _show_waiting(entries: tuple[SpendEntry, ...], console: Console) -> None:
    table = make_table("id", "since", "model", "session", "for", "at most", right=("at most",))
    for entry in entries:
        when = datetime.fromtimestamp(entry.at).strftime("%m-%d %H:%M")
        table.add_row(
            entry.id, when, visible(entry.target), visible(entry.session[:8]), entry.purpose,
            dollars(entry.high or 0.0),
        )  # fmt: skip
    console.print(table)


async def find_reserved(names: list[str], everything: bool) -> tuple[SpendEntry, ...]:
    """Show the reservations that would be released, and return them.

    Raises:
        UsageError: an id does not belong to a reservation.
    """
    entries = await find_waiting(default_ledger(), names, everything=everything)
    if entries:
        _show_waiting(entries, Console(stderr=True, highlight=False, markup=False, emoji=False))
    return entries


async def clear_reserved(entries: tuple[SpendEntry, ...]) -> str:
    """Release reservations, and report it."""
    freed = await default_ledger().free(
        [entry.id for entry in entries], SystemClock().now(), "person"
    )
    amount = sum_amounts(entry for entry in entries if entry.id in freed)
    return f"{len(freed)} released, {dollars(amount)} in total"


@spend_app.callback()
def spend(
    context: typer.Context,
    by: Annotated[
        Literal["day", "model", "session"], typer.Option("--by", help="What to group by.")
    ] = "day",
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DAY",
            help="The first day: 2026-11-17, today, 7d or 4w. By default the last 30 days.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Since the first day.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show spending across all workspaces, and what is reserved.

    The cost of every answer is recorded. Under a limit (spend_turn,
    spend_session, spend_day, or LAMINA_SPEND_DAY for all sessions) the maximum
    price of a request is reserved before it is sent; if the answer never
    arrives, it stays reserved until `spend clear` releases it.
    """
    if (command := context.invoked_subcommand) is not None:
        is_given = by != "day" or since is not None or everything or as_json
        refuse_if(is_given, f"options go after the command: lamina spend {command} ...")
        return
    refuse_if(since is not None and everything, "--since and --all cannot be combined")
    run_async(partial(show_spending, by, since, everything=everything, as_json=as_json))


@spend_app.command()
def clear(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="What to release: ids from `lamina spend`."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Release everything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Release what is reserved for answers that never arrived.

    Shows it, and asks. Check your vendor's bill first: a request may be charged even if no answer
    arrived. An answer that still arrives is counted as usual.
    """
    refuse_if(not names and not everything, "give the ids to release, or --all")
    refuse_if(names and everything, "ids and --all cannot be combined")
    entries = run_async(find_reserved, names or [], everything)
    if not entries:
        typer.echo("nothing is reserved")
        return
    if not yes:
        typer.confirm("Release it?", abort=True, err=True)
    typer.echo(run_async(clear_reserved, entries))
