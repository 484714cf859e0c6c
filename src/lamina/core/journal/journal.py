"""Builds the journal from its entries in the order of writing, and the tree they form.

Laws: damage never makes reading raise; everything proven intact is kept, the rest is reported with
its location. A parent comes before its children, so a tree has no cycles: an entry whose parent is
missing is attached to the entry before it, which in a journal is nearly always its grandparent, and
that is reported. Growing entries keep the order of writing, and never change a mapping in use
elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import entry_number, mint_id
from lamina.core.journal.lines import Line, read_lines
from lamina.core.values.damage import Damage, DamageKind
from lamina.core.values.entry import Entry, SessionEntry, UnknownEntry
from lamina.errors import JournalError


class GrownEntries(Mapping[str, Entry]):
    """A growing mapping of entries. The older ones may be looked up in a store one by one."""

    def __init__(self, base: Mapping[str, Entry], added: Iterable[Entry] = ()) -> None:
        self._base = base
        self._added: dict[str, Entry] = {}
        self.add(added)

    def add(self, entries: Iterable[Entry]) -> None:
        self._added.update((entry.id, entry) for entry in entries)

    @property
    def parts(self) -> tuple[Mapping[str, Entry], tuple[Entry, ...]]:
        """The older entries, and the added ones."""
        return self._base, tuple(self._added.values())

    def since(self, start: int) -> tuple[Entry, ...]:
        """Return the entries from number `start` on, in the order of writing."""
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


class Journal(Struct, frozen=True, kw_only=True):
    """A session as returned by a store: its entries in the order of writing, and any damage.
    Entries may be looked up in the store one by one, on access."""

    entries: Mapping[str, Entry]
    # The position at which the session continues: the last entry written.
    leaf: str
    damage: tuple[Damage, ...] = ()
    # The highest id number so far, and how many more may have been assigned by writes of which
    # nothing is readable.
    last: int = -1
    lost: int = 0
    # The newest stored snapshot, and the entries written after it.
    snapshot: bytes = b""
    since: tuple[Entry, ...] = ()

    @property
    def header(self) -> SessionEntry:
        """The first entry of every path."""
        header = next(iter(self.entries.values()))
        assert isinstance(header, SessionEntry)
        return header


def read_journal(data: bytes, session: str = "") -> Journal:
    """Return the journal in these lines. `session` is its id, in case the header is lost."""
    reader = TreeReader()
    for line in read_lines(data):
        reader.take(line)
    return reader.finish(session)


def journal_of(entries: Iterable[Entry]) -> Journal:
    """Return the journal of these intact entries."""
    by_id = {entry.id: entry for entry in entries}
    last = max((entry_number(entry_id) or 0 for entry_id in by_id), default=-1)
    return Journal(entries=by_id, leaf=next(reversed(by_id)), last=last)


class _Known(dict[str, Entry]):
    """New entries, together with older ones that are known to exist."""

    def __init__(self, older: Mapping[str, Entry]) -> None:
        super().__init__()
        self._older = older

    def __contains__(self, entry_id: object) -> bool:
        return super().__contains__(entry_id) or entry_id in self._older

    def __missing__(self, entry_id: str) -> Entry:
        return self._older[entry_id]

    def __bool__(self) -> bool:
        return True


# Kinds of damage that left nothing with an id.
_LOSSES = ("checksum", "no_checksum", "torn", "nul_bytes", "not_an_entry")


class TreeReader:
    """Adds lines to the tree, one after the other. The tree may already have `older` entries, all
    of them intact; the last of them has the number `last`. `entries` are those read here."""

    def __init__(self, older: Mapping[str, Entry] | None = None, last: int = -1) -> None:
        self._older = {} if older is None else older
        self.entries: dict[str, Entry] = {} if older is None else _Known(older)
        self.damage: list[Damage] = []
        self.last = last
        self.awaited = 0
        self.lost = 0
        self._before: Line | None = None
        self._goes_on = False
        # Whether the current write is a copy of a session, which has gaps in its ids.
        self._copies = False
        self._leaf: str | None = None if older is None else mint_id(last)

    @property
    def _first(self) -> Entry | None:
        return next(iter((self._older or self.entries).values()), None)

    def take(self, line: Line | Damage) -> None:
        if isinstance(line, Damage):
            self.damage.append(line)
            self.lost += line.kind in _LOSSES
            return
        self._check_write(line)
        entry = line.entry
        if isinstance(entry, SessionEntry):
            self._take_header(line, entry)
            return
        if not self.entries:
            # The header is lost; the session's id is filled in at the end.
            self._add(SessionEntry(id="000000", parent=None, at=entry.at, session=""))
        if entry.id in self.entries:
            self._report_twin(line)
            return
        self._check_number(line)
        if isinstance(entry, UnknownEntry):
            detail = f"entry {entry.id!r} is of a type that is not known here: {entry.kind!r}"
            self._report("unknown_type", line, detail)
        if entry.parent is None or entry.parent not in self.entries:
            problem = f"the parent {entry.parent!r} of entry {entry.id!r} is missing"
            self._report("missing_parent", line, f"{problem}; put behind {self._leaf!r}")
            entry = replace(entry, parent=self._leaf)
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        self.entries[entry.id] = entry
        self._leaf = entry.id

    def _take_header(self, line: Line, entry: SessionEntry) -> None:
        if entry.parent is not None:
            detail = f"the session's header names a parent {entry.parent!r}"
            self._report("bad_header", line, detail)
            entry = replace(entry, parent=None)
        first = self._first
        if first is None:
            self._check_number(line)
            self._add(entry)
        elif isinstance(first, SessionEntry) and not first.session:
            # It comes after other entries, but is still the header.
            self._report("conflict", line, "the session's header stands behind other entries")
            self.entries[first.id] = replace(entry, id=first.id)
        elif entry.id in self.entries:
            self._report_twin(line)
        else:
            self._check_number(line)
            detail = f"a second session header {entry.id!r} inside the session"
            self._report("conflict", line, detail)

    def finish(self, session: str) -> Journal:
        """Return the resulting journal. `session` is its id, in case the header is lost."""
        self._close()
        if not self._older:
            self._repair_header(session)
        older, new = self._older, self.entries
        return Journal(
            entries=GrownEntries(older, new.values()) if older else new,
            leaf=next(reversed(new), self._leaf or ""),
            damage=tuple(self.damage),
            last=self.last,
            lost=self.lost + self.awaited,
        )

    def _close(self) -> None:
        if self.awaited and self._before:
            detail = f"the last write is not whole: {self._describe_awaited()}"
            self._report("incomplete_write", self._before, detail)
        self.last = max(self.last, 0)

    def _describe_awaited(self) -> str:
        entries = "entry was" if self.awaited == 1 else "entries were"
        return f"{self.awaited} more {entries} to follow"

    def _repair_header(self, session: str) -> None:
        first = next(iter(self.entries.values()), None)
        if first is None:
            first = SessionEntry(id="000000", parent=None, at=0.0, session=session)
            detail = "no line of the journal can be read"
        elif isinstance(first, SessionEntry) and not first.session:
            detail = (
                "the session's header cannot be read: its system prompt, tools and settings are "
                "lost; the conversation is kept"
            )
        else:
            return
        self.entries[first.id] = replace(first, session=session)
        self.damage.insert(0, Damage(kind="bad_header", detail=detail))

    def _check_write(self, line: Line) -> None:
        before = self._before
        follows = self._copies or before is None or _follows(line.entry.id, before.entry.id)
        fits = not line.skip and line.more == self.awaited - 1
        self._goes_on = bool(self.awaited and fits and follows)
        if not self._goes_on:
            self._copies = len(self._older) + len(self.entries) <= 1
        if self.awaited and before and not self._goes_on:
            detail = f"a write ended early: {self._describe_awaited()}"
            self._report("incomplete_write", before, detail)
        self.awaited = line.more
        self.lost = 0
        self._before = line

    def _check_number(self, line: Line) -> None:
        number = entry_number(line.entry.id)
        if number is None:
            return
        missing = number - self.last - 1 - line.skip
        # A copy may skip ids: a copy of one path has only that path's ids.
        if missing > 0 and not self._goes_on:
            first, end = self.last + 1, number - line.skip - 1
            which = mint_id(first) if first == end else f"{mint_id(first)} to {mint_id(end)}"
            self._report("missing_entries", line, f"in front of it is missing: {which}")
        self.last = max(self.last, number)

    def _report_twin(self, line: Line) -> None:
        entry = line.entry
        # A reattached entry differs from its duplicate only by the parent.
        if replace(self.entries[entry.id], parent=entry.parent) == entry:
            self._report("duplicate", line, f"entry {entry.id!r} stands there twice")
        else:
            detail = f"another entry {entry.id!r} stands before it; the first one holds"
            self._report("conflict", line, detail)

    def _report(self, kind: DamageKind, line: Line, detail: str) -> None:
        place = {"line": line.number, "offset": line.offset, "length": line.length}
        self.damage.append(Damage(kind=kind, detail=detail, **place))


def _follows(entry: str, before: str) -> bool:
    number, last = entry_number(entry), entry_number(before)
    return number is None or last is None or number == last + 1


def walk_back(
    entries: Mapping[str, Entry], entry: str, until: str = "", limit: int | None = None
) -> tuple[Entry, ...]:
    """Return the entries of a path that ends with `entry`, in order: from after `until`, or from
    the header, and at most the last `limit` of them."""
    path: list[Entry] = []
    at: str | None = entry
    while at is not None and at != until and (limit is None or len(path) < limit):
        path.append(entries[at])
        at = path[-1].parent
    return tuple(reversed(path))


def path_to(leaf: str, entries: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """Return the entries from the header to `leaf`.

    Raises:
        JournalError: a parent is missing, or parents form a cycle.
    """
    path: list[Entry] = []
    visited: set[str] = set()
    at: str | None = leaf
    while at is not None:
        if at in visited:
            raise JournalError(f"entry {at!r} is its own ancestor")
        if at not in entries:
            raise JournalError(f"entry {at!r} is missing; its descendants cannot be placed")
        visited.add(at)
        path.append(entries[at])
        at = entries[at].parent
    return tuple(reversed(path))
