"""Blocks that one message leaves open, and what keeps them from reaching into the next.

Law: a CommonMark parser says what is open, for only it knows: a fence inside a list or a quotation
ends with it, one behind four spaces is none, and a line that closes nothing would open something.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
# What may reach beyond a blank line. All else ends there.
_LASTING = re.compile(r"```|~~~|<[!?]|<(?:script|pre|style|textarea)\b", re.IGNORECASE)
# How HTML that reaches beyond a blank line begins, and what ends it.
_HTML_ENDS = (
    (re.compile(r"<!--"), "-->"),
    (re.compile(r"<\?"), "?>"),
    (re.compile(r"<!\[CDATA\["), "]]>"),
    (re.compile(r"<![a-z]", re.IGNORECASE), ">"),
    (re.compile(r"<script", re.IGNORECASE), "</script>"),
    (re.compile(r"<pre", re.IGNORECASE), "</pre>"),
    (re.compile(r"<style", re.IGNORECASE), "</style>"),
    (re.compile(r"<textarea", re.IGNORECASE), "</textarea>"),
)
_NEXT = "\n\nnext"


class BlockPadding(NamedTuple):
    """What is put around a text: a fence opens at the beginning of a line, and what is left open is
    closed."""

    front: str = ""
    back: str = ""


# A single value, so that a comment can tell that it may leave it out.
NO_PADDING = BlockPadding()


def block_padding(mark: str, text: str) -> BlockPadding:
    """What has to stand around `text`, which begins on the line of `mark`."""
    if not _LASTING.search(text):
        return NO_PADDING
    front = "\n" if _FENCE.match(text.split("\n", 1)[0]) else ""
    closing = _closing_line(f"{mark}{front}{text}")
    if not front and not closing:
        return NO_PADDING
    return BlockPadding(front, f"\n{closing}" if closing else "")


def _closing_line(text: str) -> str:
    """The line that closes the block which `text` leaves open; empty if it leaves none."""
    block = _parser().parse(text + _NEXT)[-1]
    if block.type == "fence" and block.map:
        # The next message is inside of it.
        indent = _FENCE.match(text.split("\n")[block.map[0]])
        return f"{indent[1] if indent else ''}{block.markup}"
    if block.type == "html_block":
        begin = block.content.lstrip()
        return next((end for start, end in _HTML_ENDS if start.match(begin)), "")
    return ""


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
