"""Spending for people and programs: sums by day, model or session, pending answers, and the
question before an expensive action.

Law: a sum says what it excludes.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.core.journal import Journal, walk_back
from lamina.core.ledger.cost import CacheRewrite
from lamina.core.ports import SpendAccount, SpendLedger
from lamina.core.text.money import dollars
from lamina.core.values.entry import SettingsEntry
from lamina.core.values.prices import CostSum
from lamina.core.values.spend_limits import SpendEntry, SpendLimits
from lamina.core.values.usage import Usage
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.errors import SpendDeclined, UsageError

SpendGrouping = Literal["day", "model", "session"]
# The default period.
USUAL_DAYS = 30
_AGES = {"d": 1, "w": 7}


class SpendRow(Struct, frozen=True, kw_only=True):
    """The combined cost of requests. `spent` sums known costs, None if none is known; `assumed`
    sums upper limits for answers without reported usage; `unpriced` counts requests in neither
    sum."""

    name: str
    requests: int = 0
    spent: float | None = None
    assumed: float = 0.0
    unpriced: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0

    def plus(self, entry: SpendEntry) -> "SpendRow":
        usage = entry.usage or Usage()
        is_assumed = entry.cost is None and entry.high is not None
        return SpendRow(
            name=self.name,
            requests=self.requests + (entry.purpose != "storage"),
            spent=self.spent if entry.cost is None else (self.spent or 0.0) + entry.cost,
            assumed=self.assumed + ((entry.high or 0.0) if is_assumed else 0.0),
            unpriced=self.unpriced + (entry.cost is None and entry.high is None),
            input=self.input + usage.input,
            cached=self.cached + usage.cached,
            output=self.output + usage.output,
        )


class SpendReport(Struct, frozen=True, kw_only=True):
    """Spending since a day, grouped; and every pending reservation, however old."""

    by: SpendGrouping
    since: str
    rows: tuple[SpendRow, ...]
    total: SpendRow
    waiting: tuple[SpendEntry, ...]
    reserved: float
    damage: tuple[str, ...] = ()


class SpendingPage(Struct, frozen=True, kw_only=True):
    """A report with what its sums exclude, in words, and the daily limit if there is one. `names`
    are the titles of the sessions in its rows, where known."""

    report: SpendReport
    left_out: tuple[str, ...]
    day_limit: float | None
    spent_today: float | None
    names: dict[str, str]


class SessionSpending(Struct, frozen=True, kw_only=True):
    """A session's cost from its own journal, and from the account. `cost` sums known costs;
    `unpriced` requests are not in it. `waiting` is reserved for answers that are still
    pending."""

    session: str
    cost: float | None
    unpriced: int
    rows: tuple[SpendRow, ...]
    total: SpendRow
    waiting: tuple[SpendEntry, ...]
    limit_session: float | None
    limit_day: float | None


def first_day(since: str | None, today: str, *, everything: bool = False) -> str:
    """Return the first day that counts, from a date or an age (7d, 4w). Empty for no
    limit.

    Raises:
        UsageError: the text is neither.
    """
    if everything:
        return ""
    day = date.fromisoformat(today)
    if since is None:
        return (day - timedelta(days=USUAL_DAYS - 1)).isoformat()
    text = since.strip().lower()
    if text == "today":
        return today
    if text[:-1].isdigit() and text[-1:] in _AGES:
        days = min(int(text[:-1]) * _AGES[text[-1]], 100_000)
        return (day - timedelta(days=max(days - 1, 0))).isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(
            f"--since {since!r} is not a day: write a date (2026-11-17), an age (7d, 4w) or today"
        ) from None


def report_spending(account: SpendAccount, by: SpendGrouping, since: str) -> SpendReport:
    """Return the account's spending since a day, grouped."""
    rows: dict[str, SpendRow] = {}
    total = SpendRow(name="total")
    for entry in account.entries:
        if entry.state != "settled" or entry.day < since:
            continue
        name = {"day": entry.day, "model": entry.target, "session": entry.session}[by]
        rows[name] = rows.get(name, SpendRow(name=name)).plus(entry)
        total = total.plus(entry)
    # Days: latest first; other groups: most expensive first.
    ordered = sorted(rows.values(), key=lambda row: row.name, reverse=True)
    if by != "day":
        ordered.sort(key=lambda row: (row.spent or 0.0) + row.assumed, reverse=True)
    waiting = tuple(entry for entry in account.entries if entry.state == "open")
    return SpendReport(
        by=by,
        since=since,
        rows=tuple(ordered),
        total=total if rows else replace(total, spent=0.0),
        waiting=waiting,
        reserved=sum(entry.high or 0.0 for entry in waiting),
        damage=tuple(str(damage) for damage in account.damage),
    )


