"""Cuts notes into passages, which are searched separately.

Laws: every non-blank line of a note is in a passage, except its frontmatter; passages follow the
order of the note, and only parts of one line share that line. The searched text depends on the
title, the passage and the note's lines, not on its path: a note that moves is not embedded again.
Time is proportional to the note's size, regardless of its content.

A passage is under one heading. It is cut between paragraphs, lists and code blocks, then between
items, then between lines; a line that is too long on its own is cut between sentences.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence

from lamina.core.notes.frontmatter import split_frontmatter
from lamina.core.notes.note_outline import CodeBlock, Heading
from lamina.core.values.note import Passage

# In UTF-8 bytes: embedders read a limited number of tokens; a Chinese character is one token, an
# English letter about a quarter.
LONGEST_PASSAGE = 700
# A remainder up to this length is added to the previous passage.
_SHORT_REST = 150
# An introduction up to this length stays with the list or code block that follows.
_LEAD_IN = 250
_LONGEST_TITLE = 80
_LONGEST_HEADING = 80
_LONGEST_ANCHOR = 200
# The note's names and description in its frontmatter are searched with its first passage.
_LONGEST_NAMES = 300
_TRAIL_JOINT = " > "

_NAMES = re.compile(r"(?:title|alias(?:es)?|tags?|description|summary):", re.IGNORECASE)
_LINK = re.compile(
    r"!?\[((?:[^\[\]]|\[[^\[\]]*+\])*+)\](?:\((?:[^()\s]|\([^()\s]*+\))*+\)|\[[^\[\]]*+\])"
)
_WIKILINK = re.compile(r"\[\[(?:[^\[\]|]*+\|)?([^\[\]|]*+)\]\]")
_MARKUP = re.compile(r"[`*]+|\\(?=[!-/:-@\[-`{-~])")
_ITEM = re.compile(r"([ \t>]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
# Chinese and Japanese punctuation is not followed by a space.
_SENTENCE_END = re.compile(r"[.!?][)\"'\]*_]{0,3}\s+|[。！？]+|\|\s+")
_HEADING_LINE = re.compile(r"#{1,6}[ \t]+(\S[^\n]*)")

_SMALLEST_UNIT = 3


def searched_text(note_title: str, passage: Passage, lines: Sequence[str]) -> str:
    """Return the text whose sha256 is the passage's digest; `lines` contains all lines of the note,
    split at `\\n`."""
    has_names = _begins_line(passage.part) and _is_rule(lines[0])
    names = _names_before(passage, lines) if has_names else ""
    place = _find_place(_shorten(note_title, _LONGEST_TITLE), passage.heading)
    return _join_text(place, names, stored_text(passage, lines))


def stored_text(passage: Passage, lines: Sequence[str]) -> str:
    """Return a passage as written in the note; `lines` contains all lines of the note, split at
    `\\n`."""
    if passage.part:
        return lines[passage.start - 1][slice(*passage.part)]
    return "\n".join(lines[passage.start - 1 : passage.end])


def _names_before(passage: Passage, lines: Sequence[str]) -> str:
    """Return the names in the frontmatter if this is the first passage, directly after it."""
    before = passage.start - 2
    while before > 0 and not lines[before].strip():
        before -= 1
    if before <= 0 or not _is_rule(lines[before]):
        return ""
    earlier = before - 1
    while earlier and not _is_rule(lines[earlier]):
        earlier -= 1
    if earlier:
        return ""
    return _find_names(split_frontmatter("\n".join(lines[: before + 1]))[0] or "")


def cut_passages(
    title: str,
    head: str | None,
    lines: list[str],
    first_line: int,
    headings: Sequence[Heading],
    blocks: Sequence[CodeBlock],
    texts: list[str] | None = None,
) -> tuple[Passage, ...]:
    """Return the passages of a note with a known outline; `lines` contains the lines after its
    frontmatter. The searched text of each passage is added to `texts`, if given."""
    passages: list[Passage] = []
    names = _find_names(head) if head else ""
    cutter = _Cutter(lines, blocks)
    short_title = _shorten(title, _LONGEST_TITLE)
    for heading, anchor, start, end in _sections(lines, headings):
        place = _find_place(short_title, heading)
        for begin, stop, part in cutter.cut(start, end):
            text = lines[begin][slice(*part)] if part else "\n".join(lines[begin:stop])
            search_text = _join_text(place, names if _begins_line(part) else "", text)
            digest = hashlib.sha256(search_text.encode("utf-8", "replace")).digest()
            if texts is not None:
                texts.append(search_text)
            first, last = begin + first_line, stop + first_line - 1
            passages.append(Passage(first, last, heading, anchor, digest, part))
            names = ""
    return tuple(passages)


def _find_place(title: str, heading: str) -> tuple[str, ...]:
    """Return the title and headings under which a text is searched: the outermost heading and the
    two innermost ones are the most informative."""
    trail = heading.split(_TRAIL_JOINT) if heading else []
    if trail and trail[0].casefold() == title.casefold():
        trail = trail[1:]
    return (title, *(trail if len(trail) < 4 else (trail[0], *trail[-2:])))


def _join_text(place: tuple[str, ...], names: str, own_text: str) -> str:
    text = own_text.strip()
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # A heading is already part of the place, unless its line contains more.
    while text.startswith("#") and (match := _HEADING_LINE.match(text)):
        if match[1].rstrip() not in place:
            break
        text = text[match.end() :].lstrip()
    return "\n".join(filter(None, (_TRAIL_JOINT.join(place), names, text)))


def _find_names(head: str) -> str:
    """Return the frontmatter lines with a note's other names and its subject."""
    lines: list[str] = []
    size, is_inside = 0, False
    for line in head.split("\n"):
        if not line[:1].isspace() and not line.startswith("- "):
            is_inside = bool(_NAMES.match(line))
        if is_inside and (text := line.strip()):
            lines.append(text)
            size += len(text)
            if size > _LONGEST_NAMES:
                break
    return "\n".join(lines)[:_LONGEST_NAMES].rstrip()


