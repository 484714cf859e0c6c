"""A store in memory that can be told to fail, and that counts its writes."""

from collections.abc import Sequence

from lamina.adapters.stores.memory import MemoryStore
from lamina.core.values.entry import Entry


class StoreFailed(Exception):
    """The disk is full, the network is gone."""


class FakeStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        self.writes = 0

    async def append(self, session: str, entries: Sequence[Entry]) -> None:
        if self.failing:
            raise StoreFailed
        self.writes += 1
        await super().append(session, entries)
