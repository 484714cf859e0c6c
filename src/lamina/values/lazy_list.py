"""Sequences and mappings whose older part is loaded when it is looked at.

Law: whether a value was loaded yet cannot be told from outside, only from the time it takes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
T = TypeVar("T")

_growing = Lock()


class LazyList(Generic[T]):
    """A list that begins with `length` values which `load` gives by position. `origin` is whatever
    they are loaded from, for those who want to write the list down again."""

    __slots__ = ("_load", "_values", "base", "origin")

    def __init__(self, length: int, load: Callable[[int], T], origin: object = None) -> None:
        self.base = length
        self.origin = origin
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
        value = self._values[index]
        if value is _unloaded:
            value = self._values[index] = self._load(index)
        loaded: T = value
        return loaded

    def extend(self, values: Iterable[T]) -> None:
        self._values.extend(values)


_unloaded: Any = object()


class FrozenMap(Mapping[K, T]):
    """A frozen mapping that grows in constant time: catalogues that grew from one another share
    one table, and each sees as much of it as was there when it was made."""

    __slots__ = ("_length", "_table")

    def __init__(self, entries: Mapping[K, T] | None = None) -> None:
        self._table: _Table[K, T] = _Table(entries or {})
        self._length = len(self._table.places)

    @classmethod
    def deferred(cls, keys: Sequence[K], load: Callable[[int], T]) -> "FrozenMap[K, T]":
        """A catalogue of `keys` whose values `load` gives by position."""
        catalogue = cls()
        catalogue._table.places = {key: place for place, key in enumerate(keys)}
        catalogue._table.values = LazyList(len(keys), load)
        catalogue._length = len(keys)
        return catalogue

    def added(self, key: K, value: T) -> "FrozenMap[K, T]":
        """The catalogue with one more entry; this one stays as it is."""
        with _growing:
            table = self._table
            if len(table.places) != self._length or key in table.places or not self._length:
                # Someone else went on from here, or the key is set anew: a table of its own.
                table = _Table({each: self[each] for each in self if each != key})
            table.places[key] = len(table.values)
            table.values.extend((value,))
        grown = FrozenMap.__new__(FrozenMap)
        grown._table, grown._length = table, len(table.places)
        return grown

    def __getitem__(self, key: K) -> T:
        place = self._table.places[key]
        if place >= self._length:
            raise KeyError(key)
        return self._table.values[place]

    def __contains__(self, key: object) -> bool:
        return self._table.places.get(key, self._length) < self._length  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[K]:
        # The table may grow under us, this catalogue does not.
        yield from list(self._table.places)[: self._length]

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Catalogue(<{self._length}>)"


class _Table(Generic[K, T]):
    __slots__ = ("places", "values")

    def __init__(self, entries: Mapping[K, T]) -> None:
        self.places: dict[K, int] = {key: place for place, key in enumerate(entries)}
        self.values: list[T] | LazyList[T] = list(entries.values())
