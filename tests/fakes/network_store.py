"""A store that is far away: what was not read ahead has to be waited for, and that is counted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lamina.adapters.stores.memory import MemoryJournal, MemoryStore
from lamina.core.journal import GrownEntries, Journal, journal_of, walk_back
from lamina.core.values.entry import Entry


class FarEntries(Mapping[str, Entry]):
    """Entries of which only some are here. `waits` are the ids that had to be waited for."""

    def __init__(self, far: Mapping[str, Entry], near: Iterable[str]) -> None:
        self._far = far
        self.near = set(near)
        self.waits: list[str] = []

    def __getitem__(self, entry_id: str) -> Entry:
        if entry_id not in self.near and entry_id in self._far:
            self.waits.append(entry_id)
        return self._far[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._far)

    def __len__(self) -> int:
        return len(self._far)


class NetworkJournal(MemoryJournal):
    """An open session of a `NetworkStore`."""

    def __init__(self, store: "NetworkStore", session: str, journal: Journal) -> None:
        super().__init__(store, session, journal)
        self._snapshots = store.snapshots
        self._name = session
        kept = store.snapshots.get(session)
        whole = tuple(journal.entries.values())
        state, count = kept or (b"", 0)
        since = whole[count:] if kept else whole
        near = {whole[0].id, *(entry.id for entry in since)}
        self.far = FarEntries(journal.entries, near)
        self.journal = Journal(
            entries=self.far, leaf=journal.leaf, last=journal.last,
            snapshot=state, since=since if kept else (),
        )  # fmt: skip
        self.entries = GrownEntries(self.far)

    @property
    def since_snapshot(self) -> int | None:  # type: ignore[override]
        _, count = self._snapshots.get(self._name, (b"", 0))
        return (len(self.entries) - count) << 16

    async def keep_snapshot(self, state: bytes) -> None:
        self._snapshots[self._name] = (state, len(self.entries))

    async def read_ahead(self, entries: Iterable[str]) -> None:
        self.far.near |= set(entries)

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        path = walk_back(self.entries, entry, until, limit)
        self.far.near |= {entry.id for entry in path}
        return path


class NetworkStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.snapshots: dict[str, tuple[bytes, int]] = {}
        self.opened: NetworkJournal | None = None

    async def open(self, session: str) -> NetworkJournal:
        whole = journal_of((await self.read(session)).entries.values())
        self.opened = NetworkJournal(self, session, whole)
        return self.opened
