"""Shortens a text that is too long to its beginning and its end.

Law: a cut text says so, and how long it was.
"""

from collections.abc import Callable


def cut_text(text: str, limit: int, describe_rest: Callable[[int, int], str] | None = None) -> str:
    """Return the text, or its beginning and end with a note between them; never longer than
    `limit`. `describe_rest` says how to read the text between two positions; the note includes
    that."""
    if len(text) <= limit:
        return text
    end = len(text)
    # The longest possible note: it is made before the cut's position is known.
    room = limit - len(_make_note(text, limit, describe_rest(end, end) if describe_rest else ""))
    if room < 2:
        return text[:limit]
    # The beginning shows the subject of a result, the end its outcome.
    tail = room // 4
    first, last = room - tail, end - tail
    note = _make_note(text, limit, describe_rest(first, last) if describe_rest else "")
    return f"{text[:first]}{note}{text[last:]}"


def brief(text: str, width: int = 0) -> str:
    """Return a text on one line, of at most `width` characters if given."""
    line = " ".join(text.split())
    return line if not width or len(line) <= width else f"{line[: width - 1].rstrip()}…"


def _make_note(text: str, limit: int, rest: str) -> str:
    shown = f"{len(text):,} characters in all, at most {limit:,} are shown"
    return f"\n[… cut here: {'; '.join(filter(None, (shown, rest)))} …]\n"
