"""Keeps a session's journal entries and current state in memory.

Law: the state advances only after the store has kept the entries; a failed append changes nothing.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lamina.core.assembly.request_draft import Page
from lamina.core.codec import mint_id
from lamina.core.journal import (
    State,
    awaits_results,
    close_answered_request,
    fold_repaired,
    path_to,
    replay_repaired,
    walk_back,
)
from lamina.core.ports import CheckpointedJournal, Clock, OpenJournal
from lamina.core.values.entry import Entry, EntryBase, MessageEntry, ReplyEntry, RequestEntry
from lamina.engine.logger import log_closed, log_entries, log_opened
from lamina.engine.record.snapshot import Snapshot, thaw
from lamina.errors import JournalError, NoSuchEntry, TurnStateError


class Record:
    """An open journal, the entries read and written, and the resulting state."""

    def __init__(self, opened: OpenJournal, clock: Clock) -> None:
        journal = opened.journal
        self._opened = opened
        self._is_closed = False
        self.clock = clock
        self.entries = opened.entries
        self.snapshot: Snapshot | None = thaw(journal)
        # The state from which the last request was laid out, if the opening replay passed it.
        self.sent_state: State | None = None
        # The state from which the open request was laid out, if it was opened or written here.
        # Until the answer arrives, a person's changes continue to advance the state.
        self.requested_state: State | None = None
        damage = list(journal.damage)
        state = self.snapshot.state if self.snapshot else None
        snapshot = self.snapshot
        for entry in snapshot.behind if snapshot else path_to(journal.leaf, journal.entries):
            state = fold_repaired(state, entry, damage)
            if isinstance(entry, RequestEntry):
                self.requested_state = state
            elif isinstance(entry, ReplyEntry) and self.requested_state is not None:
                self.sent_state = self.requested_state
        assert state is not None
        self.state = close_answered_request(state)
        self.damage = tuple(damage)
        self.has_written = False
        log_opened(self.id, self.state.settings.target, len(self.entries), self.damage)

    @property
    def id(self) -> str:
        return self.state.session.session

    def path(self, entry: str) -> tuple[Entry, ...]:
        """Return the entries from the header to `entry`."""
        return path_to(entry, self.entries)

    def state_at(self, entry: str) -> State:
        """Return the state at `entry`; computed from the snapshot if that is on the path."""
        start = self.snapshot.state if self.snapshot else None
        path = self._back(entry, start.leaf if start else "")
        if start is None or (path[0].parent if path else entry) != start.leaf:
            start, path = None, self.path(entry)
        return close_answered_request(replay_repaired(path, start)[0])

    def message_of(self, request: RequestEntry) -> MessageEntry | None:
        """Return the question or the results that a request was made for; None if that line is
        lost.
        """
        own = self._back(request.id, self.before(request))
        return next((entry for entry in own if isinstance(entry, MessageEntry)), None)

    def since(self, entry: str) -> tuple[Entry, ...]:
        """Return the entries of the active path behind `entry`, which is on it."""
        return self._back(self.state.leaf, entry)

    def _back(self, leaf: str, until: str) -> tuple[Entry, ...]:
        """Return the entries from `leaf` back to the one behind `until`, or to the header, in
        order.
        """
        return walk_back(self.entries, leaf, until)

    def before(self, request: RequestEntry) -> str:
        """Return the entry in front of everything written for a request; if that entry is lost, the
        last earlier entry at which a turn was over.
        """
        if request.before in self.entries:
            return request.before
        path = self.path(request.id)[:-1]
        over = (entry.id for entry in reversed(path) if isinstance(entry, ReplyEntry))
        return next(over, path[0].id)

    def find(self, entry: str) -> Entry:
        """Return the entry with that id, with or without leading zeros.

        Raises:
            NoSuchEntry: no entry matches, or several do.
        """
        if entry in self.entries:
            return self.entries[entry]
        near = [known for known in self.entries if entry and known.lstrip("0") == entry.lstrip("0")]
        if len(near) != 1:
            raise NoSuchEntry(f"no entry {entry!r} in session {self.state.session.session!r}")
        return self.entries[near[0]]

    def page(self, state: State | None = None) -> Page:
        """Return a blank page at the session's leaf, or at `state`. Nothing on it is stored
        automatically.
        """
        first, now = self._opened.last + 1, self.clock.now()
        return Page(state or self.state, at=now, mint=lambda ahead: mint_id(first + ahead))

    @property
    def is_settled(self) -> bool:
        """Whether the last turn is over: no request is open, no call is waiting, and no question is
        unsent.
        """
        state = self.state
        return (
            state.requests.open is None and state.turn.start is None and not awaits_results(state)
        )

    def require_open(self, request: RequestEntry) -> None:
        """Raises:
        TurnStateError: the request is not the open one."""
        open_request = self.state.requests.open
        if open_request is None or open_request.id != request.id:
            raise TurnStateError(
                "this turn is not open: it was committed already, or another turn "
                "was prepared after it"
            )

    def require_not_closed(self) -> None:
        """Raises:
        JournalError: the session was closed.
        """
        if self._is_closed:
            raise JournalError(f"session {self.id!r} is closed; open it again")

    async def write(self, kind: type[EntryBase], /, **fields: Any) -> None:
        """Append one entry."""
        async with self.writing() as page:
            page.write(kind, **fields)

    @asynccontextmanager
    async def writing(self, state: State | None = None) -> AsyncIterator[Page]:
        """Yield a page at the session's leaf, or at `state`, that is stored in one append at the
        end. If the block raises or is cancelled, nothing is stored.
        """
        page = self.page(state)
        yield page
        await self.keep(page.written, page.state)

    async def keep(self, entries: Sequence[Entry], state: State) -> None:
        """Append the entries, then advance the state. A cancellation cannot separate the two: a
        store ignores cancellation once it has begun to write, and nothing is awaited in between.
        """
        if not entries:
            return
        await self._opened.append(entries)
        self.has_written = True
        self.state = state
        if isinstance(entries[-1], RequestEntry):
            self.requested_state = state
        log_entries(self.id, entries)

    def is_snapshot_due(self, least: int, share: float) -> bool:
        """Return whether a snapshot would save the next opening at least `least` bytes of reading,
        and `share` of the whole, so that its cost per turn is small.
        """
        size = self._opened.since_snapshot
        if size is None or self.damage:
            return False
        if self._opened.journal.snapshot and self.snapshot is None:
            # There is a snapshot, but it could not be used.
            size = self._opened.size
        return size >= max(least, share * self._opened.size)

    async def keep_snapshot(self, frozen: bytes) -> None:
        await self._opened.keep_snapshot(frozen)

    @property
    def is_checkpoint_due(self) -> bool:
        opened = self._opened
        return (
            isinstance(opened, CheckpointedJournal) and not self.damage and opened.is_checkpoint_due
        )

    async def keep_checkpoint(self, frozen: bytes) -> None:
        if isinstance(self._opened, CheckpointedJournal):
            await self._opened.keep_checkpoint(frozen)

    async def read_ahead(self) -> None:
        """Let the store fetch the contents of a request in advance if looking them up would
        block.
        """
        if self.snapshot is not None:
            await self._opened.read_ahead(self.snapshot.origins())

    async def close(self) -> None:
        self._is_closed = True
        await self._opened.close()
        log_closed(self.id)
