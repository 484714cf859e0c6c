"""The sessions that are kept, each with what it came to."""

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.audit.requests import waiting_request
from lamina.errors import LaminaError, UnknownTarget
from lamina.journal import path_to
from lamina.ledger import cost_of
from lamina.ports import TargetBook
from lamina.providers.model_book import load_book
from lamina.runners.plan import PLAN
from lamina.session.summary_writer import SUMMARIZED
from lamina.session.tree import name_of
from lamina.stores.jsonl import JsonlStore
from lamina.values.entry import (
    CustomEntry,
    Entry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.values.usage import Usage
from lamina.wiring import data_folder, default_store


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session. `usage` sums what providers reported, on every branch: it was all paid for."""

    session: str
    workspace: str
    name: str = ""
    messages: int = 0
    entries: int = 0
    usage: Usage = Usage()
    # In US dollars, at the prices that the book of models has now.
    cost: float = 0.0
    bytes: int = 0
    written: float = 0.0
    damage: int = 0
    # Whether its last request was never answered.
    open: bool = False
    problem: str = ""


async def list_sessions(workspace: Path, everywhere: bool) -> list[SessionRow]:
    """The sessions of a workspace, or of all, the one written last first."""
    stores = [default_store(workspace)]
    if everywhere:
        folders = sorted(data_folder().glob("*/sessions"))
        stores = [JsonlStore(folder.parent) for folder in folders]
    rows = [
        await _describe(store, session) for store in stores for session in await store.sessions()
    ]
    return sorted(rows, key=lambda row: row.written, reverse=True)


async def _describe(store: JsonlStore, session: str) -> SessionRow:
    path = store.path_of(session)
    status = path.stat()
    row = SessionRow(
        session=session, workspace=store.folder.name, bytes=status.st_size, written=status.st_mtime
    )
    try:
        journal = await store.read(session)
    except LaminaError as error:
        return replace(row, problem=str(error))
    entries = tuple(journal.entries.values())
    header = entries[0]
    active = path_to(journal.leaf, journal.entries)
    return replace(
        row,
        workspace=header.workspace if isinstance(header, SessionEntry) else "",
        name=name_of(entries),
        messages=sum(isinstance(entry, MessageEntry) for entry in active),
        entries=len(entries),
        usage=sum_usage(entries),
        cost=sum_cost(entries, load_book()),
        damage=len(journal.damage),
        open=bool(waiting_request(active)),
    )


def sum_usage(entries: tuple[Entry, ...]) -> Usage:
    usages = [entry.usage for entry in entries if isinstance(entry, ReplyEntry)]
    usages += [e.usage for e in entries if isinstance(e, MessageEntry) and e.usage is not None]
    usages += [usage for usage, _ in _side_requests(entries)]
    names = ("input", "cached", "written", "output")
    return Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in names})


def sum_cost(entries: tuple[Entry, ...], book: TargetBook) -> float:
    """What all requests cost; those to targets that nobody knows any more cost nothing."""
    targets = {entry.id: entry.target for entry in entries if isinstance(entry, RequestEntry)}
    cost = 0.0
    for entry in entries:
        if isinstance(entry, ReplyEntry) and entry.request in targets:
            with suppress(UnknownTarget):
                cost += cost_of(entry.usage, book.find(targets[entry.request]))
    return cost + sum(own_cost for _, own_cost in _side_requests(entries))


def _side_requests(entries: tuple[Entry, ...]) -> list[tuple[Usage, float]]:
    """What planning calls and summaries cost, which are requests of their own."""
    costs = []
    for entry in entries:
        if not isinstance(entry, CustomEntry) or entry.kind not in (PLAN, SUMMARIZED):
            continue
        if isinstance(entry.data, dict):
            cost = entry.data.get("cost")
            with suppress(msgspec.ValidationError):
                usage = msgspec.convert(entry.data.get("usage"), Usage)
                costs.append((usage, float(cost) if isinstance(cost, int | float) else 0.0))
    return costs
