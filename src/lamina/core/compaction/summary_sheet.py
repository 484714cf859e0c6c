"""Builds a summary: the notice above it, its sections, filled while there is room, and quotations
from the conversation.

Laws: never over the limit; the sections have a fixed order, whatever was added first. A quotation
cannot pass for one of the summary's own lines: it is either a single line after one of our marks,
or every one of its lines starts with `> `.
"""

import re
from collections.abc import Callable, Sequence

from lamina.core.text import escape_content
from lamina.core.text.headers import EARLIER
from lamina.core.values.message import Image, Message, Text

Count = Callable[[str], int]

LINE_WIDTH = 160
GAP = "[... shortened ...]"


def first_line(text: str, *, headings: bool = True) -> str:
    """Return the first line with content, shortened. Without `headings`, a heading is used only if
    there is nothing else."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if any(map(str.isalnum, line))] or lines
    plain = telling if headings else [line for line in telling if not line.startswith("#")]
    return flatten(next(iter(plain or telling), ""))


def flatten(text: str, width: int = LINE_WIDTH) -> str:
    """Return `text` on one line, without leading marks of a heading or quotation."""
    line = escape_content(" ".join(text.split()).lstrip("#> "))
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def typed_text(message: Message) -> str:
    """Return the texts of a message, each on its own lines."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


def question_line(message: Message) -> str:
    """Return the beginning of a question."""
    has_image = any(isinstance(block, Image) for block in message.blocks)
    return first_line(typed_text(message)) or ("(an image)" if has_image else "")


def quote(text: str, *, flat: bool = False) -> str:
    """Return every line after `> `. With `flat`, quoted lines are not quoted deeper."""
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    if flat:
        lines = [line[1:].removeprefix(" ") if line.startswith(">") else line for line in lines]
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def quote_within(text: str, limit: int, count: Count, *, flat: bool = False) -> str:
    """Return `text` quoted in at most `limit` tokens; if necessary its middle is removed and the
    gap marked. Empty if nothing of it fits."""
    quotation = quote(text, flat=flat)
    size = count(quotation)
    if size <= limit:
        return quotation
    share = limit
    while share > 0:
        half = len(text) * share // size // 2
        if half <= 0:
            break
        head, tail = _whole_lines(text[:half], text[-half:])
        quotation = quote(f"{head}\n{GAP}\n{tail}", flat=flat)
        if count(quotation) <= limit:
            return quotation
        share -= max(1, share // 8)
    return ""


def _whole_lines(head: str, tail: str) -> tuple[str, str]:
    """Return both without the line that was cut through, if that costs at most half of them."""
    end, start = head.rfind("\n"), tail.find("\n")
    head = head[:end] if end * 2 >= len(head) else head
    return head.rstrip(), (tail[start:] if 0 <= start * 2 <= len(tail) else tail).lstrip("\r\n")


def shorten(text: str, limit: int, count: Count) -> str:
    """Return `text` within `limit` tokens; if necessary its middle is removed and the gap
    marked."""
    share = limit
    while (size := count(text)) > limit and share > 0:
        half = len(text) * share // size // 2
        head, tail = _whole_lines(text[:half], text[len(text) - half :])
        shorter = f"{head}\n{GAP}\n{tail}"
        if count(shorter) <= limit:
            return shorter
        share -= max(1, share // 8)
    return text if size <= limit else ""


NOTICE = EARLIER.text
# Includes other wordings: those of earlier versions, and of models that quote it from memory.
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
# If the room is this many times that of the bare headings, empty sections are shown as well.
ROOMY = 4


def has_notice(text: str) -> bool:
    """Return whether a text starts with the notice that it replaces earlier messages."""
    return _NOTICE.match(text) is not None


def without_notice(text: str) -> str:
    """Return a summary without its notice line."""
    return _NOTICE.sub("", text, count=1).strip() if has_notice(text) else text.strip()


class SummarySheet:
    """Entries in order of worth; each is one line, or a line with a quotation below it."""

    def __init__(self, limit: int, count: Count) -> None:
        self._limit = limit
        self._count = count
        self._entries: list[tuple[str, tuple[int, int], str]] = []
        self._batches = 0
        bare = count(_join({}, empty=True))
        self._empty = bare * ROOMY <= limit
        self._room = limit - (bare if self._empty else count(NOTICE))

    def add(self, section: str, entries: Sequence[str], *, latest_first: bool = False) -> None:
        """Add entries until one does not fit. They stay in the given order; with `latest_first` the
        last ones get the room first."""
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
        """Return the text; the least valuable entries are dropped if the joined parts exceed the
        limit."""
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
