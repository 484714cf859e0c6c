"""Frozen collections that grow in constant time, and lists that are loaded on access.

Laws: growing a collection never changes what others see. Chains and maps that grew from one another
share one buffer, so a session of 100,000 messages costs one pointer per turn, not a copy; only
extending one that was already extended elsewhere (a branch) copies the pointers, without loading
anything. Apart from the time it takes, loading is invisible from outside.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
T = TypeVar("T")

# One lock for all chains, one for all maps: held only while a few pointers are appended.
_chain_lock = Lock()
_map_lock = Lock()
_unloaded: Any = object()


class LazyList(Generic[T]):
    """A list that starts with `length` values, loaded by position with `load`. `origin` is the
    source they are loaded from, for callers that want to write the list again. A branch shares its
    first values with its `trunk`, up to `trunk_length`, as the same objects."""

    __slots__ = ("_load", "_values", "base", "origin", "trunk", "trunk_length")

    def __init__(self, length: int, load: Callable[[int], T], origin: object = None) -> None:
        self.base = length
        self.origin = origin
        self.trunk: LazyList[T] | None = None
        self.trunk_length = 0
        self._load = load
        self._values: list[Any] = [_unloaded] * length

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self._values)))]
        if index < 0:
            index += len(self._values)
            if index < 0:
                raise IndexError(index)
        value: T = self._values[index]
        if value is _unloaded:
            value = self._values[index] = self._load(index)
        return value

    def extend(self, values: Iterable[T]) -> None:
        self._values.extend(values)

    def branch(self, length: int) -> "LazyList[T]":
        """Return an independent list of the first `length` values, without loading any."""
        trunk = self
        while trunk.trunk is not None and length <= trunk.trunk_length:
            trunk = trunk.trunk
        branch = LazyList(min(self.base, length), trunk.__getitem__, self.origin)
        branch.trunk, branch.trunk_length = trunk, length
        branch._values = trunk._values[:length]
        return branch


class Chain(Generic[T]):
    """A sequence that grows at its end without being copied; it reads like a tuple."""

    __slots__ = ("_buffer", "_length")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._buffer: list[T] | LazyList[T] = list(values)
        self._length = len(self._buffer)

    @classmethod
    def lazy(cls, buffer: LazyList[T]) -> "Chain[T]":
        """Return a chain whose older values are loaded on access."""
        return cls._view(buffer, len(buffer))

    @property
    def origin(self) -> LazyList[T] | None:
        """The source of the older values, if they are lazy."""
        return self._buffer if isinstance(self._buffer, LazyList) else None

    @classmethod
    def _view(cls, buffer: list[T] | LazyList[T], length: int) -> "Chain[T]":
        chain = cls.__new__(cls)
        chain._buffer = buffer
        chain._length = length
        return chain

    def extend(self, values: Iterable[T]) -> "Chain[T]":
        """Return the chain with `values` at its end; this one stays unchanged."""
        additions = tuple(values)
        if not additions:
            return self
        with _chain_lock:
            buffer = self._buffer
            # The empty chain is a shared default value: it never shares its buffer.
            if len(buffer) != self._length or not self._length:
                buffer = _branch(buffer, self._length)
            buffer.extend(additions)
        return self._view(buffer, self._length + len(additions))

    def until(self, length: int) -> "Chain[T]":
        """Return the first `length` elements, sharing this chain's buffer."""
        return self if length >= self._length else self._view(self._buffer, max(0, length))

    def shared_with(self, other: "Chain[T]") -> int:
        """Return how many leading elements are the same objects, because both chains share a buffer
        or a trunk."""
        if self._buffer is other._buffer:
            return min(self._length, other._length)
        own = {id(buffer): length for buffer, length in self._trunks()}
        for buffer, length in other._trunks():
            if id(buffer) in own:
                return min(length, own[id(buffer)])
        return 0

    def _trunks(self) -> "Iterator[tuple[LazyList[T], int]]":
        """Yield the lists that contain the first elements, each with the number of elements."""
        buffer, length = self._buffer, self._length
        while isinstance(buffer, LazyList):
            yield buffer, length
            if buffer.trunk is None:
                return
            buffer, length = buffer.trunk, min(length, buffer.trunk_length)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._buffer[index]

    def since(self, start: int) -> tuple[T, ...]:
        """Return the elements from an index on, oldest first."""
        if start < 0:
            start = max(0, start + self._length)
        return tuple(self._buffer[start : self._length])

    def __iter__(self) -> Iterator[T]:
        # Accessed by position: the buffer may grow meanwhile, but this chain does not.
        buffer = self._buffer
        for index in range(self._length):
            yield buffer[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        if self._length != other._length:
            return False
        return self._buffer is other._buffer or self.since(0) == other.since(0)

    def __hash__(self) -> int:
        return hash((Chain, self._length))

    def __repr__(self) -> str:
        return f"Chain(<{self._length}>)"


class FrozenMap(Mapping[K, T]):
    """A frozen mapping that grows in constant time: maps that grew from one another share one
    table, and each sees only the entries that existed when it was made."""

    __slots__ = ("_length", "_table")

    def __init__(self, entries: Mapping[K, T] | None = None) -> None:
        self._table: _Table[K, T] = _Table(entries or {})
        self._length = len(self._table.places)

    @classmethod
    def lazy(cls, keys: Sequence[K], load: Callable[[int], T]) -> "FrozenMap[K, T]":
        """Return a map of `keys` whose values are loaded by position with `load`."""
        lazy_map = cls()
        lazy_map._table.places = {key: place for place, key in enumerate(keys)}
        lazy_map._table.values = LazyList(len(keys), load)
        lazy_map._length = len(keys)
        return lazy_map

    def with_entry(self, key: K, value: T) -> "FrozenMap[K, T]":
        """Return the map with one more entry; this one stays unchanged."""
        with _map_lock:
            table = self._table
            if key in self or not self._length:
                # The key is overwritten, or this is the shared empty map: it needs its own table.
                table = _Table({other: self[other] for other in self if other != key})
            elif len(table.places) != self._length:
                # The table was already extended by someone else.
                table = table.branch(self._length)
            table.places[key] = len(table.values)
            table.values.extend((value,))
        larger_map = FrozenMap.__new__(FrozenMap)
        larger_map._table, larger_map._length = table, len(table.places)
        return larger_map

    def __getitem__(self, key: K) -> T:
        place = self._table.places[key]
        if place >= self._length:
            raise KeyError(key)
        return self._table.values[place]

    def __contains__(self, key: object) -> bool:
        return self._table.places.get(key, self._length) < self._length  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[K]:
        # The table may grow meanwhile, but this map does not.
        yield from list(self._table.places)[: self._length]

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"FrozenMap(<{self._length}>)"


class _Table(Generic[K, T]):
    __slots__ = ("places", "values")

    def __init__(self, entries: Mapping[K, T]) -> None:
        self.places: dict[K, int] = {key: place for place, key in enumerate(entries)}
        self.values: list[T] | LazyList[T] = list(entries.values())

    def branch(self, length: int) -> "_Table[K, T]":
        """Return an independent table of the first `length` entries."""
        table = _Table[K, T]({})
        table.places = dict(islice(self.places.items(), length))
        table.values = _branch(self.values, length)
        return table


def _branch(buffer: list[T] | LazyList[T], length: int) -> list[T] | LazyList[T]:
    return buffer.branch(length) if isinstance(buffer, LazyList) else buffer[:length]
