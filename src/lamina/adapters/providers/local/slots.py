"""Which session has which slot of an embedded model.

Laws: a session keeps its slot, and with it its cache, until more sessions than slots need one; then
the session whose last turn is longest ago loses it. Slots are given first come, first served.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from msgspec import Struct


class SlotLease(Struct, frozen=True, kw_only=True):
    """A slot for one request; `fresh` if it is new to the session. `previous_session` had it
    before, if any did."""

    number: int
    fresh: bool = False
    previous_session: str | None = None


class _Wish:
    """A request that waits for a slot, or has one."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.lease: SlotLease | None = None
        self.grant = anyio.Event()


class Slots:
    def __init__(self, count: int) -> None:
        self._free = list(reversed(range(count)))
        # Sessions in the order in which they were last served.
        self._slots: OrderedDict[str, int] = OrderedDict()
        self._busy: set[int] = set()
        self._wishes: list[_Wish] = []

    @asynccontextmanager
    async def lease(self, session: str) -> AsyncIterator[SlotLease]:
        """The slot of a session, for one request at a time."""
        wish = _Wish(session)
        self._wishes.append(wish)
        self._grant()
        try:
            await wish.grant.wait()
            assert wish.lease is not None
            yield wish.lease
        finally:
            # If it was cancelled while it waited, it may still have got one.
            if wish.lease is None:
                self._wishes.remove(wish)
            else:
                self._busy.discard(wish.lease.number)
                self._grant()

    def has(self, session: str) -> bool:
        """Whether a session has a slot, and with it a cache."""
        return session in self._slots

    def release(self, session: str) -> None:
        """Frees a session's slot for the next request."""
        if (slot := self._slots.get(session)) is not None and slot not in self._busy:
            del self._slots[session]
            self._free.append(slot)
            self._grant()

    def _grant(self) -> None:
        """Gives free slots to waiting requests directly, so that none that comes back at once can
        overtake those that wait."""
        for wish in list(self._wishes):
            if (lease := self._find(wish.session)) is None:
                continue
            self._wishes.remove(wish)
            wish.lease = lease
            self._slots[wish.session] = lease.number
            self._slots.move_to_end(wish.session)
            self._busy.add(lease.number)
            wish.grant.set()

    def _find(self, session: str) -> SlotLease | None:
        if (own := self._slots.get(session)) is not None:
            return None if own in self._busy else SlotLease(number=own)
        if self._free:
            return SlotLease(number=self._free.pop(), fresh=True)
        for other, slot in self._slots.items():
            if slot not in self._busy:
                del self._slots[other]
                return SlotLease(number=slot, fresh=True, previous_session=other)
        return None