def add_spending(name: str, entries: Iterable[SpendEntry]) -> SpendRow:
    """Return the combined cost of settled requests."""
    row = SpendRow(name=name)
    for entry in entries:
        row = row.plus(entry) if entry.state == "settled" else row
    return replace(row, spent=0.0) if row == SpendRow(name=name) else row


def limits_in(journal: Journal) -> SpendLimits:
    """Return the limits that a session's own settings define at its leaf."""
    for entry in reversed(walk_back(journal.entries, journal.leaf)):
        if isinstance(entry, SettingsEntry):
            return entry.settings.spend_limits
    return journal.header.settings.spend_limits


def report_session(
    account: SpendAccount, session: str, cost: CostSum, limits: SpendLimits
) -> SessionSpending:
    """Return a session's spending: `cost` from its own journal, the rest from the account."""
    own = [entry for entry in account.entries if entry.session == session]
    targets = dict.fromkeys(entry.target for entry in own if entry.state == "settled")
    return SessionSpending(
        session=session,
        cost=cost.known,
        unpriced=cost.unpriced,
        rows=tuple(
            add_spending(target, (entry for entry in own if entry.target == target))
            for target in targets
        ),
        total=add_spending("total", own),
        waiting=tuple(entry for entry in own if entry.state == "open"),
        limit_session=limits.session,
        limit_day=limits.day,
    )


def describe_report(report: SpendReport) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        **{name: getattr(report, name) for name in ("by", "since", "reserved")},
        "rows": [_round(row) for row in report.rows],
        "total": _round(report.total),
        "waiting": [msgspec.to_builtins(entry) for entry in report.waiting],
        "damage": list(report.damage),
    }


def _round(row: SpendRow) -> dict[str, Any]:
    spent = None if row.spent is None else round(row.spent, 9)
    return asdict(replace(row, spent=spent, assumed=round(row.assumed, 9)))


def left_out_of(row: SpendRow) -> list[str]:
    """Return in words what a sum of known costs excludes."""
    words = []
    if row.assumed:
        words.append(
            f"up to {dollars(row.assumed)} more for answers that did not report their usage"
        )
    if row.unpriced:
        requests = "1 request" if row.unpriced == 1 else f"{row.unpriced:,} requests"
        words.append(f"{requests} of unknown price")
    return words


async def find_waiting(
    ledger: SpendLedger, names: Sequence[str], *, everything: bool
) -> tuple[SpendEntry, ...]:
    """Return the reservations that match the beginnings of ids, or all open ones.

    Raises:
        UsageError: no open reservation matches, or several do.
    """
    waiting = [entry for entry in (await ledger.read()).entries if entry.state == "open"]
    if everything:
        return tuple(waiting)
    found = []
    for name in names:
        near = [entry for entry in waiting if entry.id.startswith(name)]
        if len(near) != 1:
            problem = "no reservation has" if not near else f"{len(near)} reservations begin with"
            raise UsageError(f"{problem} the id {name!r}; `lamina spend` lists all reservations")
        found += near
    return tuple(found)


# -- before an expensive action ------------------------------------------------------------------

_ACTS = {
    "expired": "the cache has expired",
    "model_change": "another model has its own cache",
}


def describe_rewrite(rewrite: CacheRewrite) -> str:
    """Return why the cache must be written again and what that costs, in one sentence."""
    why = _ACTS.get(rewrite.kind, "the prefix is broken")
    return (
        f"{why} ({rewrite.reason}): {rewrite.tokens:,} tokens must be written to the cache again, "
        f"which costs about {dollars(rewrite.price)} more than reading them"
    )


def ask_before_rewrites(session: Session, ask: Callable[[str], Awaitable[bool]] | None) -> None:
    """Ask a person before a session sends a request that rewrites a cache for more than its
    setting `ask_above_cost`. Without `ask`, such a request is not sent."""

    async def gate(turn: Turn) -> None:
        limit, rewrite = session.settings.ask_above_cost, turn.rewrite
        if limit is None or rewrite is None or rewrite.price <= limit:
            return
        text = describe_rewrite(rewrite)
        if ask is None:
            raise SpendDeclined(
                f"{text}; it was not sent: no one is here to confirm; --yes sends it, and the "
                f"setting ask_above_cost ({dollars(limit)}) is the price above which you are asked",
                rewrite.price,
            )
        if not await ask(text):
            raise SpendDeclined(f"not sent: {text}", rewrite.price)

    core_of(session).ask_before_sending(gate)


async def find_refusal(session: Session, turn: Turn) -> str:
    """Return a limit's objection to a prepared turn; empty if it may be sent."""
    refusal = await core_of(session).turns.spending.find_refusal(turn.entry, turn.prompt)
    return str(refusal) if refusal else ""


def sum_amounts(entries: Iterable[SpendEntry]) -> float:
    """Return the sum of the upper prices of reservations."""
    return sum(entry.high or 0.0 for entry in entries)
