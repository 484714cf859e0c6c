"""What hooks and applications want people to be shown of the patches they made.

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

# Patches of the engine itself; what they did is told otherwise.
_OWN = "lamina."


def find_displays(entries: Iterable[Entry]) -> tuple[HookDisplay, ...]:
    """What is to be shown of a run of entries, in order."""
    shown: list[HookDisplay] = []
    for entry in entries:
        if isinstance(entry, TransformEntry) and entry.patch.display:
            if not entry.transformer.startswith(_OWN):
                shown.append(HookDisplay(hook=entry.transformer, display=entry.patch.display))
        elif isinstance(entry, EphemeralEntry):
            # Which of several hooks meant which display was not always written down.
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
    """What was written since the answer before a request, or since the entry `until`. As many
    entries as these are, and no more, are looked at."""
    return _walk_back(request.parent, entries, until)


def entries_behind(leaf: str, entries: Mapping[str, Entry]) -> list[Entry]:
    """What was written behind the last answer on the path to `leaf`."""
    return _walk_back(leaf, entries, "")


def _walk_back(start: str | None, entries: Mapping[str, Entry], until: str) -> list[Entry]:
    run: list[Entry] = []
    place = start or ""
    # What it ends at is not looked at: it may be far away.
    while place != until and (entry := entries.get(place)) is not None:
        if isinstance(entry, RequestEntry | ReplyEntry | SessionEntry):
            break
        run.append(entry)
        place = entry.parent or ""
    return run[::-1]


def displays_of_request(request: RequestEntry, journal: Journal) -> tuple[HookDisplay, ...]:
    """What is to be shown of a request: what was changed since the answer before it, and if it is
    the last one of the active path what was changed since its own."""
    shown = find_displays(entries_before(request, journal.entries))
    behind = _walk_back(journal.leaf, journal.entries, "")
    last = journal.entries.get((behind[0].parent if behind else journal.leaf) or "")
    if isinstance(last, ReplyEntry) and last.request == request.id:
        shown += find_displays(behind)
    return shown
