"""The entries of a journal as a store gives them, and what was written since.

Law: in order of writing, and nobody else's mapping changes under them.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from lamina.core.values.entry import Entry


class GrownEntries(Mapping[str, Entry]):
    """Entries that grow. Those that were there before may be looked up in a store one by one."""

    def __init__(self, base: Mapping[str, Entry], added: Iterable[Entry] = ()) -> None:
        self._base = base
        self._added: dict[str, Entry] = {}
        self.add(added)

    def add(self, entries: Iterable[Entry]) -> None:
        self._added.update((entry.id, entry) for entry in entries)

    @property
    def parts(self) -> tuple[Mapping[str, Entry], tuple[Entry, ...]]:
        """Those that were there before, and those that were added."""
        return self._base, tuple(self._added.values())

    def since(self, start: int) -> tuple[Entry, ...]:
        """The entries from number `start` on, in order of writing."""
        base = len(self._base)
        ids = islice(self._base, start, None) if start < base else ()
        added = islice(self._added.values(), max(0, start - base), None)
        return (*(self._base[entry_id] for entry_id in ids), *added)

    def __getitem__(self, entry_id: str) -> Entry:
        if (entry := self._added.get(entry_id)) is not None:
            return entry
        return self._base[entry_id]

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._added or entry_id in self._base

    def __iter__(self) -> Iterator[str]:
        yield from self._base
        yield from tuple(self._added)

    def __len__(self) -> int:
        return len(self._base) + len(self._added)
