"""The sessions that are kept, each with what it came to."""

from pathlib import Path

from msgspec import Struct

from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.stores import default_store, list_everywhere
from lamina.core.audit.totals import total_cost
from lamina.core.ports import TargetBook
from lamina.core.values.totals import ListedSession, SessionTotals
from lamina.core.values.usage import Usage


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session. `usage` sums what providers reported, on every branch: it was all paid for."""

    session: str
    workspace: str
    name: str = ""
    messages: int = 0
    entries: int = 0
    usage: Usage = Usage()
    # In US dollars, at the prices that the book of models has now, without the `unpriced` requests,
    # whose price nobody knows; None if those are all.
    cost: float | None = 0.0
    unpriced: int = 0
    bytes: int = 0
    written: float = 0.0
    damage: int = 0
    # Whether its last request was never answered.
    open: bool = False
    # Whether calls of its last answer wait: for a decision, or to be run again.
    waits: bool = False
    problem: str = ""


async def list_sessions(workspace: Path, everywhere: bool) -> list[SessionRow]:
    """The sessions of a workspace, or of all, the one written last first. Of all, a store that
    cannot be read has a row of its own, without a session."""
    book = load_book()
    rows: list[SessionRow] = []
    if everywhere:
        for found in await list_everywhere():
            rows += [_row(listed, found.name, book) for listed in found.sessions]
            if found.problem:
                rows.append(SessionRow(session="", workspace=found.name, problem=found.problem))
    else:
        listing = await default_store(workspace).list_sessions()
        rows += [_row(listed, workspace.name, book) for listed in listing]
    return sorted(rows, key=lambda row: row.written, reverse=True)


def _row(listed: ListedSession, workspace: str, book: TargetBook) -> SessionRow:
    totals = listed.totals or SessionTotals()
    cost = total_cost(totals, book)
    return SessionRow(
        session=listed.session,
        workspace=totals.workspace or workspace,
        name=totals.name,
        messages=totals.messages,
        entries=totals.entries,
        usage=totals.usage,
        # What other programs paid was counted, and no price of it is known here.
        cost=cost.known if cost.priced or not totals.usage.input else None,
        unpriced=cost.unpriced,
        bytes=listed.bytes,
        written=listed.written,
        damage=totals.damage,
        open=totals.is_waiting,
        waits=totals.awaits_results,
        problem=listed.problem,
    )
