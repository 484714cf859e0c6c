"""Scans a query into tokens (words, numbers, strings and signs), each with its position.

Laws: every character is read once, so time is proportional to the length. Anything outside the
language is an error with line and column; nothing is skipped.
"""

import re
from typing import Literal

from msgspec import Struct

from lamina.errors import QueryError

# A name may contain letters of any script, emoji and hyphens, but no quotes or invisible
# characters: a missing property is null, so a mistaken name would cause a wrong answer, not an
# error.
_ODD = (
    r"\x00-\x7f\s\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\uff02\uff07"
    r"\x80-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
)
_NAME = rf"(?:[A-Za-z_]|[^{_ODD}])(?:[A-Za-z0-9_-]|[^{_ODD}])*+"
# Words that cannot be a field name on their own. Other keywords (AS, GROUP BY, DESC) appear only
# where a name cannot.
RESERVED_WORDS = frozenset(
    ("from", "where", "sort", "limit", "flatten", "and", "or", "not", "in")
    + ("true", "false", "null", "row")
)
# A tag ends where something else can start.
TAG = re.compile(r"#([^\s'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\u2000-\u206f\u2e00-\u2e7f]+)")
_TOKEN = re.compile(
    rf"""(?P<number>[0-9]++(?:\.[0-9]++)?+)
    | (?P<word>{_NAME})
    | (?P<text>"(?:[^"\\]|\\.)*+")
    | (?P<elsewhere>==|<>|&&|\|\|)
    | (?P<sign>=>|!=|<=|>=|[=<>()\[\]{{}},.!:+*/%&|-])""",
    re.VERBOSE | re.DOTALL,
)
LINK = re.compile(r"!?\[\[([^\[\]\n]*)\]\]")
LAMBDA = re.compile(rf"\(\s*((?:{_NAME}\s*(?:,\s*{_NAME}\s*)*+)?+)\)\s*=>")
# Whitespace, and comments up to the end of their line.
_BLANK = re.compile(r"\s*+(?://[^\n]*+\s*+)*+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ELSEWHERE = {"==": "=", "<>": "!=", "&&": "and", "||": "or"}
_HINTS = {
    "'": 'a text stands in double quotes: "draft"',
    "`": 'a name with odd characters is written row["name"]',
    "~": "see regextest and regexmatch for patterns",
    **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", 'a text stands in straight quotes: "draft"'),
    **dict.fromkeys("\u2018\u2019", 'a text stands in straight double quotes: "draft"'),
}
TokenKind = Literal["word", "number", "text", "tag", "sign", "end"]


class Token(Struct, frozen=True):
    """A token of a query. `value` is a string without its quotes, or a word in lower case."""

    kind: TokenKind
    spelling: str
    value: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.spelling)


class Scanner:
    """A scanner that reads a query from left to right. `at` is the start of the next token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        # The last token and its position: it is peeked at several times before it is consumed.
        self._last_look = -1
        self._token = Token("end", "", "", 0)

    def look(self) -> Token:
        """Return the next token, without consuming it."""
        if self._last_look != self.at:
            self._token = self._read(self.find_next())
            self._last_look = self.at
        return self._token

    def find_next(self) -> int:
        """Return the next position that is not blank."""
        match = _BLANK.match(self.text, self.at)
        assert match is not None  # the pattern also matches nothing
        return match.end()

    def _read(self, start: int) -> Token:
        if start == len(self.text):
            return Token("end", "", "", start)
        if tag := TAG.match(self.text, start):
            return Token("tag", tag[0], tag[0], start)
        match = _TOKEN.match(self.text, start)
        if match is None:
            raise self.problem(self._say_odd(start), start)
        spelling = match[0]
        match match.lastgroup:
            case "elsewhere":
                raise self.problem(f"write {_ELSEWHERE[spelling]} in place of {spelling}", start)
            case "word":
                return Token("word", spelling, spelling.lower(), start)
            case "text":
                return Token("text", spelling, _unescape(spelling[1:-1]), start)
            case "number":
                return Token("number", spelling, spelling, start)
        return Token("sign", spelling, spelling, start)

    def take(self) -> Token:
        token = self.look()
        self.at = token.end
        return token

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume and return the match of a pattern at the next position that is not blank, if
        any."""
        match = pattern.match(self.text, self.find_next())
        if match is not None:
            self.at = match.end()
        return match

    def take_words(self, *words: str) -> bool:
        """Consume these words if all of them come next, and return whether they did."""
        before = self.at
        for word in words:
            token = self.look()
            if token.kind != "word" or token.value != word:
                self.at = before
                return False
            self.take()
        return True

    def next_is(self, sign: str) -> bool:
        token = self.look()
        return token.kind == "sign" and token.value == sign

    def take_sign(self, *signs: str) -> str | None:
        """Consume one of these signs if it comes next and return it, or None."""
        token = self.look()
        if token.kind != "sign" or token.value not in signs:
            return None
        self.take()
        return token.value

    def require(self, sign: str, *, expected: str = "") -> None:
        token = self.take()
        if token.kind != "sign" or token.value != sign:
            raise self.unexpected(expected or sign, token)

    def problem(self, problem: str, at: int) -> QueryError:
        """Return an error at the position `at`."""
        return problem_at(self.text, problem, at)

    def unexpected(self, expected: str, token: Token) -> QueryError:
        what = repr(shorten(token.spelling)) if token.kind != "end" else "the end of the query"
        return self.problem(f"expected {expected}, found {what}", token.start)

    def _say_odd(self, start: int) -> str:
        odd = self.text[start]
        if odd == '"':
            return 'this text is not closed by "'
        if odd == "#":
            return "expected the name of a tag behind #"
        hint = _HINTS.get(odd)
        return f"{odd!r} (U+{ord(odd):04X}) means nothing here" + (f"; {hint}" if hint else "")


def problem_at(text: str, problem: str, at: int) -> QueryError:
    """Return an error at the position `at` of a text."""
    before = text[:at]
    return QueryError(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1, problem)


def _unescape(content: str) -> str:
    """Unescape quotes and backslashes only; other backslashes belong to patterns."""
    return _ESCAPE.sub(lambda match: match[1] if match[1] in '"\\' else match[0], content)


def shorten(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
