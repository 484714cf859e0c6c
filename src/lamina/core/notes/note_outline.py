"""Finds the outline of a note by line: its headings, code blocks and list items.

Laws: lines end only at `\n`. Code blocks contain neither headings nor items.
`lamina.core.text.pictures.mask_code` determines what is code. Time is proportional to the length of
the note.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from lamina.core.text.pictures import Fence, find_fence
from lamina.core.values.note import ListItem

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|\r?\Z)")
_CLOSING = re.compile(r"(?:\A|[ \t])#+\Z")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?\Z")
# Beginnings of lines that are not plain text: quotes, lists, tables, headings, definitions.
_NO_TEXT = re.compile(r" {4}|\s*(?:[>|#]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|\Z)")


class Heading(Struct, frozen=True, gc=False):
    """A heading on the lines from `line` (counted from 0) to before `end`."""

    line: int
    end: int
    level: int
    text: str


class CodeBlock(Struct, frozen=True, gc=False):
    """A fenced block from its first line to before `end`; `info` is the text after the fence.
    `is_closed` is False if there is no closing fence."""

    line: int
    end: int
    info: str
    is_closed: bool


class Outline(Struct, frozen=True):
    headings: list[Heading]
    blocks: list[CodeBlock]


def read_outline(lines: list[str]) -> Outline:
    """Return the outline of a text split at `\\n`, without its frontmatter."""
    headings: list[Heading] = []
    blocks: list[CodeBlock] = []
    fence: Fence | None = None
    begin = 0
    for at, line in enumerate(lines):
        if fence:
            is_inside = fence.holds(line)
            is_end = is_inside and fence.is_closed_by(line)
            if not is_inside or is_end:
                blocks.append(CodeBlock(begin, at + is_end, fence.info, is_end))
                fence = None
            if is_inside:
                continue
        if not line:
            continue
        # Single characters first: searching for them is far faster than for three.
        if ("`" in line or "~" in line) and (fence := find_fence(line)):
            begin = at
        elif "#" in line:
            if match := _ATX.match(line):
                text = line[match.end() :].strip()
                text = _CLOSING.sub("", text).rstrip() if text.endswith("#") else text
                headings.append(Heading(at, at + 1, len(match[1]), text))
        elif line[0] in "=- " and at and _UNDERLINE.match(line) and _is_text(lines, at - 1):
            # A block or heading that ends just above cannot be underlined.
            above = max(headings[-1].end if headings else 0, blocks[-1].end if blocks else 0)
            if at - 1 >= above:
                level = 1 if "=" in line else 2
                headings.append(Heading(at - 1, at + 1, level, lines[at - 1].strip()))
    if fence:
        blocks.append(CodeBlock(begin, len(lines), fence.info, False))
    return Outline(headings, blocks)


def _is_text(lines: list[str], at: int) -> bool:
    """Return whether a line forms a paragraph by itself. Below a longer paragraph, an underline is
    a rule."""
    if _NO_TEXT.match(lines[at]):
        return False
    return not at or not lines[at - 1].strip() or bool(_ATX.match(lines[at - 1]))


MAX_ITEMS = 20_000
MAX_TEXT = 10_000
# Items indented further than this count as siblings.
MAX_DEEP = 40
_ITEM = re.compile(r"(?P<lead>[\s>]*+)(?P<marker>[-*+]|[0-9]{1,9}[.)])(?=[ \t]|\r?\Z)[ \t]*+")
_TASK = re.compile(r"\[(.)\](?=\s|\Z)[ \t]*+")
_RULE = re.compile(r"[\s>]*([-*_])[ \t]*(?:\1[ \t]*){2,}\r?\Z")
_BLOCK_NAME = re.compile(r"(?:\A|\s)\^([A-Za-z0-9-]+)\s*\Z")
# The indentation of an item relative to its parent.
_STEP = 2
# Text outside lists that is indented further is code.
_CODE_INDENT = 4


def find_items(
    lines: Sequence[str], blocks: Sequence[CodeBlock], headings: Sequence[Heading], first_line: int
) -> tuple[ListItem, ...]:
    """Return the list items in a text without frontmatter; `first_line` is the number of its first
    line in the note, counted from 1."""
    finder = _ItemFinder(headings, first_line - 1)
    begin = 0
    for block in blocks:
        finder.read(lines, begin, block.line)
        begin = block.end
    finder.read(lines, begin, len(lines))
    return finder.finish()


class _ItemFinder:
    def __init__(self, headings: Sequence[Heading], offset: int) -> None:
        self._headings = headings
        self._heading = 0
        self._offset = offset
        self._items: list[ListItem] = []
        # The open items from the outside in: indentation and line.
        self._above: list[tuple[int, int]] = []
        self._open: tuple[int, int, str, str | None, list[str]] | None = None

    def read(self, lines: Sequence[str], start: int, end: int) -> None:
        for at in range(start, end):
            line = lines[at]
            match = _ITEM.match(line)
            if match and not _RULE.match(line):
                self._begin(at, match, line)
            elif not line.strip(" \t\r>"):
                self._close()
            elif line.lstrip(" \t>").startswith("#"):
                self._close()
                self._above.clear()
            elif self._open is not None:
                self._open[4].append(line.lstrip("> \t").rstrip())
            elif not line[0].isspace():
                self._above.clear()
        self._close()

    def finish(self) -> tuple[ListItem, ...]:
        return tuple(self._items)

    def _begin(self, at: int, match: re.Match[str], line: str) -> None:
        self._close()
        indent = len(match["lead"].replace(">", "").expandtabs(4))
        while self._above and (indent < self._above[-1][0] + _STEP or len(self._above) >= MAX_DEEP):
            self._above.pop()
        if not self._above and indent >= _CODE_INDENT and not self._items:
            return
        if len(self._items) >= MAX_ITEMS:
            return
        parent = self._above[-1][1] if self._above else -1
        self._above.append((indent, at + self._offset))
        task = _TASK.match(line, match.end())
        text = line[task.end() if task else match.end() :].strip()
        self._open = (at, parent, match["marker"], task[1] if task else None, [text])

    def _close(self) -> None:
        if self._open is None:
            return
        at, parent, marker, status, texts = self._open
        self._open = None
        text = "\n".join(texts)[:MAX_TEXT]
        block = _BLOCK_NAME.search(text) if "^" in text else None
        item = ListItem(
            at + self._offset, len(texts), parent, marker, status, text,
            self._find_heading(at), block[1] if block else "",
        )  # fmt: skip
        self._items.append(item)

    def _find_heading(self, at: int) -> str:
        """Return the text of the last heading above a line; lines must be passed in ascending
        order."""
        while self._heading < len(self._headings) and self._headings[self._heading].line < at:
            self._heading += 1
        return self._headings[self._heading - 1].text if self._heading else ""