def _sections(lines: list[str], headings: Sequence[Heading]) -> Iterator[tuple[str, str, int, int]]:
    """Yield the trail, anchor and lines of every stretch under one heading. An empty heading is
    joined with what follows."""
    trail: list[tuple[int, str]] = []
    begin, first_text, anchor = 0, 0, ""
    for at in range(len(headings) + 1):
        heading = headings[at] if at < len(headings) else None
        end = heading.line if heading else len(lines)
        is_last = heading is None and begin < len(lines)
        if (
            _has_text(lines, first_text, end)
            or (is_last and _has_text(lines, begin, end))
            or end - begin + sum(map(len, lines[begin:end])) > _LEAD_IN
        ):
            yield _TRAIL_JOINT.join([text for _, text in trail]), anchor, begin, end
            begin = end
        if heading:
            while trail and trail[-1][0] >= heading.level:
                trail.pop()
            spelling = heading.text[: 4 * _LONGEST_HEADING]
            if short := _shorten(_plain(spelling) or spelling, _LONGEST_HEADING):
                trail.append((heading.level, short))
            anchor, first_text = heading.text[:_LONGEST_ANCHOR], heading.end


class _Cutter:
    """A cutter of line ranges into short enough pieces."""

    def __init__(self, lines: list[str], blocks: Sequence[CodeBlock]) -> None:
        self._lines = lines
        # Most lines are ASCII; because there are many, these are measured without a call.
        self._sizes = [len(line) + 1 if line.isascii() else _size(line) for line in lines]
        self._edges = {edge for block in blocks for edge in (block.line, block.end)}
        # Lines of code except the first of each block; a blank line among them does not end a
        # paragraph.
        self._code = bytearray(len(lines))
        for block in blocks:
            self._code[block.line + 1 : block.end] = b"\1" * (block.end - block.line - 1)
        self._stretches: list[tuple[int, int]] = []

    def cut(self, begin: int, end: int) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
        """Yield ranges as first line and end (exclusive), and, for parts of a single line, the
        range within it."""
        stretches = [(begin, end)]
        if sum(self._sizes[begin:end]) > LONGEST_PASSAGE:
            stretches = self._stretches = []
            self._pack(begin, end, 0)
        lines = self._lines
        for start, stop in stretches:
            while start < stop and not lines[start].strip():
                start += 1
            while start < stop and not lines[stop - 1].strip():
                stop -= 1
            if stop - start == 1 and self._sizes[start] > LONGEST_PASSAGE + _SHORT_REST:
                yield from ((start, stop, part) for part in _find_parts(lines[start]))
            elif start < stop:
                yield start, stop, None

    def _pack(self, begin: int, end: int, level: int) -> None:
        """Join as many units as fit, and cut larger ones into smaller units."""
        start, last, size = begin, begin, 0
        for unit, stop in self._units(begin, end, level):
            more = sum(self._sizes[unit:stop])
            if size and size + more > LONGEST_PASSAGE:
                leads_in = self._leads_in(last, unit)
                if not leads_in or size > _LEAD_IN:
                    edge = last if leads_in else unit
                    self._keep(start, edge)
                    start, size = edge, sum(self._sizes[edge:unit])
            if more <= LONGEST_PASSAGE:
                size += more
            elif level < _SMALLEST_UNIT:
                self._pack(start, stop, level + 1)
                start, size = stop, 0
            else:
                self._keep(start, unit)
                self._keep(unit, stop)
                start, size = stop, 0
            last = unit
        self._keep(start, end)

    def _keep(self, start: int, end: int) -> None:
        size = sum(self._sizes[start:end])
        if self._stretches and size <= _SHORT_REST:
            before = self._stretches[-1]
            if size + sum(self._sizes[slice(*before)]) <= LONGEST_PASSAGE + _SHORT_REST:
                self._stretches[-1] = (before[0], end)
                return
        if start < end:
            self._stretches.append((start, end))

    def _leads_in(self, start: int, end: int) -> bool:
        """Return whether the lines introduce what follows: a heading, or a sentence ending in a
        colon."""
        if sum(self._sizes[start:end]) > _LEAD_IN:
            return False
        text = "\n".join(self._lines[start:end]).strip()
        return text.endswith((":", "\uff1a")) or (text.startswith("#") and "\n" not in text)

    def _units(self, begin: int, end: int, level: int) -> Iterator[tuple[int, int]]:
        """Yield paragraphs and blocks; at the next levels outermost items, with code separate from
        the text around it; then any item, and paragraphs of code; then lines."""
        if level == 1:
            items = {at: len(item[1]) for at in range(begin, end) if (item := self._item(at))}
            least = min(items.values(), default=0)
            items = {at: indent for at, indent in items.items() if indent == least}
        start = begin
        for at in range(begin + 1, end):
            if (at in items or at in self._edges) if level == 1 else self._is_start(at, level):
                yield start, at
                start = at
        yield start, end

    def _is_start(self, at: int, level: int) -> bool:
        if level == _SMALLEST_UNIT:
            return True
        if self._lines[at].strip() and not self._lines[at - 1].strip():
            return level == 2 or not self._code[at]
        return level == 2 and self._item(at) is not None

    def _item(self, at: int) -> re.Match[str] | None:
        return None if self._code[at] else _ITEM.match(self._lines[at])


