"""What queries run over: notes, items of lists and groups, each as a mapping of its fields.

Law: a field is worked out when it is first asked for, and once. A name is found as it is spelled,
or else without regard to case.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lamina.core.notes.query.value_order import fold_case

_Owner = TypeVar("_Owner")


class LazyRow(Mapping[str, Any]):
    """Fields of which some are worked out when they are asked for, by the rule of their name."""

    __slots__ = ("_folded", "_known", "_rules", "identity", "owner")

    def __init__(
        self,
        owner: _Owner,
        rules: Mapping[str, Callable[[_Owner], Any]],
        known: dict[str, Any],
        identity: tuple[str | int, ...],
    ) -> None:
        self.owner: Any = owner
        # Rows of the same thing are equal, and need not be worked out to know it.
        self.identity = identity
        self._rules: Mapping[str, Callable[[Any], Any]] = rules
        self._known = known
        self._folded: dict[str, str] | None = None

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        value = self._known[name] = self._rules[name](self.owner)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from self._known
        yield from (name for name in self._rules if name not in self._known)

    def __len__(self) -> int:
        return len(self._known.keys() | self._rules.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._rules

    def find(self, name: str) -> Any:
        if name in self:
            return self[name]
        if self._folded is None:
            self._folded = {fold_case(own): own for own in reversed(list(self))}
        own = self._folded.get(fold_case(name))
        return None if own is None else self[own]


class OverlaidRow(Mapping[str, Any]):
    """A row with some fields in front of it: those of FLATTEN, the arguments of a function, or a
    task before its note."""

    __slots__ = ("base", "front")

    def __init__(self, front: Mapping[str, Any], base: Mapping[str, Any]) -> None:
        self.front, self.base = front, base

    def __getitem__(self, name: str) -> Any:
        return self.front[name] if name in self.front else self.base[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.front
        yield from (name for name in self.base if name not in self.front)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.front or name in self.base


def find_field(row: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or else ignoring case; null if there is none."""
    while isinstance(row, OverlaidRow):
        if name in row.front:
            return row.front[name]
        if isinstance(row.front, LazyRow) and (value := row.front.find(name)) is not None:
            return value
        row = row.base
    if isinstance(row, LazyRow):
        return row.find(name)
    if name in row:
        return row[name]
    folded = fold_case(name)
    return next((value for key, value in row.items() if fold_case(str(key)) == folded), None)
