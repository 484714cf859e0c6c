"""`lamina sessions`: what is kept, and what it came to."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from lamina.audit.requests import waiting_request
from lamina.errors import LaminaError, UnknownTarget
from lamina.journal import path_to
from lamina.ledger import cost_of
from lamina.ports import TargetBook
from lamina.providers.model_book import load_book
from lamina.runners.plan import PLAN
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


NARROW = 96
FIGURES: dict[str, Callable[[SessionRow], str]] = {
    "messages": lambda row: f"{row.messages:,}",
    "in": lambda row: f"{row.usage.input:,}",
    "cached": lambda row: f"{row.usage.cached:,}",
    "out": lambda row: f"{row.usage.output:,}",
    "$": lambda row: f"{row.cost:.4f}" if row.cost else "-",
}


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
        session=session,
        workspace=store.folder.name,
        bytes=status.st_size,
        written=status.st_mtime,
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
    found = [entry.usage for entry in entries if isinstance(entry, ReplyEntry)]
    found += [e.usage for e in entries if isinstance(e, MessageEntry) and e.usage is not None]
    found += [usage for usage, _ in _plans(entries)]
    return Usage(
        input=sum(usage.input for usage in found),
        cached=sum(usage.cached for usage in found),
        written=sum(usage.written for usage in found),
        output=sum(usage.output for usage in found),
    )


def sum_cost(entries: tuple[Entry, ...], book: TargetBook) -> float:
    """What all requests cost; those to targets that nobody knows any more cost nothing."""
    targets = {entry.id: entry.target for entry in entries if isinstance(entry, RequestEntry)}
    cost = 0.0
    for entry in entries:
        if isinstance(entry, ReplyEntry) and entry.request in targets:
            with suppress(UnknownTarget):
                cost += cost_of(entry.usage, book.find(targets[entry.request]))
    return cost + sum(each for _, each in _plans(entries))


def _plans(entries: tuple[Entry, ...]) -> list[tuple[Usage, float]]:
    """What planning calls cost, which are requests of their own."""
    found = []
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.kind == PLAN and isinstance(entry.data, dict):
            cost = entry.data.get("cost")
            with suppress(msgspec.ValidationError):
                usage = msgspec.convert(entry.data.get("usage"), Usage)
                found.append((usage, float(cost) if isinstance(cost, int | float) else 0.0))
    return found


def show_sessions(rows: list[SessionRow], as_json: bool, everywhere: bool = False) -> None:
    console = Console()
    if as_json:
        console.out(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if not rows:
        console.print("No sessions here yet. --all looks in every workspace.")
        return
    table = Table(box=None, expand=True)
    # Ids and dates whole, so that they can be copied; what it is about gets the rest.
    table.add_column("session", no_wrap=True, overflow="fold")
    if everywhere:
        table.add_column("workspace", no_wrap=True)
    table.add_column("what it is about", no_wrap=True, overflow="ellipsis", ratio=1)
    # On a narrow screen what it is about matters more than every figure.
    figures = ("in", "cached", "$") if console.width < NARROW else tuple(FIGURES)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("written", no_wrap=True)
    for row in rows:
        about = row.problem or row.name or "-"
        if row.open:
            about = f"(not answered yet) {about}"
        if row.damage:
            about = f"(damaged in {row.damage} place{'s' * (row.damage > 1)}) {about}"
        when = datetime.fromtimestamp(row.written).strftime("%Y-%m-%d %H:%M")
        table.add_row(
            row.session,
            *([row.workspace] if everywhere else []),
            about.replace("[", r"\["),
            *(FIGURES[heading](row) for heading in figures),
            when if console.width >= NARROW else when[5:],
        )
    console.print(table)
