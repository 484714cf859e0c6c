"""Code fences of one message, and what keeps them from reaching into the next.

Law: only fences that stand by themselves count. One inside a list or a quotation ends with it, and
a line that would close it here would open another.
"""

import re
from typing import NamedTuple

_OPENS = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_CLOSES = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_LISTED = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?: {1,4}(?! )| |$)")


class FencePadding(NamedTuple):
    """What is put around a text: a fence opens at the beginning of a line, and is closed."""

    front: str = ""
    back: str = ""


# A single value, so that a comment can tell that it may leave it out.
NO_PADDING = FencePadding()


def fence_padding(mark: str, text: str) -> FencePadding:
    """What has to stand around `text`, which begins on the line of `mark`."""
    if "```" not in text and "~~~" not in text:
        return NO_PADDING
    front = "\n" if _OPENS.match(text.split("\n", 1)[0]) else ""
    closing = _closing_line(f"{mark}{front}{text}")
    if not front and not closing:
        return NO_PADDING
    return FencePadding(front, f"\n{closing}" if closing else "")


def _closing_line(text: str) -> str:
    """The line that closes the fence which `text` leaves open; empty if it leaves none."""
    indent = fence = ""
    # Where the text of a list's item begins: what is not left of that is in the item.
    inside = 0
    for line in text.split("\n"):
        if fence:
            match = _CLOSES.fullmatch(line)
            if match and match[1].startswith(fence):
                fence = ""
            continue
        plain = line.expandtabs(4)
        if not plain.strip() or (inside and len(plain) - len(plain.lstrip(" ")) >= inside):
            continue
        inside = 0
        if match := _OPENS.match(plain):
            indent, fence = match[1], match[2]
        elif match := _LISTED.match(plain):
            inside = match.end()
    return f"{indent}{fence}" if fence else ""
