"""Markdown for a terminal, and which of its blocks are finished while it still arrives.

Laws: no part of the text is left out, so HTML is text and addresses are shown. A block is finished
once another one has begun below it on a complete line.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.markdown import Heading, Markdown
from rich.text import Text

from lamina.apps.cli.screen import Screen, ScreenLine
from lamina.apps.cli.terminal_text import visible

# Lines as the parser counts them; `splitlines` splits at more characters.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# The terminal's own colours, which are readable on any background.
CODE_THEME = "ansi_dark"


class _Heading(Heading):
    """A left-aligned heading."""

    def __rich_console__(self, console: Any, options: Any) -> Any:
        text = self.text.copy()
        text.justify = "left"
        yield text


class _Document(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.markup = text
        self.parsed = _parse(text)
        for token in _all(self.parsed):
            # In a chat a new line is a line break.
            if token.type == "softbreak":
                token.type = "hardbreak"


def _parse(text: str) -> list[Token]:
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
    # A definition is not drawn, and would be left out, so it is treated as text.
    return parser.disable("reference").parse(text)


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def _starts(text: str) -> list[int]:
    """The lines where the blocks of a text begin."""
    return [token.map[0] for token in _parse(text) if token.level == 0 and token.map]


def split_blocks(text: str) -> list[str]:
    """The blocks of a text; together they are the text."""
    lines = _LINE.findall(text)
    starts = sorted(set(_starts(text)))
    if len(starts) < 2:
        return [text] if text.strip() else []
    edges = [0, *starts[1:], len(lines)]
    return ["".join(lines[begin:end]) for begin, end in pairwise(edges)]


def split_finished(text: str) -> tuple[str, str]:
    """Split a growing text into the part that will not change any more, and the rest."""
    complete = text[: text.rfind("\n") + 1]
    *blocks, _ = split_blocks(complete) or [""]
    head = "".join(blocks)
    return head, text[len(head) :]


def draw_markdown(screen: Screen, text: str) -> list[ScreenLine]:
    """Render a text to lines, with one blank line between blocks."""
    lines: list[ScreenLine] = []
    for block in split_blocks(visible(text)):
        block_lines = screen.draw(_Document(block)) or screen.draw(Text(block))
        lines += [ScreenLine(""), *block_lines] if lines and block_lines else block_lines
    return lines
