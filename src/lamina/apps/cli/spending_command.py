"""`lamina spend`: what was spent, and what is reserved for answers that have not come."""

from datetime import datetime

import typer
from rich.console import Console

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

_FIGURES = ("requests", "in", "cached", "out", "spent")


async def show_spending(
    by: SpendGrouping, since: str | None, *, everything: bool, as_json: bool
) -> None:
    """
    Raises:
        UsageError: `since` is no day.
        SpendLedgerError: the account cannot be read.
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
            console.print(f"* The sum leaves out {' and '.join(words)}.")
    if limit := limits_of_environment().day:
        console.print(f"The limit for a day is {dollars(limit)} (LAMINA_SPEND_DAY).")
    if report.waiting:
        console.print()
        console.print(_waiting_line(report))
        _show_waiting(report.waiting, console)
    for damage in report.damage:
        typer.echo(visible(f"not read and left as it is: {damage}"), err=True)


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
        f"Reserved: up to {dollars(report.reserved)} for {answers} not come; "
        f"`lamina spend clear ID`, or `--all`, frees it."
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
    """Shows what would be freed, and gives it.

    Raises:
        UsageError: a name is none of something that is reserved.
    """
    entries = await find_waiting(default_ledger(), names, everything=everything)
    if entries:
        _show_waiting(entries, Console(stderr=True, highlight=False, markup=False, emoji=False))
    return entries


async def clear_reserved(entries: tuple[SpendEntry, ...]) -> str:
    """Frees reservations, and says so."""
    freed = await default_ledger().free(
        [entry.id for entry in entries], SystemClock().now(), "person"
    )
    amount = sum_amounts(entry for entry in entries if entry.id in freed)
    return f"{len(freed)} freed, {dollars(amount)} in all"
