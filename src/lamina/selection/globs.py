"""Paths against globs as people write them in rule files.

`*` and `?` stop at a slash, `**` does not, `{a,b}` and `[abc]` mean what they mean in a shell. A
pattern without a slash is about the name alone, wherever the file lies.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

# Each pair of braces multiplies patterns; nobody means more than this.
MOST_CHOICES = 256


def first_match(globs: Iterable[str], paths: Sequence[str]) -> str:
    """The first of `paths` that one of the globs matches; empty if none does."""
    compiled = [pattern for glob in globs for pattern in compile_glob(glob)]
    for path in paths:
        if any(pattern.fullmatch(path) for pattern in compiled):
            return path
    return ""


@lru_cache(maxsize=1024)
def compile_glob(glob: str) -> tuple[re.Pattern[str], ...]:
    text = glob.strip().removeprefix("./").lstrip("/")
    if not text:
        return ()
    if text.endswith("/"):
        text += "**"
    if "/" not in text and text != "**":
        text = f"**/{text}"
    # Runs of stars say no more than one, and would make hostile patterns slow.
    text = re.sub(r"(\*\*/)+", "**/", re.sub(r"\*{3,}", "**", text))
    return tuple(map(_compile, _choices(text)))


def _compile(glob: str) -> re.Pattern[str]:
    try:
        return re.compile(_translate(glob), re.DOTALL)
    except re.error:
        return re.compile(re.escape(glob))  # [z-a] means nothing: the pattern is its own name


def _choices(glob: str) -> list[str]:
    """The glob without braces: `*.{ts,tsx}` is two."""
    done: list[str] = []
    todo = [glob]
    while todo and len(done) + len(todo) <= MOST_CHOICES:
        each = todo.pop(0)
        braces = re.search(r"\{([^{}]*)\}", each)
        if braces is None or "," not in braces[1]:
            done.append(each)
            continue
        head, tail = each[: braces.start()], each[braces.end() :]
        todo += [f"{head}{choice.strip()}{tail}" for choice in braces[1].split(",")]
    return done


def _translate(glob: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        elif glob[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            parts.append("[^/]")
            at += 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            inside = glob[at + 1 : end].replace("\\", "\\\\")
            inside = f"^{inside[1:]}" if inside[:1] == "!" else inside
            parts.append(f"[{inside}]")
            at = end + 1
        else:
            parts.append(re.escape(glob[at]))
            at += 1
    return "".join(parts)
