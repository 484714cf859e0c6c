"""Finds tags and fields in note text: `#tag`, `name:: value`, `[name:: value]`, `(name:: value)`.

Law: time is proportional to the length of a line, whatever it contains. Values are strings here;
callers interpret them.
"""

import re
from collections.abc import Iterator

# Characters that end a tag: white space, ASCII punctuation except `-`, `_` and `/`, and punctuation
# of other scripts. The joiner U+200D and the selectors do not: emoji need them.
_TAG = re.compile(
    "#([^\\s\\0#!\"$%&'()*+,.:;<=>?@^`{|}~\\[\\]\\\\"
    "\\u2000-\\u200c\\u200e-\\u206f\\u2e00-\\u2e7f\\u3000-\\u3020\\uff01-\\uff0f\\uff1a-\\uff20]+)"
)


def find_tags(plain_text: str) -> Iterator[str]:
    """Yield tags without `#`, in order; code must be masked beforehand."""
    for match in _TAG.finditer(plain_text):
        start = match.start()
        if start and not plain_text[start - 1].isspace():
            continue
        tag = match[1].strip("/")
        if not tag.replace("/", "").isdigit() and any(map(_says_something, tag)):
            yield tag


def _says_something(character: str) -> bool:
    return character.isalnum() or not character.isascii()


# Longer lines are data, not sentences.
MAX_CHARACTERS = 32_768
MAX_FIELDS = 200
_CLOSING = {"[": "]", "(": ")"}
_BRACKET = re.compile(r"[\[\]()]")
# A name may be decorated, as in `**Due date**:: 2026-01-31`, and may be in a quote.
_DECORATION = re.compile(r"[^\w]*+")
_DECORATION_END = re.compile(r"[_*~`]*\Z")
_NAME = re.compile(r"(?:[\w\s/\-]|[^\x00-\x7f])*+")
_DAY = r"\ufe0f?\s*(\d{4}-\d{2}-\d{2})"
# Emoji used by task plugins in place of names.
_SHORTHANDS = {
    "created": re.compile(f"\u2795{_DAY}"),
    "start": re.compile(f"\U0001f6eb{_DAY}"),
    "scheduled": re.compile(f"[\u23f3\u231b]{_DAY}"),
    "due": re.compile(f"[\U0001f4c5\U0001f4c6\U0001f5d3]{_DAY}"),
    "completion": re.compile(f"\u2705{_DAY}"),
}


def find_fields(line: str, *, whole_line: bool = True) -> list[tuple[str, str]]:
    """Return the fields in a line: those in brackets, or else the one that fills the whole line."""
    if "::" not in line or len(line) > MAX_CHARACTERS:
        return []
    fields = _find_bracketed(line)
    if not fields and whole_line and (field := _read_whole_line(line)):
        return [field]
    return fields


def find_shorthands(text: str) -> list[tuple[str, str]]:
    """Return the dates written after an emoji: when a task is due, was done and so on."""
    if text.isascii():
        return []
    matches = ((name, pattern.search(text)) for name, pattern in _SHORTHANDS.items())
    return [(name, match[1]) for name, match in matches if match]


def _find_bracketed(line: str) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    ends = dict.fromkeys(_CLOSING, 0)
    opening = -1
    at = 0
    for _ in range(MAX_FIELDS):
        separator = line.find("::", at)
        if separator < 0:
            break
        # The nearest bracket before it; names contain none.
        for bracket in _BRACKET.finditer(line, at, separator):
            opening = bracket.start()
        at = separator + 2
        if opening < 0 or line[opening] not in _CLOSING or opening < ends[line[opening]]:
            continue
        name = line[opening + 1 : separator].strip()
        end = _find_closing(line, at, line[opening])
        if end is not None and name:
            fields.append((name, line[at:end].strip()))
            ends[line[opening]] = end + 1
    return fields


def _find_closing(line: str, start: int, opening: str) -> int | None:
    """Return the position of the bracket that closes the one opened before `start`; nested brackets
    are paired."""
    depth, is_escaped = 0, False
    for at in range(start, len(line)):
        character = line[at]
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == opening:
            depth += 1
        elif character == _CLOSING[opening]:
            depth -= 1
            if depth < 0:
                return at
    return None


def _read_whole_line(line: str) -> tuple[str, str] | None:
    spelling, _, value = line.partition("::")
    start = _DECORATION.match(spelling)
    name = _NAME.match(spelling, start.end() if start else 0)
    if name is None or not _DECORATION_END.match(spelling, name.end()):
        return None
    plain = name[0].strip("_").strip()
    return (plain, value.strip()) if plain else None
