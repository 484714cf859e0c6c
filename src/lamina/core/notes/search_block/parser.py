"""From the text of a search to its meaning.

    "north quay" (tide OR ebb) -draft path:work tag:#a line:(call pilot) [status:open] /[0-9]+ m/

Laws: any text either is a search or raises `QueryError`, which names what is not understood. Time
is in proportion to the length, however deep it is nested.
"""

import re
from typing import Literal, TypeAlias, cast, get_args

from msgspec import Struct

from lamina.core.notes.query.patterns import PatternRefused, SafePattern, compile_pattern
from lamina.core.notes.query.scanner import problem_at
from lamina.errors import QueryError

MOST_CHARACTERS = 2_000
MOST_DEEP = 20
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
    """A word or a phrase that has to be there."""

    text: str


class Pattern(Struct, frozen=True):
    """A regular expression that has to match."""

    pattern: SafePattern


class Placed(Struct, frozen=True):
    """A search within one place: the name of a file, a line, a section."""

    place: Place
    part: "SearchTerm"


class PropertyTerm(Struct, frozen=True):
    """A property that has to be there, with a value that fits; None if any does."""

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
    """What a search means.

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
        if len(self._text) > MOST_CHARACTERS:
            raise self._problem(f"a search has at most {MOST_CHARACTERS:,} characters", 0)
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
        """Terms that all have to be there, with OR between alternatives."""
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
        """A word; within brackets it ends where they do."""
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
            # An address or a time is a word.
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
        if self._depth > MOST_DEEP:
            raise self._problem(f"this is nested more than {MOST_DEEP} deep", token.start())


def _join(terms: list[SearchTerm]) -> SearchTerm:
    return terms[0] if len(terms) == 1 else AllOf(tuple(terms))
