"""The items of a note's lists, tasks among them, with what stands above each.

Law: time grows with the length of the note. What stands in code blocks is no item.
"""

import re
from collections.abc import Sequence

from lamina.core.notes.outline import CodeBlock, Heading
from lamina.core.values.note import ListItem

MOST_ITEMS = 20_000
MOST_TEXT = 10_000
# Items further in count as siblings.
MOST_DEEP = 40
_ITEM = re.compile(r"(?P<lead>[\s>]*+)(?P<marker>[-*+]|[0-9]{1,9}[.)])(?=[ \t]|\r?\Z)[ \t]*+")
_TASK = re.compile(r"\[(.)\](?=\s|\Z)[ \t]*+")
_RULE = re.compile(r"[\s>]*([-*_])[ \t]*(?:\1[ \t]*){2,}\r?\Z")
_BLOCK_NAME = re.compile(r"(?:\A|\s)\^([A-Za-z0-9-]+)\s*\Z")
# How far an item is indented below the one that it belongs to.
_STEP = 2
# What is indented further and not in a list is code.
_CODE_INDENT = 4


def find_items(
    lines: Sequence[str], blocks: Sequence[CodeBlock], headings: Sequence[Heading], first_line: int
) -> tuple[ListItem, ...]:
    """The items of a text without its frontmatter, whose first line is the `first_line` of the
    note, counted from 1."""
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
        while self._above and (
            indent < self._above[-1][0] + _STEP or len(self._above) >= MOST_DEEP
        ):
            self._above.pop()
        if not self._above and indent >= _CODE_INDENT and not self._items:
            return
        if len(self._items) >= MOST_ITEMS:
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
        text = "\n".join(texts)[:MOST_TEXT]
        block = _BLOCK_NAME.search(text) if "^" in text else None
        item = ListItem(
            at + self._offset, len(texts), parent, marker, status, text,
            self._find_heading(at), block[1] if block else "",
        )  # fmt: skip
        self._items.append(item)

    def _find_heading(self, at: int) -> str:
        """The text of the last heading above a line; lines only go on."""
        while self._heading < len(self._headings) and self._headings[self._heading].line < at:
            self._heading += 1
        return self._headings[self._heading - 1].text if self._heading else ""
