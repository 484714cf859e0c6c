"""Replaces one text with another in a file.

Law: everything except the replaced places stays byte for byte as it was: line ends, a missing one
at the end, a byte order mark. An ambiguous edit changes nothing.
"""

from msgspec import Struct

from lamina.adapters.workspace.file_actions.view import ends_in_crlf, plural
from lamina.errors import UsageError

# Beyond this, counting stops.
_MAX_COUNTED = 1000
_LINES_NAMED = 5


class TextEdit(Struct, frozen=True, kw_only=True):
    """The new text, the number of replacements, and the lines of the first few."""

    text: str
    count: int
    lines: tuple[int, ...]


def edit_text(path: str, text: str, old: str, new: str, *, replace_all: bool) -> TextEdit:
    """Return the text with `new` in place of `old`. If all line ends of the text are CRLF, a line
    break in `old` and `new` means CRLF too.

    Raises:
        UsageError: `old` is empty, the same as `new`, missing, or occurs more than once.
    """
    if not old:
        raise UsageError(
            f"{path}: the text to replace is empty; give some of what the file holds, or write "
            f"the whole file"
        )
    if ends_in_crlf(text):
        old, new = _to_crlf(old), _to_crlf(new)
    if old == new:
        raise UsageError(f"{path}: the new text is the same as the old one; nothing would change")
    places = _places(text, old)
    if not places:
        raise UsageError(f"{path}: the text to replace is not there{_hint(text, old)}")
    lines = tuple(dict.fromkeys(_line(text, place) for place in places[:_LINES_NAMED]))
    if len(places) > 1 and not replace_all:
        many = "at least " if len(places) >= _MAX_COUNTED else ""
        raise UsageError(
            f"{path}: the text to replace is there {many}{len(places):,} times (first in "
            f"{say_lines(lines)}); give more of what stands around the one that is meant, or "
            f"replace_all=true"
        )
    return TextEdit(text=text.replace(old, new), count=text.count(old), lines=lines)


def say_lines(lines: tuple[int, ...]) -> str:
    numbers = ", ".join(str(line) for line in lines)
    return f"line {numbers}" if len(lines) == 1 else f"lines {numbers}"


def _to_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> list[int]:
    """Return where `old` begins, including overlapping places, which make an edit ambiguous."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < _MAX_COUNTED:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _hint(text: str, old: str) -> str:
    """Return a hint about a near match; models most often get blanks and case wrong."""
    content, words = " ".join(text.split()), " ".join(old.split())
    if words and words in content:
        return "; it is there with other blanks or line breaks: read the file and copy it exactly"
    if words and words.casefold() in content.casefold():
        return "; it is there in other case: read the file and copy it exactly"
    first = next((line for line in old.splitlines() if line.strip()), "")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if first and first in line]
    if lines:
        return (
            f"; its first line stands in {plural(len(lines), 'line')} (first in line {lines[0]}), "
            f"but goes on otherwise: read the file and copy it exactly"
        )
    return "; read the file and copy it exactly"
