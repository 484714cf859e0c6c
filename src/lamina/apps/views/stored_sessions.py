"""Stored sessions: finding one (by id, by the beginning of an id, or by its file), and listing
them all with their totals.
"""

from pathlib import Path

from msgspec import Struct

from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.stores import (
    count_elsewhere,
    default_store,
    list_everywhere,
    store_name,
    store_of_file,
)
from lamina.core.audit.session_totals import total_cost
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore, TargetBook
from lamina.core.values.totals import ListedSession, SessionTotals
from lamina.core.values.usage import Usage
from lamina.errors import UnknownSession


class StoredSession:
    """A session's id, and the store it is in."""

    def __init__(self, session: str, store: JournalStore) -> None:
        self.session = session
        self.store = store

    @property
    def place(self) -> str:
        """Return where it is, for a person to read."""
        return self.store.place(self.session)

    async def read(self) -> Journal:
        return await self.store.read(self.session)


async def find_session(
    name: str, workspace: Path, *, names_files: bool = True, can_begin: bool = False
) -> StoredSession:
    """Find the session that `name` means. If it is unknown, the error mentions that files can be
    named (`names_files`) and how to start a new session (`can_begin`).

    Raises:
        UnknownSession: no session matches, or several do.
    """
    if (found := store_of_file(name)) is not None:
        return StoredSession(*found)
    store = default_store(workspace)
    if await store.has(name):
        return StoredSession(name, store)
    sessions = await store.sessions()
    if name in sessions:
        return StoredSession(name, store)
    near = [session for session in sessions if session.startswith(name)]
    if len(near) == 1:
        return StoredSession(near[0], store)
    if near:
        raise UnknownSession(f"{name!r} is ambiguous: {', '.join(sorted(near))}")
    hint = "`lamina sessions` lists them" if sessions else "this workspace has no sessions yet"
    if elsewhere := await describe_elsewhere(workspace):
        hint += f"; {elsewhere}"
    ways = "-w DIR looks in another workspace"
    if names_files and store_name() == "jsonl":
        ways += ", and a path to a .jsonl file works as well"
    if can_begin:
        ways += "; --new starts a session with this name"
    raise UnknownSession(f"no session {name!r} in the workspace {str(workspace)!r}; {hint}. {ways}")


async def describe_elsewhere(workspace: Path) -> str:
    """Return a note about sessions in other stores, which are not searched; empty without
    such sessions."""
    counts = await count_elsewhere(workspace)
    return "; ".join(
        f"{count:,} session{'s' * (count > 1)} in the other store (LAMINA_STORE={name})"
        for name, count in counts.items()
    )


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session. `usage` sums reported usage on every branch, since all of it was paid for."""

    session: str
    workspace: str
    name: str = ""
    messages: int = 0
    entries: int = 0
    usage: Usage = Usage()
    # In US dollars at current prices, without the `unpriced` requests, whose price is unknown;
    # None if all of them are.
    cost: float | None = 0.0
    unpriced: int = 0
    bytes: int = 0
    written: float = 0.0
    damage: int = 0
    # Whether its last request was never answered.
    open: bool = False
    # Whether calls of its last answer wait for a decision, or to be run again.
    waits: bool = False
    problem: str = ""


async def list_sessions(workspace: Path, everywhere: bool) -> list[SessionRow]:
    """List the sessions of a workspace, or of all, most recently written first. A store that cannot
    be read has a row of its own, without a session."""
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
        # Other programs' requests are counted, but their prices are unknown here.
        cost=cost.known if cost.priced or not totals.usage.input else None,
        unpriced=cost.unpriced,
        bytes=listed.bytes,
        written=listed.written,
        damage=totals.damage,
        open=totals.is_waiting,
        waits=totals.awaits_results,
        problem=listed.problem,
    )
