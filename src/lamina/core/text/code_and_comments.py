"""Locates and masks the code and the comments of a Markdown text.

Laws: time is proportional to the length of the text, whatever it contains. Masked text keeps its
length and its newlines. Comments, `%% so %%` or `<!-- so -->`, may span several lines; one that is
never closed is not a comment.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from lamina.core.text.characters import splice

# Prefixes allowed before a fence: quote and list markers, any indentation.
_FENCE = re.compile(
    r"(?P<lead>(?:[ \t]*+(?:>|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t])))*+)[ \t]*+"
    r"(?P<fence>`{3,}+(?=[^`]*\Z)|~{3,}+)"
)
_FENCE_END = re.compile(r"[ \t>]*+(?P<fence>`{3,}+|~{3,}+)\s*+\Z")
# A code span does not extend across any of these.
_BLANK = re.compile(r"[\s>]*+\Z")
_BLOCK_START = re.compile(r"[ \t>]*+(?:[-*+][ \t]|[0-9]{1,9}[.)][ \t]|#{1,6}[ \t]|\[\^)")
_HEADING = re.compile(r"[ \t>]*+#{1,6}[ \t]")
_TICKS = re.compile(r"`+")
_NOT_NEWLINE = re.compile(r"[^\n]")


class Fence(Struct, frozen=True):
    """The opening of a code block: its backticks or tildes, the text after them, whether it is in a
    quote, and the minimum indentation of its lines."""

    mark: str
    info: str
    is_quoted: bool
    indent: int

    def holds(self, line: str) -> bool:
        """Return whether a following line is in the block; a line that leaves its quote or list is
        not."""
        if self.is_quoted:
            return line.lstrip().startswith(">")
        if not self.indent:
            return True
        text = line.lstrip()
        return not text or len(line[: len(line) - len(text)].expandtabs(4)) >= self.indent

    def is_closed_by(self, line: str) -> bool:
        """Return whether a line in the block is its last."""
        end = _FENCE_END.match(line) if self.mark in line else None
        return end is not None and end["fence"].startswith(self.mark)


def find_fence(line: str) -> Fence | None:
    """Return the opening of a code block on a line, if there is one."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if not match:
        return None
    lead, column = match["lead"], len(line[: match.start("fence")].expandtabs(4))
    # Outside a list, a fence is indented by three spaces at most.
    indent = column if lead else max(0, column - 3)
    info = line[match.end() :].strip()
    return Fence(mark=match["fence"], info=info, is_quoted=">" in lead, indent=indent)


def mask_code(markdown: str) -> tuple[str, str]:
    """Return `markdown` with NUL for every character of its code (newlines and length stay), and
    the fence that is still open at its end for any text appended later, if any."""
    pieces: list[str] = []
    block: list[str] = []  # the lines a code span may reach over
    fence: Fence | None = None
    for start, end in line_spans(markdown):
        line = markdown[start:end]
        if fence and fence.holds(line):
            pieces.append(_blank_out(line))
            fence = None if fence.is_closed_by(line) else fence
            continue
        fence = None
        if not block and "`" not in line and "~~~" not in line:
            pieces.append(line)  # no code begins here, as on most lines
        elif fence := find_fence(line):
            pieces += [_mask_spans("".join(block)), _blank_out(line)]
            block.clear()
        else:
            if _BLANK.match(line) or _BLOCK_START.match(line):
                pieces.append(_mask_spans("".join(block)))
                block.clear()
            block.append(line)
            if _HEADING.match(line):
                pieces.append(_mask_spans("".join(block)))
                block.clear()
    pieces.append(_mask_spans("".join(block)))
    # A block in a quote or a list ends with it: a closing line after that would open another.
    return "".join(pieces), fence.mark if fence and fence.holds("below") else ""


def line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line, including its line feed."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end
        start = end


def _mask_spans(block: str) -> str:
    """Mask code spans: a run of backticks opens one, and the next run of the same length ends
    it."""
    if "`" not in block:
        return block
    runs = [match.span() for match in _TICKS.finditer(block)]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    edits: list[tuple[int, int, str]] = []
    index = 0
    while index < len(runs):
        start, end = runs[index]
        if is_escaped(block, start):
            start += 1
        same = by_length.get(end - start, [])
        after = bisect_right(same, index)
        if after < len(same):
            index = same[after]
            end = runs[index][1]
            edits.append((start, end, _blank_out(block[start:end])))
        index += 1
    return splice(block, edits)


def is_escaped(text: str, at: int) -> bool:
    """Return whether an odd number of backslashes precedes `at`."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


def _blank_out(code: str) -> str:
    if code.find("\n") == len(code) - 1 and code:
        return "\0" * (len(code) - 1) + "\n"
    return _NOT_NEWLINE.sub("\0", code)


_OPENING = re.compile(r"%%|<!--")
_CLOSING = {"%%": "%%", "<!--": "-->"}


def mask_comments(text: str) -> str:
    """Return `text` with NUL for every character of its comments; newlines and length stay. Mask
    code first, since comments inside it do not count."""
    edits: list[tuple[int, int, str]] = []
    # Searched for once to the end, and not again.
    unclosed: set[str] = set()
    position = 0
    while opening := _OPENING.search(text, position):
        mark = opening[0]
        end = -1 if mark in unclosed else text.find(_CLOSING[mark], opening.end())
        if end < 0:
            unclosed.add(mark)
            position = opening.end()
            continue
        position = end + len(_CLOSING[mark])
        comment = text[opening.start() : position]
        edits.append((opening.start(), position, _NOT_NEWLINE.sub("\0", comment)))
    return splice(text, edits) if edits else text
