"""Spending: of one session, and of everything by day, model or session."""

from pathlib import Path

from anyio.to_thread import run_sync

from lamina.apps.views.spending_report import (
    SessionSpending,
    SpendGrouping,
    SpendingPage,
    add_spending,
    first_day,
    left_out_of,
    limits_in,
    report_session,
    report_spending,
)
from lamina.apps.views.stored_sessions import list_sessions
from lamina.apps.web.http_bodies import RequestQuery
from lamina.apps.web.routes import Call, Route
from lamina.apps.wiring.sessions import SystemClock
from lamina.apps.wiring.spending_account import default_ledger, limits_of_environment
from lamina.core.audit.session_totals import sum_totals, total_cost

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


class SpendingQuery(RequestQuery, frozen=True, kw_only=True):
    """`since` is a day, `7d`, `4w` or `today`; `all` includes everything."""

    by: SpendGrouping = "day"
    since: str = ""
    all: bool = False


async def show_session_spending(call: Call) -> SessionSpending:
    desk = call.desk
    journal = await desk.read_journal(call.workspace, call.session)
    totals = await run_sync(sum_totals, journal)
    cost = total_cost(totals, desk.book)
    limits = limits_in(journal).strictest(limits_of_environment())
    return report_session(await default_ledger().read(), call.session, cost, limits)


async def show_spending(call: Call) -> SpendingPage:
    query: SpendingQuery = call.query
    ledger = default_ledger()
    today = ledger.day_of(SystemClock().now())
    since = first_day(query.since or None, today, everything=query.all)
    account = await ledger.read()
    report = report_spending(account, query.by, since)
    names: dict[str, str] = {}
    if query.by == "session":
        wanted = {row.name for row in report.rows}
        rows = await list_sessions(Path(), everywhere=True)
        names = {row.session: row.name for row in rows if row.session in wanted}
    return SpendingPage(
        report=report,
        left_out=tuple(left_out_of(report.total)),
        day_limit=limits_of_environment().day,
        spent_today=add_spending("", (e for e in account.entries if e.day == today)).spent,
        names=names,
    )


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/spending", handler=show_session_spending,
        result=SessionSpending, summary="Shows what the session cost, and what is reserved for it.",
    ),
    Route(
        method="GET", path="/api/spending", handler=show_spending, result=SpendingPage,
        query=SpendingQuery, summary="Shows spending by day, model or session.",
    ),
)  # fmt: skip
