"""Looking for a text in numbered lines.

Law: the time it takes grows with the text and no faster, whatever is looked for: texts are found as
they stand, in upper or lower case; there are no regular expressions.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lamina.core.text.numbered_lines import NumberedLine
from lamina.errors import UsageError

LONGEST = 400
# What makes a text look like a regular expression.
_PATTERN = re.compile(r"[\\^$+?\[\](){}]|\.\*")


class LineMatches(Struct, frozen=True):
    """The numbers of the lines that have a text, from 1; `loose` says that they have its words, but
    not in a row."""

    numbers: tuple[int, ...] = ()
    loose: bool = False


def find_lines(lines: Sequence[NumberedLine], text: str) -> LineMatches:
    """The lines that have `text` as it stands. If none has: those that have one of the texts that
    `|` parts, with anything for every `*`; if none has that, those with all of its words.

    Raises:
        UsageError: it is blank, too long, or more than one line.
    """
    if not text.strip():
        raise UsageError("find is blank: say what to look for, or leave it out")
    if "\n" in text or len(text) > LONGEST:
        raise UsageError(f"find is a text of one line and at most {LONGEST} characters")
    sought = text.lower()
    numbers = tuple(_having(lines, [[sought]]))
    numbers = numbers or tuple(_having(lines, [*filter(None, map(_pieces, sought.split("|")))]))
    if numbers or len(words := sought.split()) < 2:
        return LineMatches(numbers)
    numbers = tuple(_having(lines, [words], in_order=False))
    return LineMatches(numbers, loose=bool(numbers))


def _pieces(part: str) -> list[str]:
    """What stands between the `*` of a text; what every line has, if nothing else is in it."""
    if not part.replace("*", "").strip():
        return [""] if "*" in part else []
    return [piece for piece in part.split("*") if piece]


def looks_like_pattern(text: str) -> bool:
    """Whether somebody may have meant a regular expression."""
    return _PATTERN.search(text) is not None


def _having(
    lines: Sequence[NumberedLine], choices: Sequence[Sequence[str]], *, in_order: bool = True
) -> Iterator[int]:
    """The numbers of the lines that have all pieces of one of the choices. What was one long line
    is looked through as one; of its parts those count in which the first piece begins."""
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end].continues:
            end += 1
        whole = "".join(line.text for line in lines[start:end]).lower()
        pieces = next((c for c in choices if _has(whole, c, in_order=in_order)), None)
        if pieces is not None:
            yield from _parts_with(lines, range(start, end), pieces[0])
        start = end


def _has(line: str, pieces: Sequence[str], *, in_order: bool) -> bool:
    if not in_order:
        return all(piece in line for piece in pieces)
    at = 0
    for piece in pieces:
        if (found := line.find(piece, at)) < 0:
            return False
        at = found + len(piece)
    return True


def _parts_with(lines: Sequence[NumberedLine], parts: range, piece: str) -> list[int]:
    if len(parts) == 1:
        return [parts.start + 1]
    texts = ((at, _with_overlap(lines, at, parts.stop, len(piece) - 1)) for at in parts)
    return [at + 1 for at, text in texts if piece in text] or [parts.start + 1]


def _with_overlap(lines: Sequence[NumberedLine], at: int, stop: int, more: int) -> str:
    """A part, and as much of what follows it as a piece that begins in it can reach."""
    after = ""
    for line in lines[at + 1 : stop]:
        if len(after) >= more:
            break
        after += line.text
    return (lines[at].text + after[:more]).lower()
