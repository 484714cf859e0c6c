"""The text of a query as words, numbers, texts and signs, each with its position.

Laws: every character is read once, so time is in proportion to the length. What does not belong to
the language is an error with its line and column; nothing is skipped.
"""

import re
from typing import Literal

from msgspec import Struct

from lamina.errors import QueryError

# A name may hold letters of any script, emoji and hyphens, but no quotes or invisible characters: a
# missing property is null, so a mistaken name would give a wrong answer, not an error.
_ODD = (
    r"\x00-\x7f\s\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\uff02\uff07"
    r"\x80-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
)
_NAME = rf"(?:[A-Za-z_]|[^{_ODD}])(?:[A-Za-z0-9_-]|[^{_ODD}])*+"
_WHOLE_NAME = re.compile(_NAME)
# Words that cannot be the name of a property on its own. Other keywords (AS, GROUP BY, DESC) appear
# only where a name cannot.
RESERVED_WORDS = frozenset(
    ("from", "where", "sort", "limit", "and", "or", "not", "in", "true", "false", "null")
    + ("row", "this", "file")
)
_TOKEN = re.compile(
    rf"""(?P<day>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})
    | (?P<number>-?[0-9]++(?:\.[0-9]++)?+)
    | (?P<word>{_NAME})
    | (?P<text>"(?:[^"\\\n]|\\.)*+")
    | (?P<elsewhere>==|<>|&&|\|\|)
    | (?P<sign>!=|<=|>=|[=<>()\[\],.!])""",
    re.VERBOSE,
)
# Only in FROM. A tag ends where something else can begin.
_TAG = re.compile(r"#([^\s#\"()\[\],]+)")
_LINK = re.compile(r"\[\[([^\[\]\n]*)\]\]")
_BLANK = re.compile(r"\s*+")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n"}
_ELSEWHERE = {"==": "=", "<>": "!=", "&&": "and", "||": "or"}
_HINTS = {
    "'": 'a text stands in double quotes: "draft"',
    "#": 'a tag stands in FROM; elsewhere write contains(file.tags, "name")',
    "`": 'a name with odd characters is written row["name"]',
    "+": "there is no arithmetic",
    "-": "there is no arithmetic",
    "*": "there is no arithmetic",
    "/": "there is no arithmetic",
    "~": "patterns are not offered; see contains, startswith and endswith",
    **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", 'a text stands in straight quotes: "draft"'),
    **dict.fromkeys("\u2018\u2019", 'a text stands in straight double quotes: "draft"'),
}
TokenKind = Literal["word", "number", "text", "sign", "tag", "link", "end"]


class Token(Struct, frozen=True):
    """A token of a query. `value` is a text without its quotes, or a word in lower case."""

    kind: TokenKind
    spelling: str
    value: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.spelling)


def is_word(text: str) -> bool:
    """Whether a property of this name can be written after a dot."""
    return _WHOLE_NAME.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a property of this name can be written on its own."""
    return is_word(text) and text.lower() not in RESERVED_WORDS


class Scanner:
    """Reads a query from the left. `at` is where the next token begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        # The last token and how it was read: it is looked at several times before it is taken.
        self._last_look = (-1, False)
        self._token = Token("end", "", "", 0)

    def look(self, *, in_source: bool = False) -> Token:
        """The next token, without taking it. `in_source`: tags and links are tokens, too."""
        if self._last_look != (self.at, in_source):
            self.at = _match(_BLANK, self.text, self.at).end()
            self._token = self._read(self.at, in_source)
            self._last_look = (self.at, in_source)
        return self._token

    def _read(self, start: int, in_source: bool) -> Token:
        if start == len(self.text):
            return Token("end", "", "", start)
        if in_source and (special := self._look_for_source(start)):
            return special
        match = _TOKEN.match(self.text, start)
        if match is None:
            raise self.problem(self._say_odd(start), start)
        spelling = match[0]
        match match.lastgroup:
            case "day":
                raise self.problem(f"a date is written date({spelling})", start)
            case "elsewhere":
                raise self.problem(f"{spelling} is written {_ELSEWHERE[spelling]} here", start)
            case "number":
                return Token("number", spelling, spelling, start)
            case "word":
                return Token("word", spelling, spelling.lower(), start)
            case "text":
                return Token("text", spelling, self._unescape(spelling, start), start)
        return Token("sign", spelling, spelling, start)

    def take(self, *, in_source: bool = False) -> Token:
        token = self.look(in_source=in_source)
        self.at = token.end
        return token

    def take_words(self, *words: str, in_source: bool = False) -> bool:
        """Takes these words if all of them come next, and says whether it did."""
        before = self.at
        for word in words:
            token = self.look(in_source=in_source)
            if token.kind != "word" or token.value != word:
                self.at = before
                return False
            self.take(in_source=in_source)
        return True

    def next_is(self, sign: str) -> bool:
        token = self.look()
        return token.kind == "sign" and token.value == sign

    def take_sign(self, sign: str) -> bool:
        if not self.next_is(sign):
            return False
        self.take()
        return True

    def require(self, sign: str, *, in_source: bool = False, expected: str = "") -> None:
        token = self.take(in_source=in_source)
        if token.kind != "sign" or token.value != sign:
            raise self.unexpected(expected or sign, token)

    def problem(self, problem: str, at: int) -> QueryError:
        """An error at the position `at`."""
        before = self.text[:at]
        return QueryError(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1, problem)

    def unexpected(self, expected: str, token: Token) -> QueryError:
        what = repr(shorten(token.spelling)) if token.kind != "end" else "the end of the query"
        return self.problem(f"expected {expected}, found {what}", token.start)

    def _look_for_source(self, start: int) -> Token | None:
        for kind, pattern in (("tag", _TAG), ("link", _LINK)):
            if match := pattern.match(self.text, start):
                return Token("tag" if kind == "tag" else "link", match[0], match[1], start)
        if self.text[start] == "-":
            return Token("sign", "-", "-", start)
        if self.text[start] == "#":
            raise self.problem("expected the name of a tag behind #", start)
        if self.text.startswith("[[", start):
            raise self.problem("this link is not closed by ]] on its line", start)
        return None

    def _unescape(self, spelling: str, start: int) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[1] not in _ESCAPED:
                at = start + 1 + match.start()
                raise self.problem(rf"{match[0]!r} in a text is not known; \", \\ and \n are", at)
            return _ESCAPED[match[1]]

        return _ESCAPE.sub(replace, spelling[1:-1])

    def _say_odd(self, start: int) -> str:
        odd = self.text[start]
        if odd == '"':
            return 'this text is not closed by " on its line'
        hint = _HINTS.get(odd)
        return f"{odd!r} (U+{ord(odd):04X}) means nothing here" + (f"; {hint}" if hint else "")


def shorten(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    assert match is not None  # the pattern also matches nothing
    return match
