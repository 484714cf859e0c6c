"""What the text of a field means: a number, a date, a span, a link, a list of these, or text.

Law: any text is a value. Links are made by whoever knows which note they stand in.
"""

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from lamina.core.notes.query.dates import read_date, read_span
from lamina.core.notes.query.values import PageLink, tidy

MakeLink = Callable[[str], PageLink]
MOST_MEMBERS = 1_000
# Deeper parts of a property are null.
MOST_DEEP = 20
_LINK = re.compile(r"(!?)\[\[([^\[\]\n]*)\]\]")
_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_TAG = re.compile(r"#[^\s'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\]+")
# Where one member of a list can end and the next one begin.
_COMMA = re.compile(r"\s*,\s*")
_MEMBER = re.compile(
    r"""!?\[\[[^\[\]\n]*\]\]|"(?:[^"\\]|\\.)*+"|[^,"\[\]]+""", re.DOTALL
)  # fmt: skip
_WORDS = {"true": True, "false": False, "True": True, "False": False, "null": None}


def read_field(text: str, make_link: MakeLink, zone: tzinfo | None) -> Any:
    """The value of an inline field; nothing is null."""
    text = text.strip()
    if not text:
        return None
    is_known, value = _read_one(text, make_link, zone)
    if is_known:
        return value
    if "," in text:
        members = _read_members(text, make_link, zone)
        if members is not None:
            return members
    return text


def _read_members(text: str, make_link: MakeLink, zone: tzinfo | None) -> tuple[Any, ...] | None:
    """The members of a list, each of which has to be a value by its form; None if it is text."""
    members: list[Any] = []
    at = 0
    while at < len(text):
        match = _MEMBER.match(text, at)
        is_known, value = _read_one(match[0].strip(), make_link, zone) if match else (False, None)
        comma = _COMMA.match(text, match.end()) if match else None
        if not is_known or match is None or (comma is None and match.end() < len(text)):
            return None
        members.append(value)
        if len(members) > MOST_MEMBERS:
            return None
        at = comma.end() if comma else len(text)
    return tuple(members)


def _read_one(text: str, make_link: MakeLink, zone: tzinfo | None) -> tuple[bool, Any]:
    """Whether a text is more than a text, and what it is then."""
    first = text[:1]
    if first.isdigit() or first == "-":
        if (date := read_date(text, zone)) is not None:
            return True, date
        if _NUMBER.fullmatch(text):
            return True, tidy(float(text) if "." in text else int(text))
        span = read_span(text)
        return span is not None, span
    if first in "![" and _LINK.fullmatch(text):
        return True, make_link(text)
    if first == '"' and (string := _STRING.fullmatch(text)):
        return True, string[1].replace('\\"', '"').replace("\\\\", "\\")
    if first == "#" and _TAG.fullmatch(text):
        return True, text
    return (True, _WORDS[text]) if text in _WORDS else (False, None)


def read_property(value: Any, make_link: MakeLink, zone: tzinfo | None, deep: int = 0) -> Any:
    """A value of the frontmatter: its texts may be dates, spans or links."""
    if deep > MOST_DEEP:
        return None
    match value:
        case str():
            first = value[:1]
            if first.isdigit() or first == "-":
                date = read_date(value, zone)
                return date if date is not None else read_span(value) or value
            if first in ("!", "[") and _LINK.fullmatch(value):
                return make_link(value)
            return value
        case dict():
            return {
                str(name): read_property(inner, make_link, zone, deep + 1)
                for name, inner in value.items()
            }
        case list() | tuple():
            return tuple(read_property(inner, make_link, zone, deep + 1) for inner in value)
        case int():
            return value if isinstance(value, bool) else tidy(value)
    return value


def sanitize_name(name: str) -> str:
    """The name of a field as queries can write it: small letters, hyphens for blanks."""
    spelling = re.sub(r"\s+", "-", name)
    # Behind the arrows come symbols and emoji.
    return "".join(c for c in spelling if c.isalnum() or c in "_-" or c > "\u2190").lower()


def merge_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name, and by the name that queries can write. What is there several times is a
    list of its values."""
    groups: dict[str, list[Any]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    sanitized: dict[str, list[Any]] = {}
    for name, values in groups.items():
        plain = sanitize_name(name)
        if plain and plain not in groups:
            sanitized.setdefault(plain, []).extend(values)
    return {
        name: values[0] if len(values) == 1 else tuple(values)
        for name, values in (groups | sanitized).items()
    }
