"""What was fetched lately.

Law: one fetch at a time per key, and none while what is kept is fresh: a chat that names a page in
every turn fetches it once, and its version stays.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from anyio import Lock
from msgspec import Struct

from lamina.pages.answers import Validators

T = TypeVar("T")


class CachedFetch(Struct, Generic[T], frozen=True, kw_only=True):
    """Something that is good `until` a time. A `problem` says why it is older than it should be."""

    value: T
    validators: Validators
    size: int
    until: float
    problem: str = ""


class PageCache(Generic[T]):
    """Keeps up to so many things and bytes; what was not used for longest goes first."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[Hashable, CachedFetch[T]] = OrderedDict()
        self._locks: dict[Hashable, Lock] = {}

    async def get(
        self,
        key: Hashable,
        now: float,
        renew: Callable[[CachedFetch[T] | None], Awaitable[CachedFetch[T]]],
    ) -> CachedFetch[T]:
        """What is kept under `key`, renewed if it is not fresh."""
        lock = self._locks.setdefault(key, Lock())
        try:
            async with lock:
                kept = self._kept.get(key)
                if kept is None or kept.until <= now:
                    kept = await renew(kept)
                self._put(key, kept)
                return kept
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._locks.pop(key, None)

    def _put(self, key: Hashable, kept: CachedFetch[T]) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > self._most or self._bytes() > self._most_bytes:
            self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(kept.size for kept in self._kept.values())
