"""Keeps journals and recently sent prefixes in memory. Entries are encoded as in a file, so that
those that cannot be stored are refused.

Law: a write yields to other tasks, as in every store: the order of events, and so a journal's
content, must not depend on the type of store.
"""

import hashlib
import time
from collections.abc import Collection, Iterable, Sequence
from weakref import WeakSet

from anyio.lowlevel import cancel_shielded_checkpoint

from lamina.core.audit.kept_results import blobs_of
from lamina.core.audit.session_totals import sum_totals
from lamina.core.codec import decode_entry, encode_entry, entry_number
from lamina.core.journal import GrownEntries, Journal, journal_of, walk_back
from lamina.core.journal.lines import write_lines
from lamina.core.ports.store import JournalStore
from lamina.core.values.entry import Entry, SessionEntry
from lamina.core.values.sent_prefix import MAX_PREFIXES, MINUTE, RecentPrefixes, SentPrefix
from lamina.core.values.totals import DeletedSession, ListedSession
from lamina.errors import JournalError, SessionBusy, SessionMoved, UnknownSession


class MemorySentPrefixes:
    """Recently sent prefixes for the sessions in one process."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, str], SentPrefix] = {}
        self._requests: list[tuple[str, float]] = []

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        alive = [
            prefix
            for prefix in self._prefixes.values()
            if prefix.target == target and prefix.expires >= now
        ]
        alive.sort(key=lambda prefix: -prefix.at)
        rates: dict[str, int] = {}
        for key, at in self._requests:
            if now - MINUTE < at <= now:
                rates[key] = rates.get(key, 0) + 1
        return RecentPrefixes(prefixes=tuple(alive[:MAX_PREFIXES]), rates=rates)

    async def count(self, key: str, at: float) -> None:
        self._requests = [row for row in self._requests if row[1] > at - MINUTE]
        self._requests.append((key, at))

    async def keep(self, prefix: SentPrefix) -> None:
        name = (prefix.target, prefix.name)
        known = self._prefixes.get(name)
        if known is None or known.at <= prefix.at:
            self._prefixes[name] = prefix
        stale = [name for name, old in self._prefixes.items() if old.expires < prefix.at]
        for name in stale:
            del self._prefixes[name]

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""


class MemoryStore(JournalStore):
    """A store that keeps sessions until the process ends and writes no files. A session may be open
    twice; the outdated opening gets an error when it writes."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[bytes]] = {}
        self._ids: dict[str, set[str]] = {}
        self._times: dict[str, float] = {}
        # Each with the time when it was stored.
        self._blobs: dict[str, tuple[bytes, float]] = {}
        self._openings: dict[str, WeakSet[MemoryJournal]] = {}
        # The prefixes recently sent by the sessions in this store.
        self.sent_prefixes = MemorySentPrefixes()

    def place(self, session: str) -> str:
        return f"session {session!r} in memory"

    async def create(self, header: SessionEntry) -> "MemoryJournal":
        await self.append(header.session, [header])
        return await self.open(header.session)

    async def open(self, session: str) -> "MemoryJournal":
        opened = MemoryJournal(self, session, await self.read(session))
        self._openings.setdefault(session, WeakSet()).add(opened)
        return opened

    async def read(self, session: str) -> Journal:
        return journal_of(map(decode_entry, self._lines_of(session)))

    async def export(self, session: str) -> bytes:
        entries = tuple((await self.read(session)).entries.values())
        return write_lines(entries, -1)

    def _lines_of(self, session: str) -> list[bytes]:
        if session not in self._sessions:
            raise UnknownSession(f"no session {session!r} in this store")
        return self._sessions[session]

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        """Add entries to a session: all or none."""
        lines = [encode_entry(entry) for entry in entries]
        stored_ids = self._ids.setdefault(session, set())
        ids = {entry.id for entry in entries}
        if not stored_ids.isdisjoint(ids):
            raise SessionMoved(session)
        stored_ids |= ids
        journal_lines = self._sessions.pop(session, [])
        journal_lines.extend(lines)
        # The most recently written session is last.
        self._sessions[session] = journal_lines
        self._times[session] = time.time()

    async def has(self, session: str) -> bool:
        return session in self._sessions

    async def sessions(self) -> Sequence[str]:
        return tuple(reversed(self._sessions))

    async def list_sessions(self) -> Sequence[ListedSession]:
        return [
            ListedSession(
                session=session,
                totals=sum_totals(await self.read(session)),
                bytes=sum(map(len, self._sessions[session])),
                written=self._times[session],
            )
            for session in await self.sessions()
        ]

    async def delete(self, session: str) -> DeletedSession:
        lines = self._lines_of(session)
        if any(not opened.is_closed for opened in self._openings.get(session, ())):
            raise SessionBusy(session, 0.0)
        digests = blobs_of(map(decode_entry, lines))
        written = self._times[session]
        del self._sessions[session], self._ids[session], self._times[session]
        others = b"".join(b"".join(others) for others in self._sessions.values())
        # A blob stored again since then may soon be named.
        old = {digest for digest, (_, put) in self._blobs.items() if put <= written}
        blobs = sorted(digest for digest in digests & old if digest.encode() not in others)
        for digest in blobs:
            del self._blobs[digest]
        return DeletedSession(session=session, bytes=sum(map(len, lines)), blobs=tuple(blobs))

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = (data, time.time())
        await cancel_shielded_checkpoint()
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest][0]
        except KeyError:
            raise JournalError(f"no blob {digest!r} in this store") from None

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        return frozenset(digests) & self._blobs.keys()


class MemoryJournal:
    """An open session of a `MemoryStore`."""

    def __init__(self, store: MemoryStore, session: str, journal: Journal) -> None:
        self._store = store
        self._session = session
        self.journal = journal
        self.entries = GrownEntries(journal.entries)
        self.last = journal.last
        self.is_closed = False

    async def append(self, entries: Sequence[Entry]) -> None:
        if self.is_closed:
            raise JournalError(f"session {self._session!r} is closed; open it again")
        await self._store.append(self._session, entries)
        self.entries.add(entries)
        for entry in entries:
            self.last = max(self.last, entry_number(entry.id) or 0)
        await cancel_shielded_checkpoint()

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self.entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Do nothing: all entries are in memory."""

    size = 0
    since_snapshot: int | None = None

    async def keep_snapshot(self, state: bytes) -> None:
        """Do nothing: a snapshot would save no work."""

    async def close(self) -> None:
        self.is_closed = True
