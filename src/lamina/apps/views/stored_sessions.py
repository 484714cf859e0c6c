"""Stored sessions: finding the one a person means (by id, by the beginning of an id, or by its
file), and listing them all with their totals.
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
        """Where it is, for a person to read."""
        return self.store.place(self.session)

    async def read(self) -> Journal:
        return await self.store.read(self.session)


async def find_session(
    name: str, workspace: Path, *, names_files: bool = True, can_begin: bool = False
) -> StoredSession:
    """The session that `name` means. `names_files` and `can_begin` say whether a person who names
    one that is not there is told that files can be named, and how one is begun.

    Raises:
        UnknownSession: there is none, or there are several.
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
        raise UnknownSession(f"{name!r} may be any of {', '.join(sorted(near))}")
    hint = "`lamina sessions` lists them" if sessions else "there are none yet in this workspace"
    if elsewhere := await describe_elsewhere(workspace):
        hint += f"; {elsewhere}"
    ways = "-w DIR looks in another workspace"
    if names_files and store_name() == "jsonl":
        ways += ", and a path to a .jsonl file works as well"
    if can_begin:
        ways += "; --new begins a session under this name"
    raise UnknownSession(f"no session {name!r} of the workspace {str(workspace)!r}; {hint}. {ways}")


async def describe_elsewhere(workspace: Path) -> str:
    """What a person should know of sessions in stores that are not looked into; empty if there are
    none."""
    counts = await count_elsewhere(workspace)
    return "; ".join(
        f"{count:,} session{'s' * (count > 1)} in the other store (LAMINA_STORE={name})"
        for name, count in counts.items()
    )


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
