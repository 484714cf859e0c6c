"""Journals in memory, as the bytes of a file, so that what cannot be stored is found out."""

import hashlib
from collections.abc import Sequence

from lamina.codec import decode_entry, encode_entry, entry_number
from lamina.errors import JournalError, SessionMoved, UnknownSession
from lamina.journal import Journal, journal_of
from lamina.values.entry import Entry, SessionEntry


class MemoryStore:
    """Sessions for the life of the process. A session may be open twice at the same time; the
    opening that is behind gets an error when it writes."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[bytes]] = {}
        self._ids: dict[str, set[str]] = {}
        self._blobs: dict[str, bytes] = {}

    async def create(self, header: SessionEntry) -> "MemoryJournal":
        await self.append(header.session, [header])
        return await self.open(header.session)

    async def open(self, session: str) -> "MemoryJournal":
        return MemoryJournal(self, session, await self.read(session))

    async def read(self, session: str) -> Journal:
        if session not in self._sessions:
            raise UnknownSession(f"no session {session!r} in this store")
        return journal_of(map(decode_entry, self._sessions[session]))

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
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

    async def has(self, session: str) -> bool:
        return session in self._sessions

    async def sessions(self) -> Sequence[str]:
        return tuple(reversed(self._sessions))

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise JournalError(f"no blob {digest!r} in this store") from None


class MemoryJournal:
    def __init__(self, store: MemoryStore, session: str, journal: Journal) -> None:
        self._store = store
        self._session = session
        self.journal = journal
        self.last = journal.last
        self._is_closed = False

    async def append(self, entries: Sequence[Entry]) -> None:
        if self._is_closed:
            raise JournalError(f"session {self._session!r} is closed; open it again")
        await self._store.append(self._session, entries)
        for entry in entries:
            self.last = max(self.last, entry_number(entry.id) or 0)

    size = 0

    @property
    def unindexed(self) -> None:
        return None

    async def keep_index(self, state: bytes) -> None:
        pass

    async def close(self) -> None:
        self._is_closed = True
