"""Which notes a search finds, and the lines that it finds in them.

Laws: words are found anywhere in a name or a text, without regard to case unless the search says
otherwise. A note is looked at once, whatever the search asks for.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, assert_never

from msgspec import Struct

from lamina.core.notes.names import tag_matches
from lamina.core.notes.outline import read_outline
from lamina.core.notes.query.patterns import PatternRefused
from lamina.core.notes.query.value_order import fold_case, normalize_text
from lamina.core.notes.search_block.parser import (
    AllOf,
    AnyOf,
    Not,
    Pattern,
    Placed,
    PropertyTerm,
    SearchTerm,
    Words,
)
from lamina.core.values.note import Note

# The most lines of a note that are shown.
MOST_LINES = 5
_COMPARED = re.compile(r"([<>]=?)\s*(-?[0-9.]+)")


class SearchHit(Struct, frozen=True):
    """A note that was found: its path, and the lines with what was looked for, from 1."""

    path: str
    lines: tuple[int, ...]


class _SearchedNote:
    def __init__(self, note: Note, text: str) -> None:
        self.note, self.text = note, text

    @cached_property
    def folded(self) -> str:
        return fold_case(f"{self.note.path}\n{self.text}")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def blocks(self) -> list[str]:
        return [block for block in re.split(r"\n[ \t]*\n", self.text) if block.strip()]

    @cached_property
    def sections(self) -> list[str]:
        starts = [heading.line for heading in read_outline(self.lines).headings]
        places = [0, *starts, len(self.lines)]
        return ["\n".join(self.lines[start:end]) for start, end in pairwise(places)]

    def tasks(self, is_done: bool | None) -> list[str]:
        return [
            item.text
            for item in self.note.items
            if item.status is not None and (is_done is None or (item.status != " ") == is_done)
        ]


def find_hit(term: SearchTerm, note: Note, text: str) -> SearchHit | None:
    """The note as it was found, if it was.

    Raises:
        PatternRefused: a pattern of the search may take too long for this note.
    """
    searched = _SearchedNote(note, text)
    if not _may_fit(term, searched) or not _fits(term, searched, None, fold_case):
        return None
    marks = list(_marks(term, fold_case))
    lines = [
        number
        for number, line in enumerate(searched.lines, 1)
        if line.strip() and any(mark(line) for mark in marks)
    ]
    return SearchHit(note.path, tuple(lines[:MOST_LINES]))


def _may_fit(term: SearchTerm, note: _SearchedNote) -> bool:
    """Whether all words are there at all: most notes need not be looked at line by line."""
    match term:
        case Words(text):
            return fold_case(text) in note.folded
        case AllOf(parts):
            return all(_may_fit(part, note) for part in parts)
        case AnyOf(parts):
            return any(_may_fit(part, note) for part in parts)
        case Placed(place, part) if place != "tag":
            return _may_fit(part, note)
    return True


def _fits(
    term: SearchTerm, note: _SearchedNote, place: str | None, fold: Callable[[str], str]
) -> bool:
    """Whether a note fits; `place` is the part of it that is meant, None for all of it."""
    match term:
        case Words(text):
            wanted = fold(text)
            if place is not None:
                return wanted in fold(place)
            return wanted in fold(note.text) or wanted in fold(note.note.path)
        case Pattern(pattern):
            texts = note.lines if place is None else place.split("\n")
            return any(pattern.search(text) for text in texts)
        case Not(part):
            return not _fits(part, note, place, fold)
        case AllOf(parts):
            return all(_fits(part, note, place, fold) for part in parts)
        case AnyOf(parts):
            return any(_fits(part, note, place, fold) for part in parts)
        case PropertyTerm(name, value):
            return _has_property(note, name, value, fold)
        case Placed():
            return _fits_place(term, note, place, fold)
        case _:
            assert_never(term)


def _fits_place(
    term: Placed, note: _SearchedNote, place: str | None, fold: Callable[[str], str]
) -> bool:
    match term.place:
        case "match-case":
            return _fits(term.part, note, place, normalize_text)
        case "ignore-case":
            return _fits(term.part, note, place, fold_case)
        case "tag":
            return _has_tag(term.part, note)
        case "file":
            places = [note.note.path.rsplit("/", 1)[-1]]
        case "path":
            places = [note.note.path]
        case "content":
            places = [note.text]
        case "line":
            places = note.lines
        case "block":
            places = note.blocks
        case "section":
            places = note.sections
        case "task":
            places = note.tasks(None)
        case "task-todo":
            places = note.tasks(False)
        case "task-done":
            places = note.tasks(True)
    return any(_fits(term.part, note, text, fold) for text in places)


def _has_tag(part: SearchTerm, note: _SearchedNote) -> bool:
    match part:
        case Words(text):
            return any(tag_matches(tag, text) for tag in note.note.tags)
        case AnyOf(parts):
            return any(_has_tag(inner, note) for inner in parts)
        case AllOf(parts):
            return all(_has_tag(inner, note) for inner in parts)
        case Not(inner):
            return not _has_tag(inner, note)
    return any(_fits(part, note, f"#{tag}", fold_case) for tag in note.note.tags)


def _has_property(
    note: _SearchedNote, name: str, value: SearchTerm | None, fold: Callable[[str], str]
) -> bool:
    wanted = fold_case(name)
    for own, held in note.note.properties.items():
        if fold_case(own) == wanted:
            return value is None or _fits_value(value, held, note, fold)
    return False


def _fits_value(
    term: SearchTerm, held: Any, note: _SearchedNote, fold: Callable[[str], str]
) -> bool:
    members = held if isinstance(held, list) else [held]
    match term:
        case AnyOf(parts):
            return any(_fits_value(part, held, note, fold) for part in parts)
        case AllOf(parts):
            return all(_fits_value(part, held, note, fold) for part in parts)
        case Not(part):
            return not _fits_value(part, held, note, fold)
        case Words(text) if text.lower() == "null":
            return held in (None, "", [])
        case Words(text) if compared := _COMPARED.fullmatch(text):
            return any(_compare(member, compared[1], compared[2]) for member in members)
    spellings = (
        str(m).lower() if isinstance(m, bool) else str(m) for m in members if m is not None
    )
    return any(_fits(term, note, text, fold) for text in spellings)


def _compare(value: Any, sign: str, number: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        other = float(number)
    except ValueError:
        return False
    orders = {"<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other}
    return orders[sign]


def _marks(term: SearchTerm, fold: Callable[[str], str]) -> Iterator[Callable[[str], bool]]:
    """What tells the lines that are shown: what the search wants to be there, in the text."""
    match term:
        case Words(text):
            wanted = fold(text)
            yield lambda line: wanted in fold(line)
        case Pattern(pattern):
            yield lambda line: _matches(pattern.search, line)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _marks(part, fold)
        case Placed(place, part) if place not in ("file", "path", "tag"):
            yield from _marks(part, normalize_text if place == "match-case" else fold)


def _matches(search: Callable[[str], Any], line: str) -> bool:
    try:
        return search(line) is not None
    except PatternRefused:
        return False
