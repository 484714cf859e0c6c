"""A session that is closed lets go of its journal, however its block was left."""

import anyio
import anyio.lowlevel
from tests.fakes.sessions import World, run
from tests.fakes.store import FakeStore

from lamina.adapters.stores.memory import MemoryJournal


class SlowJournal(MemoryJournal):
    """One that takes a moment to close, as a database may."""

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        await super().close()


class SlowStore(FakeStore):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[SlowJournal] = []

    async def open(self, session: str) -> SlowJournal:
        self.opened.append(SlowJournal(self, session, await self.read(session)))
        return self.opened[-1]


def test_a_block_that_is_cancelled_closes_its_session() -> None:
    async def body() -> None:
        world, store = World(), SlowStore()
        world.store = store
        with anyio.CancelScope() as scope:
            async with await world.open("talk"):
                scope.cancel()
                await anyio.Event().wait()
        assert scope.cancelled_caught
        assert [journal.is_closed for journal in store.opened] == [True]

    run(body())
