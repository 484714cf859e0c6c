"""Journals in memory, kept as the bytes a file would hold, so that what cannot be stored shows."""

import hashlib
from collections.abc import Sequence

from lamina.codec import canonical, decode_entry
from lamina.errors import JournalError, SessionMoved
from lamina.values.entry import Entry


class MemoryStore:
    def __init__(self) -> None:
        self._sessions: dict[str, list[bytes]] = {}
        self._ids: dict[str, set[str]] = {}
        self._blobs: dict[str, bytes] = {}

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        lines = [canonical(entry) for entry in entries]
        taken = self._ids.setdefault(session, set())
        ids = {entry.id for entry in entries}
        if taken & ids:
            raise SessionMoved(session)
        taken |= ids
        self._sessions.setdefault(session, []).extend(lines)

    async def load(self, session: str) -> Sequence[Entry]:
        if session not in self._sessions:
            raise JournalError(f"no session {session!r} in this store")
        return [decode_entry(line) for line in self._sessions[session]]

    async def has(self, session: str) -> bool:
        return session in self._sessions

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise JournalError(f"no blob {digest!r} in this store") from None
