"""Reads the frontmatter of a note: the entries between two `---` lines.

Laws: frontmatter is recognised by its format alone, so every reader splits a note at the same line;
its values are JSON; if it is not YAML, it is read entry by entry, and that is reported. Endless
repetition is refused.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from lamina.core.codec import mend_text

if TYPE_CHECKING:
    from yaml.events import Event

# Frontmatter has few entries; a longer block is note text.
MAX_HEAD = 65_536
MAX_VALUES = 5_000
MAX_DEPTH = 32

_FENCE = "---"
_BLANKS = " \t\r"
# `name:` or the beginning of another way to write entries.
_ENTRY = re.compile(r"""[^\s#\-'"{\[:?][^\n]*?:(?=[ \t\r]|\Z)""")
_OTHER_ENTRY = re.compile(r"""[ \t]*(?:[{'"?]|[^\s#\-][^\n]*:(?:[ \t\r]|\Z))""")

# Most frontmatter consists of plain names, strings and lists, which need no parser. YAML reads
# everything that matches here in the same way: no inner quotes, no comments, no leading
# punctuation, no unprintable characters.
_INSIDE = r"""(?:[\w.,;/()@+\-'"!?%&*=<>|~$^]|:(?=[\w/])|\ (?=[^#\s]))"""
_WORDS = rf"(?:\w{_INSIDE}*+)"
_QUOTED = (
    r"""(?:"(?:[\w .,;:/()@+\-'!?%&*=<>|~$^#\[\]])*+"|'(?:[\w .,;:/()@+\-"!?%&*=<>|~$^#\[\]])*+')"""
)
_FLOW_WORDS = r"(?:\w[\w./()@+\-]*+(?:\ [\w./()@+\-]++)*+)"
_FLOW = rf"\[\ ?(?:{_FLOW_WORDS}(?:,\ ?{_FLOW_WORDS})*+)?+\ ?\]"
_PLAIN_LINE = re.compile(
    rf"(?P<name>[^\W\d_][\w\-]*+(?:\ [\w\-]++)*+):"
    rf"(?:\ ++(?:(?P<words>{_WORDS})|(?P<quoted>{_QUOTED})|(?P<flow>{_FLOW})))?+\ *+\r?"
    rf"|(?P<indent>\ {{0,8}})-\ (?:(?P<item>{_WORDS})|(?P<quoted_item>{_QUOTED}))\ *+\r?"
)

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ \t]+([0-9]{2}:[0-9]{2}\S*)")
_WORDS_OF_YAML: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAG = "tag:yaml.org,2002:"


class _HeadRefused(Exception):
    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


def split_frontmatter(text: str) -> tuple[str | None, str, int]:
    """Return the YAML of a note's frontmatter (None if it has none), the remaining text, and the
    line number where that text starts. Two fences with no entry between them are not
    frontmatter."""
    none = (None, text, 1)
    if not text.startswith(_FENCE):
        return none
    begin = text.find("\n") + 1
    if not begin or text[3:begin].strip(_BLANKS + "\n"):
        return none
    at = begin - 1
    while (at := text.find("\n---", at, MAX_HEAD)) >= 0:
        stop = text.find("\n", at + 1)
        stop = len(text) if stop < 0 else stop
        if not text[at + 4 : stop].strip(_BLANKS):
            head = text[begin : max(at, begin)]
            if not _has_entries(head):
                return none
            return head, text[stop + 1 :], text.count("\n", 0, at + 1) + 2
        at = stop
    return none


def is_unclosed(text: str) -> bool:
    """Return whether a note starts with a fence and an entry, but its frontmatter is not closed."""
    lines = text[:1_000].split("\n")
    return (
        lines[0].rstrip(_BLANKS) == _FENCE
        and len(lines) > 1
        and bool(_ENTRY.match(lines[1]))
        and split_frontmatter(text)[0] is None
    )


