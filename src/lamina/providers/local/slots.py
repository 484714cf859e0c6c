"""Who has which slot of an embedded model.

Laws: a session keeps its slot, and with it its cache, until more sessions than slots want one; then
the one that waited longest for its next turn loses it. Whoever wanted a slot first gets it first.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class _Wish:
    """A request that wants a slot, or has one."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.slot: int | None = None
        self.granted = anyio.Event()


class Slots:
    def __init__(self, count: int) -> None:
        self._free = list(reversed(range(count)))
        # Sessions in the order in which they were last served.
        self._owned: OrderedDict[str, int] = OrderedDict()
        self._busy: set[int] = set()
        self._wishes: list[_Wish] = []

    @asynccontextmanager
    async def of(self, session: str) -> AsyncIterator[int]:
        """The slot of a session, for one request at a time."""
        wish = _Wish(session)
        self._wishes.append(wish)
        self._grant()
        try:
            await wish.granted.wait()
            assert wish.slot is not None
            yield wish.slot
        finally:
            # Stopped while it waited, it may have been given one by now.
            if wish.slot is None:
                self._wishes.remove(wish)
            else:
                self._busy.discard(wish.slot)
                self._grant()

    def _grant(self) -> None:
        """Gives out what is there. It is handed over, not left lying about: who comes back at once
        must not be faster than those who wait."""
        for wish in list(self._wishes):
            if (slot := self._find(wish.session)) is None:
                continue
            self._wishes.remove(wish)
            self._owned[wish.session] = wish.slot = slot
            self._owned.move_to_end(wish.session)
            self._busy.add(slot)
            wish.granted.set()

    def _find(self, session: str) -> int | None:
        if (own := self._owned.get(session)) is not None:
            return None if own in self._busy else own
        if self._free:
            return self._free.pop()
        for other, slot in self._owned.items():
            if slot not in self._busy:
                del self._owned[other]
                return slot
        return None
