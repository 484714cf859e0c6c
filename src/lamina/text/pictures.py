"""The pictures that a note refers to, and where its code stands.

Law: time grows with the length of the note, whatever it holds. What stands in code is not a
reference. Nothing is opened here: a reference is text until a workspace reads it.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from lamina.text.characters import splice

PICTURE_SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".ico", ".svg",
)  # fmt: skip

# What may stand before a fence: quote and list markers, any indentation.
_FENCE = re.compile(
    r"(?P<lead>(?:[ \t]*+(?:>|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t])))*+)[ \t]*+"
    r"(?P<fence>`{3,}+(?=[^`]*\Z)|~{3,}+)"
)
_FENCE_END = re.compile(r"[ \t>]*+(?P<fence>`{3,}+|~{3,}+)\s*+\Z")
# A code span does not reach over any of these.
_BLANK = re.compile(r"[\s>]*+\Z")
_BLOCK_START = re.compile(r"[ \t>]*+(?:[-*+][ \t]|[0-9]{1,9}[.)][ \t]|#{1,6}[ \t]|\[\^)")
_HEADING = re.compile(r"[ \t>]*+#{1,6}[ \t]")
_TICKS = re.compile(r"`+")
_NOT_NEWLINE = re.compile(r"[^\n]")

_MARK = re.compile(r"\\[^\n]|!\[\[[^\[\]\n]*+\]\]|!?\[|\]|\n[ \t\r]*+(?=\n)")
_GAP = re.compile(r"[ \t]*+(?:\r?\n[ \t]*+)?")
_BLANKS = re.compile(r"[ \t]*+")
_ANGLED = re.compile(r"<((?:[^<>\\\n]|\\[^\n])*+)>")
_TITLE = re.compile(
    r""""(?:[^"\\]|\\[\s\S])*+"|'(?:[^'\\]|\\[\s\S])*+'|\((?:[^()\\]|\\[\s\S])*+\)"""
)
_PLAIN = re.compile(r"[^\s()\\]++")
# Deeper nesting is not a destination; the limit also keeps the scan linear.
_MAX_DEPTH = 8

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_AFTER_SUFFIX = re.compile(
    rf"(?<=\.)({'|'.join(name[1:] for name in PICTURE_SUFFIXES)})[?#].*+", re.IGNORECASE | re.DOTALL
)
_URL = re.compile(r"//|[a-z][a-z0-9+.-]{1,30}+://", re.IGNORECASE)


class PictureRef(Struct, frozen=True, kw_only=True):
    """A picture that a note refers to: a decoded path, a data URI or a URL."""

    kind: Literal["path", "data", "url"]
    target: str


def find_pictures(markdown: str) -> tuple[PictureRef, ...]:
    """The pictures of a note in order, each once: `![[x.png]]` and `![alt](target "title")`."""
    references: list[tuple[int, PictureRef]] = []
    open_brackets: list[int] = []  # where an image's `![` stands; -1 for a plain bracket
    text, _ = mask_code(markdown)
    position = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        match mark[0]:
            case "![":
                open_brackets.append(mark.start())
            case "[":
                open_brackets.append(-1)
            case "]" if open_brackets:
                start = open_brackets.pop()
                if start < 0 or (inside := find_destination(text, position)) is None:
                    continue
                target_start, target_end, position = inside
                # A picture in another one's description is only words.
                while references and references[-1][0] > start:
                    references.pop()
                target = decode_target(markdown[target_start:target_end].strip())
                if target:
                    references.append((start, _refer(target)))
            case wiki if wiki.startswith("![["):
                name = markdown[mark.start() + 3 : mark.end() - 2].partition("|")[0]
                name = name.removesuffix("\\").partition("#")[0].strip()
                if name.lower().endswith(PICTURE_SUFFIXES):
                    references.append((mark.start(), _refer(name)))
            case gap if gap.startswith("\n"):
                open_brackets.clear()
    return tuple(dict.fromkeys(reference for _, reference in references))


