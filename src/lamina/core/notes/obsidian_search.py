"""Parses and matches searches as written in Obsidian notes: words, phrases, patterns and places.

    "north quay" (tide OR ebb) -draft path:work tag:#a line:(call pilot) [status:open] /[0-9]+ m/

Laws: any string either is a search or raises `QueryError`, which names what is not understood.
Words are found anywhere in a name or text, ignoring case unless the search specifies otherwise. A
note is read once, whatever the search asks for. Time is proportional to the length of the search,
however deeply it is nested.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias, assert_never, cast, get_args

from msgspec import Struct

from lamina.core.notes.note_names import tag_matches
from lamina.core.notes.note_outline import read_outline
from lamina.core.notes.query.operators import fold_case, normalize_text
from lamina.core.notes.query.regular_expressions import PatternRefused, SafePattern, compile_pattern
from lamina.core.notes.query.scanner import problem_at
from lamina.core.values.note import Note
from lamina.errors import QueryError

MAX_CHARACTERS = 2_000
MAX_DEEP = 20
Place = Literal[
    "file", "path", "content", "tag", "line", "block", "section", "task", "task-todo", "task-done",
    "match-case", "ignore-case",
]  # fmt: skip
PLACES = get_args(Place)
_TOKEN = re.compile(
    r"""(?P<open>\()|(?P<close>\))|(?P<not>-(?=\S))|(?P<phrase>"(?:[^"\\]|\\.)*+")
    |(?P<pattern>/(?:[^/\\\n]|\\.)++/)|(?P<property>\[(?:"[^"\]\n]*"|[^\[\]:\n]+)\s*(?::|(?=\])))
    |(?P<place>[A-Za-z][A-Za-z-]*:)|(?P<word>[^\s()"]+)""",
    re.VERBOSE,
)
_BLANK = re.compile(r"\s*+")


class Words(Struct, frozen=True):
    """A required word or phrase."""

    text: str


class Pattern(Struct, frozen=True):
    """A required regular expression match."""

    pattern: SafePattern


class Placed(Struct, frozen=True):
    """A search within one place: a file name, a line, a section."""

    place: Place
    part: "SearchTerm"


class PropertyTerm(Struct, frozen=True):
    """A required property and its value; None if any value matches."""

    name: str
    value: "SearchTerm | None"


class Not(Struct, frozen=True):
    part: "SearchTerm"


class AllOf(Struct, frozen=True):
    parts: "tuple[SearchTerm, ...]"


class AnyOf(Struct, frozen=True):
    parts: "tuple[SearchTerm, ...]"


SearchTerm: TypeAlias = Words | Pattern | Placed | PropertyTerm | Not | AllOf | AnyOf


def parse_search(text: str) -> SearchTerm:
    """Parse a search.

    Raises:
        QueryError: it is not understood; with line and column.
    """
    return _Parser(text).read_search()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def read_search(self) -> SearchTerm:
        if len(self._text) > MAX_CHARACTERS:
            raise self._problem(f"a search has at most {MAX_CHARACTERS:,} characters", 0)
        if not self._text.strip():
            raise self._problem("there is nothing to search for", 0)
        term = self._read_alternatives(")")
        if self._at < len(self._text):
            raise self._problem("this ) closes nothing", self._at)
        return term

    def _problem(self, problem: str, at: int) -> QueryError:
        return problem_at(self._text, problem, at)

    def _look(self) -> re.Match[str] | None:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return _TOKEN.match(self._text, self._at)

    def _read_alternatives(self, closing: str) -> SearchTerm:
        """Read terms that must all match, with OR between alternatives."""
        alternatives: list[SearchTerm] = []
        terms: list[SearchTerm] = []
        while (token := self._look()) is not None and not self._ends(token, closing):
            if token["word"] == "OR":
                self._at = token.end()
                if not terms:
                    raise self._problem("expected something in front of OR", token.start())
                alternatives.append(_join(terms))
                terms = []
            else:
                terms.append(self._read_term(token))
        if not terms:
            where = min(self._at, len(self._text))
            raise self._problem("expected a word or a phrase", where)
        if token is None and self._at < len(self._text):
            raise self._problem(f"{self._text[self._at]!r} is not closed", self._at)
        alternatives.append(_join(terms))
        return alternatives[0] if len(alternatives) == 1 else AnyOf(tuple(alternatives))

    def _ends(self, token: re.Match[str], closing: str) -> bool:
        return token[0] == ")" or (closing == "]" and self._text.startswith("]", self._at))

    def _read_term(self, token: re.Match[str]) -> SearchTerm:
        self._at = token.end()
        match token.lastgroup:
            case "not":
                return Not(self._read_next("-", token))
            case "open":
                return self._read_parentheses(token)
            case "phrase":
                return Words(re.sub(r"\\(.)", r"\1", token[0][1:-1]))
            case "pattern":
                return self._read_pattern(token)
            case "property":
                return self._read_property(token)
            case "place":
                return self._read_place(token)
        return Words(self._trim_word(token))

    def _trim_word(self, token: re.Match[str]) -> str:
        """Return a word; inside brackets it ends at the closing one."""
        word = token[0]
        if self._depth and "]" in word and self._in_property:
            word = word[: word.index("]")]
            self._at = token.start() + len(word)
        return word

    _in_property = False

    def _read_pattern(self, token: re.Match[str]) -> Pattern:
        try:
            return Pattern(compile_pattern(token[0][1:-1], ignore_case=True))
        except PatternRefused as refusal:
            raise self._problem(str(refusal), token.start()) from None

    def _read_parentheses(self, token: re.Match[str]) -> SearchTerm:
        self._deeper(token)
        term = self._read_alternatives(")")
        if not self._text.startswith(")", self._at):
            raise self._problem("this ( is not closed", token.start())
        self._at += 1
        self._depth -= 1
        return term

    def _read_place(self, token: re.Match[str]) -> SearchTerm:
        name = token[0][:-1].lower()
        if name not in PLACES:
            # A URL or a time is a word.
            if (word := re.compile(r"[^\s()\"]+").match(self._text, token.start())) and (
                self._text[token.end() : token.end() + 2] == "//" or name in ("http", "https")
            ):
                self._at = word.end()
                return Words(word[0])
            known = ", ".join(f"{place}:" for place in PLACES)
            raise self._problem(f"there is no place {token[0]!r}; there are {known}", token.start())
        return Placed(cast(Place, name), self._read_next(token[0], token))

    def _read_next(self, what: str, before: re.Match[str]) -> SearchTerm:
        token = self._look()
        if token is None or token.lastgroup == "close":
            raise self._problem(f"expected something behind {what}", self._at)
        self._deeper(before)
        term = self._read_term(token)
        self._depth -= 1
        return term

    def _read_property(self, token: re.Match[str]) -> PropertyTerm:
        name = token[0][1:].removesuffix(":").strip().strip('"')
        value: SearchTerm | None = None
        if token[0].endswith(":"):
            self._deeper(token)
            self._in_property = True
            value = self._read_alternatives("]")
            self._in_property = False
            self._depth -= 1
        if not self._text.startswith("]", self._at):
            raise self._problem("this [ is not closed", token.start())
        self._at += 1
        return PropertyTerm(name, value)

    def _deeper(self, token: re.Match[str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEEP:
            raise self._problem(f"this is nested more than {MAX_DEEP} deep", token.start())


def _join(terms: list[SearchTerm]) -> SearchTerm:
    return terms[0] if len(terms) == 1 else AllOf(tuple(terms))


# The maximum number of lines shown per note.
MAX_LINES = 5
_COMPARED = re.compile(r"([<>]=?)\s*(-?[0-9.]+)")


class SearchHit(Struct, frozen=True):
    """A matching note: its path, and the lines that match, counted from 1."""

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
    """Return the hit for a note, if it matches.

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
    return SearchHit(note.path, tuple(lines[:MAX_LINES]))


def _may_fit(term: SearchTerm, note: _SearchedNote) -> bool:
    """Return whether all words occur at all: most notes need not be read line by line."""
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
    """Return whether a note matches; `place` is the part of the note to search, None for all of
    it."""
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
    """Yield predicates for the lines to display, from the terms that the text must match."""
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
