"""A page of entries about to be appended: its state always is the fold of what was written."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from lamina.core.journal import State, fold_entry, shorten_patch
from lamina.core.values.entry import Entry, EntryBase, TransformEntry
from lamina.core.values.patch import Patch

E = TypeVar("E", bound=EntryBase)


class Page:
    def __init__(self, state: State, *, at: float, mint: Callable[[int], str]) -> None:
        self.state = state
        self.at = at
        self.began_at = state.leaf
        self._mint = mint
        self._written: list[Entry] = []

    def copy(self) -> "Page":
        """A page that goes on from here and leaves this one as it is."""
        page = Page(self.state, at=self.at, mint=self._mint)
        page._written = list(self._written)
        page.began_at = self.began_at
        return page

    def take(self, other: "Page") -> None:
        """Goes on where a copy of this page got to."""
        self.state, self._written = other.state, list(other._written)

    @property
    def written(self) -> tuple[Entry, ...]:
        return tuple(self._written)

    def next_id(self) -> str:
        return self._mint(len(self._written))

    def write(self, kind: type[E], /, **fields: Any) -> E:
        entry: Any = kind(id=self.next_id(), parent=self.state.leaf, at=self.at, **fields)
        self.state = fold_entry(self.state, entry)
        self._written.append(entry)
        return cast(E, entry)

    def transform(self, transformer: str, patch: Patch) -> TransformEntry:
        """Writes a patch down, without what it would only repeat."""
        state = self.state
        patch = shorten_patch(patch, state.envelope, state.requests.sent is not None)
        return self.write(TransformEntry, transformer=transformer, patch=patch)
