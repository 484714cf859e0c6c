"""What a session remembers of its journal.

Law: the state only moves on when the store has kept the entries; a failed append changes nothing.
"""

from collections.abc import Mapping, Sequence

import anyio

from lamina.engine.writing import Pen
from lamina.errors import UnknownSession
from lamina.journal import State, path_to, replay_mended
from lamina.journal.lines import mint_id
from lamina.ports import Clock, OpenJournal
from lamina.values.damage import Damage
from lamina.values.entry import Entry


class Record:
    """An open journal, the entries that were read and written, and the state they amount to."""

    def __init__(self, opened: OpenJournal, clock: Clock) -> None:
        self._opened = opened
        self._clock = clock
        self.entries: dict[str, Entry] = dict(opened.journal.entries)
        self.state, skipped = replay_mended(path_to(next(reversed(self.entries)), self.entries))
        self.damage: tuple[Damage, ...] = (*opened.journal.damage, *skipped)

    def path(self, entry: str) -> tuple[Entry, ...]:
        """The entries from the header to `entry`."""
        return path_to(entry, self.entries)

    def state_at(self, entry: str) -> State:
        return replay_mended(self.path(entry))[0]

    def find(self, entry: str) -> Entry:
        """The entry of that id, or the one whose id begins so if there is only one.

        Raises:
            UnknownSession: there is no such entry, or there are several.
        """
        if entry in self.entries:
            return self.entries[entry]
        near = [each for each in self.entries if each.lstrip("0") == entry.lstrip("0")]
        if len(near) != 1:
            raise UnknownSession(f"no entry {entry!r} in session {self.state.session.session!r}")
        return self.entries[near[0]]

    def next_id(self) -> str:
        return mint_id(self._opened.last + 1)

    def pen(self, state: State | None = None) -> Pen:
        first = self._opened.last + 1
        return Pen(
            state or self.state,
            at=self._clock.now(),
            mint=lambda ahead: mint_id(first + ahead),
        )

    async def keep(self, entries: Sequence[Entry], state: State) -> None:
        """Appends, and only then moves on. Not to be parted by a cancellation: what is on disk and
        what is remembered must be the same."""
        if not entries:
            return
        with anyio.CancelScope(shield=True):
            await self._opened.append(entries)
            self.entries.update((entry.id, entry) for entry in entries)
            self.state = state

    async def close(self) -> None:
        await self._opened.close()

    def children(self) -> Mapping[str, list[Entry]]:
        """The entries behind each entry, in order of writing."""
        behind: dict[str, list[Entry]] = {}
        for entry in self.entries.values():
            if entry.parent is not None:
                behind.setdefault(entry.parent, []).append(entry)
        return behind
