"""Parts of a note that a link can name: the lines under a heading, or a block with a mark.

Law: lines are counted from 1 and split at `\\n` only; what stands in code is no heading.
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
    masked = mask_code(text)[0].split("\n")
    if anchor.startswith("^"):
        return _find_block(masked, anchor[1:])
    headings = _find_headings(text.split("\n"), masked)
    wanted = [_folded(part) for part in anchor.split("#") if part.strip()]
    trail: list[tuple[int, str]] = []
    for place, (line, level, title) in enumerate(headings):
        trail = [each for each in trail if each[0] < level] + [(level, _folded(title))]
        if wanted and _ends_with([name for _, name in trail], wanted):
            after = (start for start, rank, _ in headings[place + 1 :] if rank <= level)
            last = next(after, len(masked) + 1) - 1
            return line, _without_blank_end(masked, line, last)
    return None


def heading_names(headings: Iterable[str]) -> frozenset[str]:
    """What headings are called in links: as they read, and as web pages spell them."""
    folded = [_folded(heading) for heading in headings]
    return frozenset(folded) | {_slug(each) for each in folded}


def is_heading_anchor(anchor: str, names: frozenset[str]) -> bool:
    """Whether an anchor names one of the headings. Marks of blocks are not looked for."""
    last = anchor.rpartition("#")[2].strip()
    if not last or last.startswith("^"):
        return True
    return _folded(last) in names or _slug(_folded(last)) in names


def _slug(folded: str) -> str:
    return re.sub(r"[\W_]+", "-", folded).strip("-")


def _find_headings(lines: list[str], masked: list[str]) -> list[tuple[int, int, str]]:
    """Headings by line, level and text."""
    found = []
    for number, line in enumerate(masked, 1):
        if match := _HEADING.fullmatch(line):
            # Code in a heading is part of what it says.
            own = _HEADING.fullmatch(lines[number - 1])
            found.append((number, len(match[1]), (own or match)[2] or ""))
        elif (
            number > 1
            and (under := _UNDERLINE.fullmatch(line))
            and masked[number - 2].strip()
            and not _HEADING.fullmatch(masked[number - 2])
        ):
            title = lines[number - 2].strip()
            found.append((number - 1, 1 if under[1].startswith("=") else 2, title))
    return found


def _find_block(masked: list[str], mark: str) -> tuple[int, int] | None:
    """The paragraph that ends with `^mark`."""
    end = re.compile(rf"(?:^|.*\s)\^{re.escape(mark)}\s*", re.IGNORECASE)
    for number, line in enumerate(masked, 1):
        if end.fullmatch(line):
            start = number
            while start > 1 and masked[start - 2].strip():
                start -= 1
            return start, number
    return None


def _without_blank_end(lines: list[str], first: int, last: int) -> int:
    while last > first and not lines[last - 1].strip():
        last -= 1
    return last


def _ends_with(trail: list[str], wanted: list[str]) -> bool:
    """Whether the innermost heading is the last one wanted, below the others in their order."""
    if trail[-1] != wanted[-1]:
        return False
    rest = iter(trail[:-1])
    return all(any(each == name for each in rest) for name in wanted[:-1])


def _folded(heading: str) -> str:
    """A heading as links spell it: without marks of emphasis, case and odd blanks."""
    shown = _MARKDOWN_LINK.sub(r"\1", unicodedata.normalize("NFC", heading))
    plain = re.sub(r"[`*_]|\[\[|\]\]", "", shown)
    return " ".join(re.sub(r"[:#|^\\]+", " ", plain).split()).casefold()
