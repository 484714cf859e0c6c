"""The headings and code blocks of a note, by line.

Laws: lines end at `\\n` and nowhere else. There are no headings in code blocks. Code is where
`lamina.core.text.pictures.mask_code` says it is.
"""

import re

from msgspec import Struct

from lamina.core.text.pictures import Fence, find_fence

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|\r?\Z)")
_CLOSING = re.compile(r"(?:\A|[ \t])#+\Z")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?\Z")
# Beginnings of lines that are not plain text: quotes, lists, tables, headings, definitions.
_NO_TEXT = re.compile(r" {4}|\s*(?:[>|#]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|\Z)")


class Heading(Struct, frozen=True, gc=False):
    """A heading on a line, counted from 0, that ends before the line `end`."""

    line: int
    end: int
    level: int
    text: str


class CodeBlock(Struct, frozen=True, gc=False):
    """A fenced block from its first line to before `end`; `info` is the text behind the fence.
    `is_closed` is False if no fence ends it."""

    line: int
    end: int
    info: str
    is_closed: bool


class Outline(Struct, frozen=True):
    headings: list[Heading]
    blocks: list[CodeBlock]


def read_outline(lines: list[str]) -> Outline:
    """The outline of a text that was split at `\\n`, without its frontmatter."""
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
    """Whether a line is a paragraph on its own. Below a longer one, the line is a rule."""
    if _NO_TEXT.match(lines[at]):
        return False
    return not at or not lines[at - 1].strip() or bool(_ATX.match(lines[at - 1]))