def _find_parts(line: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges into which a long line is cut: after sentences, else between words."""
    longest = max(1, LONGEST_PASSAGE * len(line) // _size(line))
    begin = 0
    while begin < len(line):
        end = len(line)
        if end - begin > longest + longest * _SHORT_REST // LONGEST_PASSAGE:
            middle, latest = begin + longest // 2, begin + longest
            sentences = [match.end() for match in _SENTENCE_END.finditer(line, middle, latest)]
            space = line.rfind(" ", middle, latest) + 1
            end = sentences[-1] if sentences else space or latest
        if line[begin:end].strip():
            yield begin, end
        begin = end


def _begins_line(part: tuple[int, int] | None) -> bool:
    return part is None or part[0] == 0


def _is_rule(line: str) -> bool:
    return line.startswith("---") and not line[3:].strip(" \t\r")


def _has_text(lines: list[str], begin: int, end: int) -> bool:
    for line in lines[begin:end]:  # noqa: SIM110 - `any` takes three times as long
        if line.strip():
            return True
    return False


def _size(line: str) -> int:
    """Return the length of a line including its line end, in bytes."""
    return 1 + len(line.encode("utf-8", "replace"))


def _plain(heading: str) -> str:
    """Return a heading as displayed: links as their words, without markup."""
    if "[" in heading:
        heading = _LINK.sub(r"\1", _WIKILINK.sub(r"\1", heading))
    return _MARKUP.sub("", heading) if "`" in heading or "*" in heading else heading


def _shorten(text: str, longest: int) -> str:
    text = " ".join(text[: 4 * longest].split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"
