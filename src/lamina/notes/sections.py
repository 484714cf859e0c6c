"""Parts of a note that a link can name: the lines under a heading, or a block with a mark.

Law: lines are counted from 1 and split at `\\n` only; there are no headings in code.
"""

import re
import unicodedata
from collections.abc import Iterable

from lamina.text.pictures import mask_code

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\r?")
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?")


def find_section(text: str, anchor: str) -> tuple[int, int] | None:
    """The first and last line of what `anchor` names: `Setup`, `Setup#Linux` (one below the other)
    or `^mark`; None if there is no such part."""
    plain_lines = mask_code(text)[0].split("\n")
    if anchor.startswith("^"):
        return _find_block(plain_lines, anchor[1:])
    headings = _find_headings(text.split("\n"), plain_lines)
    names = [_fold(part) for part in anchor.split("#") if part.strip()]
    trail: list[tuple[int, str]] = []
    for place, (line, level, title) in enumerate(headings):
        trail = [step for step in trail if step[0] < level] + [(level, _fold(title))]
        if names and _ends_with([name for _, name in trail], names):
            after = (start for start, rank, _ in headings[place + 1 :] if rank <= level)
            last = next(after, len(plain_lines) + 1) - 1
            return line, _without_blank_end(plain_lines, line, last)
    return None


def heading_names(headings: Iterable[str]) -> frozenset[str]:
    """The names of headings in links: as they read, and as web pages spell them."""
    names = [_fold(heading) for heading in headings]
    return frozenset(names) | {_make_slug(name) for name in names}


def is_heading_anchor(anchor: str, names: frozenset[str]) -> bool:
    """Whether an anchor names one of the headings. Marks of blocks are not checked."""
    last = anchor.rpartition("#")[2].strip()
    if not last or last.startswith("^"):
        return True
    return _fold(last) in names or _make_slug(_fold(last)) in names


def _make_slug(folded: str) -> str:
    return re.sub(r"[\W_]+", "-", folded).strip("-")


def _find_headings(lines: list[str], plain_lines: list[str]) -> list[tuple[int, int, str]]:
    """Headings by line, level and text."""
    headings = []
    for number, line in enumerate(plain_lines, 1):
        if match := _HEADING.fullmatch(line):
            # Code in a heading is part of its text.
            own = _HEADING.fullmatch(lines[number - 1])
            headings.append((number, len(match[1]), (own or match)[2] or ""))
        elif (
            number > 1
            and (under := _UNDERLINE.fullmatch(line))
            and plain_lines[number - 2].strip()
            and not _HEADING.fullmatch(plain_lines[number - 2])
        ):
            title = lines[number - 2].strip()
            headings.append((number - 1, 1 if under[1].startswith("=") else 2, title))
    return headings


def _find_block(plain_lines: list[str], mark: str) -> tuple[int, int] | None:
    """The paragraph that ends with `^mark`."""
    end = re.compile(rf"(?:^|.*\s)\^{re.escape(mark)}\s*", re.IGNORECASE)
    for number, line in enumerate(plain_lines, 1):
        if end.fullmatch(line):
            start = number
            while start > 1 and plain_lines[start - 2].strip():
                start -= 1
            return start, number
    return None


def _without_blank_end(lines: list[str], first: int, last: int) -> int:
    while last > first and not lines[last - 1].strip():
        last -= 1
    return last


def _ends_with(trail: list[str], names: list[str]) -> bool:
    """Whether the innermost heading has the last name, and the others are above it in order."""
    if trail[-1] != names[-1]:
        return False
    rest = iter(trail[:-1])
    return all(any(step == name for step in rest) for name in names[:-1])


def _fold(heading: str) -> str:
    """A heading as links spell it: without emphasis, case and extra blanks."""
    text = _MARKDOWN_LINK.sub(r"\1", unicodedata.normalize("NFC", heading))
    plain = re.sub(r"[`*_]|\[\[|\]\]", "", text)
    return " ".join(re.sub(r"[:#|^\\]+", " ", plain).split()).casefold()
