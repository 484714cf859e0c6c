"""A summary's sections, filled while there is room.

Laws: never over the limit; the sections stand in one order, whatever came first in line.
"""

import re
from collections.abc import Sequence

from lamina.core.compaction.quotes import Count
from lamina.core.text.headers import EARLIER

NOTICE = EARLIER.text
# In other words, too: those of earlier versions, and of models that quote it from memory.
_NOTICE = re.compile(rf"{re.escape(EARLIER.opening)}[^\]\n]*\]")
NONE = "(none found)"
PROGRESS = "## Progress"
SECTIONS = {
    "goal": "## Goal",
    "constraints": "## Constraints & Preferences",
    "done": "### Done",
    "progress": "### In Progress",
    "blocked": "### Blocked",
    "decisions": "## Key Decisions",
    "next": "## Next Steps",
    "context": "## Critical Context",
    "read": "## Files read",
    "modified": "## Files modified",
}
# Where there is room for this many times the bare headings, empty sections are shown as well.
ROOMY = 4


def has_notice(text: str) -> bool:
    """Whether a text begins by saying that it stands for earlier messages."""
    return _NOTICE.match(text) is not None


def without_notice(text: str) -> str:
    """A summary without the line that says what it is."""
    return _NOTICE.sub("", text, count=1).strip() if has_notice(text) else text.strip()


class SummarySheet:
    """Entries in order of worth; each is one line, or a line and a quotation under it."""

    def __init__(self, limit: int, count: Count) -> None:
        self._limit = limit
        self._count = count
        self._entries: list[tuple[str, tuple[int, int], str]] = []
        self._batches = 0
        bare = count(_join({}, empty=True))
        self._empty = bare * ROOMY <= limit
        self._room = limit - (bare if self._empty else count(NOTICE))

    def add(self, section: str, entries: Sequence[str], *, latest_first: bool = False) -> None:
        """Takes entries until one does not fit. They stand in the order they are given in, with
        `latest_first` those that come last are the first in line for the room."""
        self._batches += 1
        places = range(len(entries))
        for place in reversed(places) if latest_first else places:
            heading = 0 if self._empty else self._heading_cost(section)
            cost = self._count(entries[place]) + 1 + heading
            if cost > self._room:
                break
            self._room -= cost
            self._entries.append((section, (self._batches, place), entries[place]))

    def _heading_cost(self, section: str) -> int:
        if any(other == section for other, _, _ in self._entries):
            return 0
        above = self._count(PROGRESS) + 2 if SECTIONS[section].startswith("###") else 0
        return above + self._count(SECTIONS[section]) + 2

    def render(self) -> str:
        """The text; what was worth least goes if the parts together take more than one by one."""
        entries, empty = list(self._entries), self._empty
        while self._count(text := _join(_by_section(entries), empty=empty)) > self._limit:
            if empty:
                empty = False
            elif entries:
                entries.pop()
            else:
                return ""
        return text


def _by_section(entries: Sequence[tuple[str, tuple[int, int], str]]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for section, _, entry in sorted(entries, key=lambda entry: entry[1]):
        sections.setdefault(section, []).append(entry)
    return sections


def _join(sections: dict[str, list[str]], *, empty: bool) -> str:
    parts = [NOTICE]
    above = ""
    for section, heading in SECTIONS.items():
        entries = sections.get(section) or ([NONE] if empty else [])
        if not entries:
            continue
        if heading.startswith("###") and above != PROGRESS:
            parts.append(PROGRESS)
        above = PROGRESS if heading.startswith("###") else heading
        parts.append("\n".join((heading, *entries)))
    return "\n\n".join(parts)