def read_properties(head: str, first_line: int = 2) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the frontmatter entries as JSON values, and any problems with their line numbers in
    the note."""
    plain = _read_plainly(head)
    if plain is not None:
        return plain, ()
    try:
        value, problems = _read_yaml(head, first_line)
    except _HeadRefused as refused:
        return _read_entries(head, first_line, refused)
    if isinstance(value, dict):
        return value, problems
    if value is None:
        return {}, problems
    kind = "a list" if isinstance(value, list) else "a single value"
    problem = f"line {first_line}: the frontmatter has to be entries like 'tags: a, b', not {kind}"
    return {}, (*problems, problem)


def _has_entries(head: str) -> bool:
    for line in head.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return bool(_OTHER_ENTRY.match(line))
    return True


def _read_plainly(head: str) -> dict[str, Any] | None:
    """Return the entries of frontmatter with plain lines; None if any line is not plain."""
    entries: dict[str, Any] = {}
    members: list[Any] | None = None
    indent, name, names = "", "", 0
    for line in head.split("\n"):
        match = _PLAIN_LINE.fullmatch(line)
        if not match:
            if line.strip(_BLANKS):
                return None
            continue
        if match["name"] is None:
            if members is None:
                return None
            if not members:
                indent, entries[name] = match["indent"], members
            elif indent != match["indent"]:
                return None
            text = match["item"]
            members.append(match["quoted_item"][1:-1] if text is None else read_scalar(text))
            continue
        name, names, members = match["name"], names + 1, None
        if (text := match["words"]) is not None:
            entries[name] = read_scalar(text)
        elif (string := match["quoted"]) is not None:
            entries[name] = string[1:-1]
        elif (flow := match["flow"]) is not None:
            inside = flow[1:-1].strip()
            entries[name] = (
                [read_scalar(part.strip()) for part in inside.split(",")] if inside else []
            )
        else:
            entries[name], members = None, []
    # Duplicate names have to be reported.
    return entries if names == len(entries) else None


def read_scalar(text: str) -> Any:
    """Return a plain value: null, true or false, a number that JSON can represent exactly, or else
    a string. A date with a time is written with a `T`."""
    if text in _WORDS_OF_YAML:
        return _WORDS_OF_YAML[text]
    if text[0] not in "0123456789+-.":
        return text
    if _INT.fullmatch(text):
        return int(text)
    if len(text) < 40 and _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < 1e300 else text
    moment = _MOMENT.fullmatch(text)
    return f"{moment[1]}T{moment[2]}" if moment else text


def _read_yaml(text: str, first_line: int) -> tuple[Any, tuple[str, ...]]:
    """Return the only YAML document in a string.

    Raises:
        _HeadRefused: it is not YAML, too deep, or repeats itself endlessly.
    """
    import yaml

    # Events, not nodes: the C composer recurses as deeply as the text is nested and crashes the
    # process.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        builder = _Builder(yaml.parse(text, Loader=loader), first_line)
        return builder.document(), tuple(builder.problems)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if mark is not None:
            problem = getattr(error, "problem", "") or "nothing can be made of it"
            raise _HeadRefused(problem, mark.line + first_line) from error
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position) + first_line
        raise _HeadRefused("a character stands there that YAML does not allow", line) from error


class _Builder:
    """A builder of JSON values from YAML events."""

    def __init__(self, events: "Iterator[Event]", first_line: int) -> None:
        self._events = events
        self._first = first_line
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0
        self.problems: list[str] = []

    def document(self) -> Any:
        value: Any = None
        documents = 0
        for event in self._events:
            match type(event).__name__:
                case "StreamStartEvent" | "StreamEndEvent" | "DocumentEndEvent":
                    continue
                case "DocumentStartEvent":
                    documents += 1
                    if documents > 1:
                        raise _HeadRefused("a second document begins there", self._line(event))
                case _:
                    value = self._value(event, 0)
        return value

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + self._first

    def _value(self, event: Any, depth: int) -> Any:
        before = self._values
        self._count(1, event)
        if depth > MAX_DEPTH:
            raise _HeadRefused(f"it is nested more than {MAX_DEPTH} deep", self._line(event))
        kind = type(event).__name__
        if kind == "AliasEvent":
            if event.anchor not in self._anchors:
                problem = f"the alias *{event.anchor} names nothing that stands before it"
                raise _HeadRefused(problem, self._line(event))
            value, size = self._anchors[event.anchor]
            self._count(size, event)
            return value
        if kind == "ScalarEvent":
            value = self._scalar(event)
        elif kind == "SequenceStartEvent":
            value = [self._value(member, depth + 1) for member in self._until("SequenceEndEvent")]
        else:
            value = self._mapping(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _count(self, values: int, event: Any) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            problem = f"it holds more than {MAX_VALUES:,} values, or its aliases repeat them"
            raise _HeadRefused(problem, self._line(event))

    def _until(self, end: str) -> Iterator[Any]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield event

    def _mapping(self, event: Any, depth: int) -> Any:
        entries: dict[str, Any] = {}
        for key in self._until("MappingEndEvent"):
            plain = type(key).__name__ == "ScalarEvent" and not key.anchor
            data: Any = mend_text(key.value) if plain else self._value(key, depth + 1)
            name = data if isinstance(data, str) else msgspec.json.encode(data).decode()
            if name in entries:
                problem = f"line {self._line(key)}: {name!r} is written twice; this one counts"
                self.problems.append(problem)
            entries[name] = self._value(next(self._events), depth + 1)
        return list(entries) if event.tag == f"{_TAG}set" else entries

    def _scalar(self, event: Any) -> Any:
        text = mend_text(event.value)
        is_plain = event.style in (None, "") and event.tag in (None, "")
        if is_plain or event.tag in (f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
            return read_scalar(text)
        return text


def _read_entries(
    head: str, first_line: int, refusal: _HeadRefused
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read frontmatter that is not YAML entry by entry; an unreadable entry is kept as a string."""
    entries: dict[str, Any] = {}
    problem = f"line {refusal.line}: the frontmatter is no YAML: {refusal.problem}; "
    texts: list[str] = []
    blocks: list[list[str]] = []
    for line in head.split("\n"):
        if _ENTRY.match(line):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    for block in blocks:
        text = "\n".join(block)
        name, _, rest = text.partition(":")
        try:
            value, _ = _read_yaml(text, first_line)
            entries |= value if isinstance(value, dict) else {}
        except _HeadRefused:
            entries[name.strip()] = mend_text(rest.strip())
            texts.append(name.strip())
    names = ", ".join(map(repr, texts[:5])) or "nothing"
    return entries, (f"{problem}its entries were read one by one, {names} as text",)
