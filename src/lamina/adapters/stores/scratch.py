"""Provides stores that read from another store and discard what is written.

Law: the store behind it is never written to. Its sessions are still opened for writing, so a
session that is open elsewhere is busy here too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.adapters.stores.memory import MemoryStore
from lamina.core.codec import encode_entry, entry_number
from lamina.core.journal import GrownEntries, Journal, walk_back
from lamina.core.ports.store import JournalStore, OpenJournal
from lamina.core.values.entry import Entry
from lamina.errors import JournalError


class ScratchStore(MemoryStore):
    """A store that keeps new sessions, and additions to the underlying store's sessions, in
    memory."""

    def __init__(self, behind: JournalStore) -> None:
        super().__init__()
        self._behind = behind

    async def open(self, session: str) -> OpenJournal:  # type: ignore[override]
        if await super().has(session):
            return await super().open(session)
        return ScratchJournal(await self._behind.open(session))

    async def has(self, session: str) -> bool:
        return await super().has(session) or await self._behind.has(session)

    async def get_blob(self, digest: str) -> bytes:
        try:
            return await super().get_blob(digest)
        except JournalError:
            return await self._behind.get_blob(digest)

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        return await super().known_blobs(digests) | await self._behind.known_blobs(digests)


class ViewedStore(ScratchStore):
    """A scratch store that reads one session from `journal` instead of opening it, so that the
    session may be open elsewhere."""

    def __init__(self, behind: JournalStore, session: str, journal: Journal) -> None:
        super().__init__(behind)
        self._session = session
        self._journal = journal

    async def open(self, session: str) -> OpenJournal:  # type: ignore[override]
        if session != self._session:
            return await super().open(session)
        return ScratchJournal(ViewedJournal(self._journal))


class ViewedJournal:
    """A session read from a journal and presented as open; it refuses new entries."""

    since_snapshot: int | None = None
    size = 0

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.entries = journal.entries
        self.last = max(journal.last, *map(_number_of, (journal.leaf, journal.header.id)))
        self.last += journal.lost

    async def append(self, entries: Sequence[Entry]) -> None:  # noqa: ARG002
        raise JournalError("this session is read-only; open it to add entries")

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self.entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Do nothing: everything was read."""

    async def keep_snapshot(self, state: bytes) -> None:
        """It is of no use to anybody."""

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _number_of(entry: str) -> int:
    return entry_number(entry) or 0


class ScratchJournal:
    """An open session whose new entries are discarded on closing."""

    since_snapshot: int | None = None

    def __init__(self, behind: OpenJournal) -> None:
        self._behind = behind
        self._entries = GrownEntries(behind.entries)
        self.last = behind.last

    @property
    def journal(self) -> Journal:
        return self._behind.journal

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    @property
    def size(self) -> int:
        return self._behind.size

    async def append(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            # Refuse entries that a real store could not encode.
            encode_entry(entry)
            self.last = max(self.last, entry_number(entry.id) or 0)
        self._entries.add(entries)

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self._entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        await self._behind.read_ahead(entries)

    async def keep_snapshot(self, state: bytes) -> None:
        """It is of no use to anybody."""

    async def close(self) -> None:
        await self._behind.close()
