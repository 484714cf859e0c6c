"""Runs regular expressions from notes, in JavaScript syntax, in limited time.

Law: a pattern is checked before use. One with nested repeats is refused, because some text would
take it far too long; one with several repeats is used on strings short enough to be quick, and
refused on longer ones.
"""

import re
from functools import lru_cache

from msgspec import Struct

MAX_PATTERN = 1_000
# The maximum number of positions that a search may examine.
MAX_LOOKS = 50_000_000
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<(?P<name>[A-Za-z_]\w*)>|\((?:\?(?:[:=!]|<[=!]))?|\)|"
    r"(?P<repeat>[*+?]|\{\d{1,4}(?P<open>,\d{0,4})?\})[?+]?|\||\$|.",
    re.DOTALL,
)
_BACK = re.compile(r"\$(?:\$|(\d{1,2})|&|<([A-Za-z_]\w*)>)")


class PatternRefused(Exception):
    """Raised if a pattern is invalid or may take too long; the message explains why."""


class SafePattern(Struct, frozen=True):
    """A checked pattern. `repeats` is the number of its parts that can be of any length."""

    source: str
    compiled: re.Pattern[str]
    repeats: int

    def check(self, text: str) -> None:
        """Raise `PatternRefused` if the pattern may take too long on this string."""
        if self.repeats and float(len(text) + 1) ** min(self.repeats + 1, 12) > MAX_LOOKS:
            raise PatternRefused(
                f"the pattern {self.source!r} may take too long for a text of {len(text):,} "
                f"characters: it has {self.repeats} parts of any length"
            )

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a string. Raises `PatternRefused`."""
        self.check(text)
        return self.compiled.search(text)

    def replace(self, text: str, replacement: str) -> str:
        """Return a string with every match replaced; `$1` is the first group. Raises
        `PatternRefused`."""
        self.check(text)

        def fill(match: re.Match[str]) -> str:
            return _BACK.sub(lambda back: _take_back(match, back), replacement)

        return self.compiled.sub(fill, text)

    def split(self, text: str) -> list[str]:
        """Return the parts of a string between matches. Raises `PatternRefused`."""
        self.check(text)
        if not self.compiled.pattern:
            return list(text)
        return [part or "" for part in self.compiled.split(text)]


def _take_back(match: re.Match[str], back: re.Match[str]) -> str:
    if back[0] == "$$":
        return "$"
    if back[0] == "$&":
        return match[0]
    group: int | str = int(back[1]) if back[1] else back[2]
    try:
        return match[group] or ""
    except IndexError:
        return back[0]


@lru_cache(maxsize=256)
def compile_pattern(source: str, ignore_case: bool = False) -> SafePattern:
    """Compile a pattern after checking it.

    Raises:
        PatternRefused: it is not a pattern, or may take too long.
    """
    if len(source) > MAX_PATTERN:
        raise PatternRefused(f"a pattern has at most {MAX_PATTERN:,} characters")
    translated, repeats = _inspect(source)
    try:
        # Letters and digits are ASCII only, as in JavaScript.
        compiled = re.compile(translated, re.ASCII | (re.IGNORECASE if ignore_case else 0))
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternRefused(f"{source!r} is no pattern that is understood: {error}") from None
    return SafePattern(source, compiled, repeats)


class _Group:
    """A parenthesised group: whether any part of it can be of any length or is a choice."""

    def __init__(self) -> None:
        self.is_open = False
        self.parts: list[str] = []


def _inspect(source: str) -> tuple[str, int]:
    """Return the pattern in Python syntax, and the number of its unbounded repeats."""
    groups = [_Group()]
    closed: _Group | None = None
    texts: list[str] = []
    repeats = 0
    for token in _TOKEN.finditer(source):
        spelling, last, closed = token[0], closed, None
        if token["name"]:
            spelling = f"(?P<{token['name']}>"
            groups.append(_Group())
        elif spelling == "$":
            spelling = r"\Z"
        elif spelling[0] == "(":
            groups.append(_Group())
        elif spelling == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1].is_open |= closed.is_open
        elif spelling == "|":
            groups[-1].is_open = True
        elif token["repeat"]:
            # JavaScript has no possessive repeats.
            spelling = spelling.removesuffix("+") if len(spelling) > 1 else spelling
            is_endless = token["repeat"] in "*+" or token["open"] == ","
            if (is_endless or token["repeat"][0] == "{") and last is not None and last.is_open:
                raise PatternRefused(
                    f"the pattern {source!r} repeats a part that can itself be matched in several "
                    "ways; such a pattern may take for ever"
                )
            if is_endless or token["open"]:
                groups[-1].is_open = True
                repeats += 1
            elif token["repeat"] == "?":
                groups[-1].is_open = True
        texts.append(spelling)
    return "".join(texts), repeats
