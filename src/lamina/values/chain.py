"""A frozen sequence that grows in constant time.

Law: appending never changes a chain that someone else holds. Chains that grew from one another
share one buffer, so a session of 100,000 messages costs one pointer per turn, not a copy; only
appending to a chain that was already extended elsewhere (a branch) copies the pointers.
"""

from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Generic, TypeVar

from lamina.values.lazy_list import LazyList

T = TypeVar("T")

# One lock for all chains: held for an append of a few pointers, never while rendering.
_growing = Lock()


class Chain(Generic[T]):
    __slots__ = ("_buffer", "_length")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._buffer: list[T] | LazyList[T] = list(values)
        self._length = len(self._buffer)

    @classmethod
    def deferred(cls, buffer: LazyList[T]) -> "Chain[T]":
        """A chain whose older values are loaded when they are looked at."""
        return cls._view(buffer, len(buffer))

    @property
    def origin(self) -> LazyList[T] | None:
        """What the older values are loaded from, if they are."""
        return self._buffer if isinstance(self._buffer, LazyList) else None

    @classmethod
    def _view(cls, buffer: list[T] | LazyList[T], length: int) -> "Chain[T]":
        chain = cls.__new__(cls)
        chain._buffer = buffer
        chain._length = length
        return chain

    def extend(self, values: Iterable[T]) -> "Chain[T]":
        """The chain with `values` after its end; this one stays as it is."""
        added = tuple(values)
        if not added:
            return self
        with _growing:
            buffer = self._buffer
            # The empty chain is a default value that everyone shares: it never lends its buffer.
            if len(buffer) != self._length or not self._length:
                buffer = buffer[: self._length]
            buffer.extend(added)
        return self._view(buffer, self._length + len(added))

    def until(self, length: int) -> "Chain[T]":
        """The first `length` elements, sharing this chain's buffer."""
        if length >= self._length:
            return self
        return self._view(self._buffer, max(0, length))

    def shared_with(self, other: "Chain[T]") -> int:
        """How many leading elements are the same objects because the buffer is the same."""
        return min(self._length, other._length) if self._buffer is other._buffer else 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._buffer[index]

    def since(self, start: int) -> tuple[T, ...]:
        if start < 0:
            start = max(0, start + self._length)
        return tuple(self._buffer[start : self._length])

    def __iter__(self) -> Iterator[T]:
        # By position: the buffer may grow under us, this chain does not.
        buffer = self._buffer
        for index in range(self._length):
            yield buffer[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        if self._buffer is other._buffer and self._length == other._length:
            return True
        return self._length == other._length and self.since(0) == other.since(0)

    def __hash__(self) -> int:
        return hash((Chain, self._length))

    def __repr__(self) -> str:
        return f"Chain(<{self._length}>)"
