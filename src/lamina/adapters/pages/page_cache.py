"""What was fetched recently.

Law: one fetch at a time per key, and none while the last one is fresh: a chat that names a page in
every turn fetches it once, and its version stays the same.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from anyio import Lock
from msgspec import Struct

from lamina.adapters.pages.answers import Validators

T = TypeVar("T")


class CachedFetch(Struct, Generic[T], frozen=True, kw_only=True):
    """A fetch that is good `until` a time. A `problem` says why it is older than it should be."""

    value: T
    validators: Validators
    size: int
    until: float
    problem: str = ""


class PageCache(Generic[T]):
    """Keeps up to `max_count` fetches and `max_bytes`; the least recently used go first."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._fetches: OrderedDict[Hashable, CachedFetch[T]] = OrderedDict()
        self._locks: dict[Hashable, Lock] = {}

    async def get(
        self,
        key: Hashable,
        now: float,
        renew: Callable[[CachedFetch[T] | None], Awaitable[CachedFetch[T]]],
    ) -> CachedFetch[T]:
        """The fetch under `key`, renewed if it is not fresh."""
        lock = self._locks.setdefault(key, Lock())
        try:
            async with lock:
                fetch = self._fetches.get(key)
                if fetch is None or fetch.until <= now:
                    fetch = await renew(fetch)
                self._put(key, fetch)
                return fetch
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._locks.pop(key, None)

    def _put(self, key: Hashable, fetch: CachedFetch[T]) -> None:
        self._fetches[key] = fetch
        self._fetches.move_to_end(key)
        while len(self._fetches) > self._max_count or self._bytes() > self._max_bytes:
            self._fetches.popitem(last=False)

    def _bytes(self) -> int:
        return sum(fetch.size for fetch in self._fetches.values())
