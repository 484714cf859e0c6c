"""Finds the parts of a note that a link can name: the lines under a heading, or a marked block.

Law: lines are counted from 1 and split only at `\\n`; there are no headings in code.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property

from msgspec import Struct

from lamina.core.notes.frontmatter import split_frontmatter
from lamina.core.text.pictures import mask_code

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\r?")
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
# Dendron's ranges: `start,lines`, `start:#end` and `start,lines:#end`.
_RANGE = re.compile(
    r"(?=.*(?:,[0-9]|:#))(?P<start>.*?)(?:,(?P<offset>[0-9]{1,6}))?(?::#(?P<end>.+))?", re.DOTALL
)
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?")


class _Heading(Struct, frozen=True):
    """A heading: its line, its level, its trail of names and its slugs, as in links on GitHub and
    in Dendron, and on other pages."""

    line: int
    level: int
    trail: tuple[str, ...]
    slug: str
    loose_slug: str


def find_section(text: str, anchor: str) -> tuple[int, int] | None:
    """Return the first and last line of the part that `anchor` names: `Setup`, `Setup#Linux`
    (nested headings), `^mark`, or a Dendron range; None if there is no such part.

        setup,1             below the heading: so many lines further down
        setup:#linux        up to another heading
        setup:#*            up to the next heading, whatever its rank
        ^mark:#^other       from one block to the end of another
        ^begin:#^end        from the beginning to the end
    """
    note = _Parts(text)
    return note.find(anchor) or note.find_range(anchor)


def heading_names(headings: Iterable[str]) -> frozenset[str]:
    """Return heading names as used in links: as displayed, and as spelled by web pages."""
    titles = tuple(headings)
    names = [_fold(title) for title in titles]
    return frozenset((*names, *_make_slugs(titles), *map(_make_loose_slug, names)))


def is_heading_anchor(anchor: str, names: frozenset[str]) -> bool:
    """Return whether an anchor names one of the headings, or a range of them. Block marks are not
    checked."""
    bounds = _RANGE.fullmatch(anchor)
    if bounds is None or _is_named(anchor, names):
        return _is_named(anchor.rpartition("#")[2], names)
    return all(_is_named(bound or "", names) for bound in (bounds["start"], bounds["end"]))


def _is_named(anchor: str, names: frozenset[str]) -> bool:
    name = anchor.strip()
    if name in ("", "*") or name.startswith("^"):
        return True
    folded = _fold(name)
    is_loose = _RANGE.fullmatch(name) is None and _make_loose_slug(folded) in names
    return folded in names or name.casefold() in names or is_loose


class _Parts:
    """The parts of one note."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = mask_code(text)[0].split("\n")

    def find(self, anchor: str) -> tuple[int, int] | None:
        """Return the lines that a heading or mark names."""
        if anchor.startswith("^"):
            return _find_block(self._lines, anchor[1:])
        heading = self._find_heading(anchor)
        return None if heading is None else self._trim(heading.line, self._end_of(heading))

    def find_range(self, anchor: str) -> tuple[int, int] | None:
        bounds = _RANGE.fullmatch(anchor)
        if bounds is None:
            return None
        start, end = bounds["start"].strip(), (bounds["end"] or "").strip()
        section = self.find(start) if start not in ("", "^begin") else self._find_all()
        if section is None:
            return None
        first, last = section
        if end:
            bound = self._find_end(end, first)
            if bound is None:
                return None
            last = bound
        first += min(int(bounds["offset"] or 0), len(self._lines))
        while first < last and not self._lines[first - 1].strip():
            first += 1
        return self._trim(first, last) if first <= last else None

    def _find_end(self, end: str, first: int) -> int | None:
        """Return the last line of a range that starts on the line `first`."""
        if end == "^end":
            return len(self._lines)
        if end.startswith("^"):
            block = _find_block(self._lines, end[1:])
            return block[1] if block else None
        if end != "*":
            heading = self._find_heading(end, first)
            return heading.line - 1 if heading else None
        after = (heading.line - 1 for heading in self._headings if heading.line > first)
        return next(after, len(self._lines))

    def _find_all(self) -> tuple[int, int]:
        return split_frontmatter(self._text)[2], len(self._lines)

    def _find_heading(self, anchor: str, after: int = 0) -> _Heading | None:
        """Return the first heading after a line with a name: as displayed, else as spelled by web
        pages."""
        names = [_fold(part) for part in anchor.split("#") if part.strip()]
        headings = [heading for heading in self._headings if heading.line > after]
        ways: list[Callable[[_Heading], bool]] = [
            lambda heading: bool(names) and _ends_with(list(heading.trail), names)
        ]
        if len(names) == 1:
            slug, loose_slug = anchor.strip("# ").casefold(), _make_loose_slug(names[0])
            ways.append(lambda heading: heading.slug == slug)
            if _RANGE.fullmatch(anchor) is None:
                ways.append(lambda heading: heading.loose_slug == loose_slug)
        return next((heading for is_it in ways for heading in headings if is_it(heading)), None)

    def _end_of(self, heading: _Heading) -> int:
        after = (
            other.line - 1
            for other in self._headings
            if other.line > heading.line and other.level <= heading.level
        )
        return next(after, len(self._lines))

    def _trim(self, first: int, last: int) -> tuple[int, int]:
        return first, _without_blank_end(self._lines, first, last)

    @cached_property
    def _headings(self) -> tuple[_Heading, ...]:
        found = _find_headings(self._text.split("\n"), self._lines)
        slugs = _make_slugs([title for _, _, title in found])
        trail: list[tuple[int, str]] = []
        headings = []
        for (line, level, title), slug in zip(found, slugs, strict=True):
            trail = [step for step in trail if step[0] < level] + [(level, _fold(title))]
            names = tuple(name for _, name in trail)
            headings.append(_Heading(line, level, names, slug, _make_loose_slug(names[-1])))
        return tuple(headings)


def _make_loose_slug(folded: str) -> str:
    return re.sub(r"[\W_]+", "-", folded).strip("-")


def _make_slugs(titles: Iterable[str]) -> list[str]:
    """Return the slugs of headings in order; duplicates are numbered."""
    counts: Counter[str] = Counter()
    slugs = []
    for title in titles:
        plain = re.sub(r"[`*]|\[\[|\]\]", "", _MARKDOWN_LINK.sub(r"\1", title))
        slug = re.sub(r"[^\w\- ]", "", plain.casefold()).replace(" ", "-")
        slugs.append(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return slugs


def _find_headings(lines: list[str], plain_lines: list[str]) -> list[tuple[int, int, str]]:
    """Return headings by line, level and text."""
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
    """Return the paragraph that ends with `^mark`."""
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
    """Return whether the innermost heading has the last name, and the other names are above it in
    order."""
    if trail[-1] != names[-1]:
        return False
    rest = iter(trail[:-1])
    return all(any(step == name for step in rest) for name in names[:-1])


def _fold(heading: str) -> str:
    """Return a heading as spelled in links: without emphasis, case and extra spaces."""
    text = _MARKDOWN_LINK.sub(r"\1", unicodedata.normalize("NFC", heading))
    plain = re.sub(r"[`*_]|\[\[|\]\]", "", text)
    return " ".join(re.sub(r"[:#|^\\]+", " ", plain).split()).casefold()
