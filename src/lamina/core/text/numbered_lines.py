"""The lines of a text, with numbers that stay.

Laws: joined again, the lines are the text. One that is too long is broken, never inside a
character, so that a text without line breaks can be read in parts, too.
"""

import re
import unicodedata

from msgspec import Struct

from lamina.errors import UsageError

# Lines are broken after this many characters.
WIDTH = 400
_RANGE = re.compile(r"\s*(\d{0,9})\s*(?:(-|:|\.\.)\s*(\d{0,9})\s*)?", re.ASCII)
_JOINER = "\u200d"
# How far a break may go back so as not to part what belongs together.
_BACK = 16


class NumberedLine(Struct, frozen=True, gc=False):
    """A line, or a part of a long one: all parts but the first one continue it."""

    text: str
    continues: bool = False


class LineRange(Struct, frozen=True):
    """Lines from `first` to `last`, counted from 1, both included."""

    first: int
    last: int


def number_lines(text: str) -> list[NumberedLine]:
    """The lines of a text, in order. There is always one."""
    lines: list[NumberedLine] = []
    for line in text.split("\n"):
        start = 0
        while len(line) - start > WIDTH:
            end = _break_point(line, start + WIDTH)
            lines.append(NumberedLine(line[start:end], start > 0))
            start = end
        lines.append(NumberedLine(line[start:], start > 0))
    return lines


def _break_point(line: str, latest: int) -> int:
    """Where to break a line, so that no accent is parted from its letter and no part of an emoji
    from the others."""
    for at in range(latest, latest - _BACK, -1):
        is_joined = _JOINER in line[at - 1 : at + 1]
        if not is_joined and not unicodedata.category(line[at]).startswith("M"):
            return at
    return latest


def line_number(text: str, at: int) -> int:
    """The number of the line that has the character at this place."""
    return len(number_lines(text[: at + 1]))


def join_lines(lines: list[NumberedLine]) -> str:
    """The text of the lines."""
    return "".join(
        line.text if line.continues or not number else f"\n{line.text}"
        for number, line in enumerate(lines)
    )


def read_range(words: str, total: int) -> LineRange:
    """The lines that `words` name: `120-180`, `120`, `120-`, or `-50` for the last 50; all of them,
    if it is blank.

    Raises:
        UsageError: it names none that there are.
    """
    if not words.strip():
        return LineRange(1, total)
    match = _RANGE.fullmatch(words)
    first, dash, last = match.groups("") if match else ("", "", "")
    if not (first or last) or (last and not int(last)):
        known = '"120-180", "120-" or "-50" for the last 50'
        raise UsageError(f"lines is {known}, not {words[:40]!r}")
    if not first:
        return LineRange(max(1, total - int(last) + 1), total)
    begin = max(1, int(first))
    end = int(last) if last else total if dash else begin
    if begin > total or end < begin:
        raise UsageError(f"there are no lines {words.strip()[:40]}: they have numbers 1 to {total}")
    return LineRange(begin, min(end, total))
