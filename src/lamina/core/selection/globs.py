"""Matches paths against globs as people write them in rule files.

`*` and `?` stop at a slash, `**` does not, `{a,b}` and `[abc]` work as in a shell. A pattern
without a slash matches the name alone, wherever the file is.

Law: whatever a pattern contains, time is bounded by its length times that of the path: rules come
from others, and must not hang a session.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

# Each pair of braces multiplies patterns; no real pattern needs more than this.
MAX_CHOICES = 256

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY = re.compile(r"[^/]", re.DOTALL)
# A character, or one of several; `*`: any within a name; `**`: any at all; `**/`: folders, each
# with its slash.
GlobToken = str | re.Pattern[str]


class Glob(Struct, frozen=True, kw_only=True):
    """A compiled glob. Everything it matches has its `ending`, which is quick to check."""

    tokens: tuple[GlobToken, ...]
    ending: str


def first_match(globs: Iterable[str], paths: Sequence[str]) -> str:
    """Return the first of `paths` that one of the globs matches; empty if none does."""
    patterns = [glob for pattern in globs for glob in compile_glob(pattern)]
    for path in paths:
        if any(path.endswith(glob.ending) and _matches(glob.tokens, path) for glob in patterns):
            return path
    return ""


@lru_cache(maxsize=1024)
def compile_glob(glob: str) -> tuple[Glob, ...]:
    """Compile a glob once for each choice of its braces."""
    text = glob.strip().removeprefix("./").lstrip("/")
    if not text:
        return ()
    if text.endswith("/"):
        text += "**"
    if "/" not in text and text != "**":
        text = f"**/{text}"
    return tuple(map(_compile, _choices(text)))


def _compile(glob: str) -> Glob:
    tokens = tuple(_tokens(glob))
    ending = ""
    for token in reversed(tokens):
        if not isinstance(token, str) or token.startswith("*"):
            break
        ending = token + ending
    return Glob(tokens=tokens, ending=ending)


def _choices(glob: str) -> list[str]:
    """Return the glob without braces: `*.{ts,tsx}` becomes two. With too many braces it is taken
    literally."""
    choices: list[str] = []
    todo = [glob]
    while todo:
        if len(choices) + len(todo) > MAX_CHOICES:
            return [glob]
        pattern = todo.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            choices.append(pattern)
            continue
        head, tail = pattern[: braces.start()], pattern[braces.end() :]
        todo += [f"{head}{choice.strip()}{tail}" for choice in braces[1].split(",")]
    return choices


def _tokens(glob: str) -> list[GlobToken]:
    tokens: list[GlobToken] = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            tokens.append("**/")
            at += 3
        elif glob.startswith("**", at):
            tokens.append("**")
            at += len(glob) - at - len(glob[at:].lstrip("*"))
        elif glob[at] == "*":
            tokens.append("*")
            at += 1
        elif glob[at] == "?":
            tokens.append(_ANY)
            at += 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            tokens += _class(glob[at : end + 1])
            at = end + 1
        else:
            tokens.append(glob[at])
            at += 1
    return tokens


def _class(text: str) -> list[GlobToken]:
    """Parse `[abc]`, `[a-z]` or `[!a]`; a meaningless class, such as `[z-a]`, is taken
    literally."""
    inside = re.sub(r"([\\\[&~|])", r"\\\1", text[1:-1])
    inside = f"^{inside[1:]}" if inside[:1] in "!^" else inside
    try:
        return [re.compile(f"(?!/)[{inside}]", re.DOTALL)]
    except re.error:
        return list(text)


def _matches(tokens: Sequence[GlobToken], path: str) -> bool:
    """Walk the path once, tracking all possible places in the pattern."""
    last = len(tokens)
    places = _onward(tokens, {0}, folder=True)
    for letter in path:
        next_places: set[int] = set()
        for place in places:
            if place == last:
                continue
            token = tokens[place]
            if token in ("**", "**/") or (token == "*" and letter != "/"):
                next_places.add(place)
            elif token == letter or (isinstance(token, re.Pattern) and token.fullmatch(letter)):
                next_places.add(place + 1)
        places = _onward(tokens, next_places, folder=letter == "/")
        if not places:
            return False
    return last in places


def _onward(tokens: Sequence[GlobToken], places: set[int], *, folder: bool) -> set[int]:
    """Return the places, and those after parts that may match nothing; folders end only at a
    slash."""
    todo = list(places)
    while todo:
        place = todo.pop()
        passes = place < len(tokens) and (
            tokens[place] in ("*", "**") or (tokens[place] == "**/" and folder)
        )
        if passes and place + 1 not in places:
            places.add(place + 1)
            todo.append(place + 1)
    return places
