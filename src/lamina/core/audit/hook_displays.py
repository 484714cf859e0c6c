"""What hooks and applications show people about the patches they made.

Law: it is read from the journal, so a person sees the same while a turn runs and long after it.
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

# Patches of the engine itself; their effects are reported elsewhere.
_OWN = "lamina."


def find_displays(entries: Iterable[Entry]) -> tuple[HookDisplay, ...]:
    """Return the displays of a run of entries, in order."""
    shown: list[HookDisplay] = []
    for entry in entries:
        if isinstance(entry, TransformEntry) and entry.patch.display:
            if not entry.transformer.startswith(_OWN):
                shown.append(HookDisplay(hook=entry.transformer, display=entry.patch.display))
        elif isinstance(entry, EphemeralEntry):
            # Which of several hooks made which display was not always recorded.
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
    """Return what was written since the answer before a request, or since the entry `until`. Only
    these entries are read."""
    return _walk_back(request.parent, entries, until)


def entries_behind(leaf: str, entries: Mapping[str, Entry]) -> list[Entry]:
    """Return what was written after the last answer on the path to `leaf`."""
    return _walk_back(leaf, entries, "")


def _walk_back(start: str | None, entries: Mapping[str, Entry], until: str) -> list[Entry]:
    run: list[Entry] = []
    place = start or ""
    # The entry where it ends is not read: it may be far away.
    while place != until and (entry := entries.get(place)) is not None:
        if isinstance(entry, RequestEntry | ReplyEntry | SessionEntry):
            break
        run.append(entry)
        place = entry.parent or ""
    return run[::-1]


def displays_of_request(request: RequestEntry, journal: Journal) -> tuple[HookDisplay, ...]:
    """Return the displays of a request: for what changed since the answer before it, and if it is
    the last one of the active path, also since its own."""
    shown = find_displays(entries_before(request, journal.entries))
    behind = _walk_back(journal.leaf, journal.entries, "")
    last = journal.entries.get((behind[0].parent if behind else journal.leaf) or "")
    if isinstance(last, ReplyEntry) and last.request == request.id:
        shown += find_displays(behind)
    return shown