def find_destination(text: str, at: int) -> tuple[int, int, int] | None:
    """Start and end of the target in `(target "title")` at `at`, and the end of it all."""
    if not text.startswith("(", at):
        return None
    start = _skip(_GAP, text, at + 1)
    if text.startswith("<", start):
        brackets = _ANGLED.match(text, start)
        end = _close(text, brackets.end()) if brackets else None
        return (*brackets.span(1), end) if brackets and end else None
    position, depth = start, 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
        elif character == "(":
            depth += 1
            position += 1
            if depth > _MAX_DEPTH:
                return None
        elif character == ")" and depth:
            depth -= 1
            position += 1
        elif character == ")" or character.isspace():
            # Blanks are not allowed in a bare target, but people write them.
            if depth == 0 and (end := _close(text, position)):
                return start, position, end
            if character in ")\n":
                return None
            position = _skip(_BLANKS, text, position + 1)
        else:
            position = _skip(_PLAIN, text, position)
    return None


def _close(text: str, at: int) -> int | None:
    """The end of an optional title and `)` at `at`; None if something else stands there."""
    position = _skip(_GAP, text, at)
    if position > at and (title := _TITLE.match(text, position)):
        position = _skip(_GAP, text, title.end())
    return position + 1 if text.startswith(")", position) else None


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def decode_target(target: str) -> str:
    """The target of a link as it is meant: without escapes, and a path without percent signs."""
    target = _ENTITY.sub(lambda match: html.unescape(match[0]), target)
    target = _ESCAPED.sub(r"\1", target)
    if _is_data(target) or _URL.match(target):
        return target
    return unquote(_AFTER_SUFFIX.sub(r"\1", target, count=1))


def _refer(target: str) -> PictureRef:
    if _is_data(target):
        return PictureRef(kind="data", target=target)
    return PictureRef(kind="url" if _URL.match(target) else "path", target=target)


def _is_data(target: str) -> bool:
    return target[:5].lower() == "data:"


class Fence(Struct, frozen=True):
    """The beginning of a block of code: its backticks or tildes, what stands behind them, whether
    it is in a quote, and how far lines have to be indented to be in it."""

    mark: str
    info: str
    is_quoted: bool
    indent: int

    def holds(self, line: str) -> bool:
        """Whether a line that follows is in the block; one that leaves its quote or list is not."""
        if self.is_quoted:
            return line.lstrip().startswith(">")
        if not self.indent:
            return True
        text = line.lstrip()
        return not text or len(line[: len(line) - len(text)].expandtabs(4)) >= self.indent

    def is_closed_by(self, line: str) -> bool:
        """Whether a line in the block is its last."""
        end = _FENCE_END.match(line) if self.mark in line else None
        return end is not None and end["fence"].startswith(self.mark)


def find_fence(line: str) -> Fence | None:
    """The beginning of a block of code that stands on a line, if one does."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if not match:
        return None
    lead, column = match["lead"], len(line[: match.start("fence")].expandtabs(4))
    # Without a list, a fence is indented by three blanks at most.
    indent = column if lead else max(0, column - 3)
    info = line[match.end() :].strip()
    return Fence(mark=match["fence"], info=info, is_quoted=">" in lead, indent=indent)


def mask_code(markdown: str) -> tuple[str, str]:
    """`markdown` with NUL for every character of its code (newlines stay, so does the length),
    and the fence that its end leaves open for whatever is written below, if any."""
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
    # A block in a quote or a list ends with it: a line that closed it would open another.
    return "".join(pieces), fence.mark if fence and fence.holds("below") else ""


def line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends, its line feed included."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end
        start = end


def _mask_spans(block: str) -> str:
    """A run of backticks opens a code span that ends at the next run of the same length."""
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
    """Whether an odd number of backslashes stands before `at`."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


def _blank_out(code: str) -> str:
    if code.find("\n") == len(code) - 1 and code:
        return "\0" * (len(code) - 1) + "\n"
    return _NOT_NEWLINE.sub("\0", code)
