"""Finds the displays that hooks and applications attach to their patches for people to see.

Law: displays are read from the journal, so a person sees the same during a turn and long after it.
"""

from collections.abc import Iterable, Mapping, Sequence

from lamina.core.journal import Journal
from lamina.core.values.entry import (
    Entry,
    EphemeralEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.patch import Display, HookDisplay

# The engine's own patches; their effects are reported elsewhere.
_OWN = "lamina."


def find_displays(entries: Iterable[Entry]) -> tuple[HookDisplay, ...]:
    """Return the displays of a run of entries, in order."""
    shown: list[HookDisplay] = []
    for entry in entries:
        if isinstance(entry, TransformEntry) and entry.patch.display:
            if not entry.transformer.startswith(_OWN):
                shown.append(HookDisplay(hook=entry.transformer, display=entry.patch.display))
        elif isinstance(entry, EphemeralEntry):
            # With several hooks, the author of a display was not always recorded.
            names: Sequence[str] = entry.hooks
            if len(names) != len(entry.displays):
                names = [", ".join(names)] * len(entry.displays)
            shown += map(_show, names, entry.displays)
    return tuple(shown)


def _show(hook: str, display: Display) -> HookDisplay:
    return HookDisplay(hook=hook, display=display)


def entries_before(
    request: RequestEntry, entries: Mapping[str, Entry], until: str = ""
) -> list[Entry]:
    """Return the entries written between the previous answer, or the entry `until`, and a request.
    No other entries are read."""
    return _walk_back(request.parent, entries, until)


def entries_behind(leaf: str, entries: Mapping[str, Entry]) -> list[Entry]:
    """Return the entries written after the last answer on the path to `leaf`."""
    return _walk_back(leaf, entries, "")


def _walk_back(start: str | None, entries: Mapping[str, Entry], until: str) -> list[Entry]:
    run: list[Entry] = []
    place = start or ""
    # The entry where the path ends is not read: it may be far away.
    while place != until and (entry := entries.get(place)) is not None:
        if isinstance(entry, RequestEntry | ReplyEntry | SessionEntry):
            break
        run.append(entry)
        place = entry.parent or ""
    return run[::-1]


def displays_of_request(request: RequestEntry, journal: Journal) -> tuple[HookDisplay, ...]:
    """Return the displays of a request: for changes after the previous answer and, if it is the
    last request of the active path, after its own answer."""
    shown = find_displays(entries_before(request, journal.entries))
    behind = _walk_back(journal.leaf, journal.entries, "")
    last = journal.entries.get((behind[0].parent if behind else journal.leaf) or "")
    if isinstance(last, ReplyEntry) and last.request == request.id:
        shown += find_displays(behind)
    return shown
