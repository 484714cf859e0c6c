"""JSON as fields: the same values as YAML gives, with their lines."""

import re
from bisect import bisect_left
from json import JSONDecodeError, JSONDecoder

from lamina.agents.fields import Field
from lamina.agents.problems import ProblemList
from lamina.agents.yaml_fields import MOST_CHARACTERS, MOST_VALUES, UnreadableText
from lamina.codec import mend_text

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_MOST_DEPTH = 100
# Only ever set upon a quote; raw line breaks in a text cost nobody anything.
_STRINGS = JSONDecoder(strict=False)


def read_json(text: str, path: str, notes: ProblemList) -> Field:
    """The value that a text holds.

    Raises:
        UnreadableText: it is no JSON.
    """
    if len(text) > MOST_CHARACTERS:
        problem = f"{len(text):,} characters of JSON are over the limit of {MOST_CHARACTERS:,}"
        raise UnreadableText(problem, 1)
    reader = _Reader(text, path, notes)
    field, end = reader.value(reader.skip(0), 0)
    if reader.skip(end) != len(text):
        raise reader.wrong(reader.skip(end), "something follows what should be all")
    return field


class _Reader:
    def __init__(self, text: str, path: str, notes: ProblemList) -> None:
        self._text = text
        self._path = path
        self._notes = notes
        self._read = 0
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def wrong(self, at: int, problem: str) -> UnreadableText:
        hint = "comments and trailing commas are not JSON"
        return UnreadableText(f"it is no JSON: {problem} ({hint})", self._line(at))

    def _line(self, at: int) -> int:
        return bisect_left(self._ends, at) + 1

    def value(self, at: int, depth: int) -> tuple[Field, int]:
        line, first = self._line(at), self._text[at : at + 1]
        self._read += 1
        if self._read > MOST_VALUES:
            raise UnreadableText(f"it holds more than {MOST_VALUES:,} values", line)
        if depth > _MOST_DEPTH:
            raise self.wrong(at, "it is nested too deep to be read")
        if first == "{":
            entries, end = self._entries(at + 1, depth)
            data = {name: field.data for name, field in entries.items()}
            return Field(line=line, data=data, entries=entries), end
        if first == "[":
            items, end = self._items(at + 1, depth)
            return Field(line=line, data=[item.data for item in items], items=items), end
        if first == '"':
            said, end = self._string(at)
            return Field(line=line, data=said, text=said), end
        found = _SCALAR.match(self._text, at)
        if not found:
            raise self.wrong(at, f"a value is missing where {first or 'the text ends'!r} stands")
        return Field(line=line, data=self._scalar(found), text=found[0]), found.end()

    def _scalar(self, found: re.Match[str]) -> object:
        if found[0] in _WORDS:
            return _WORDS[found[0]]
        try:
            return float(found[0]) if found[1] or found[2] else int(found[0])
        except ValueError:
            return found[0]  # a number of thousands of digits

    def _string(self, at: int) -> tuple[str, int]:
        try:
            said, end = _STRINGS.raw_decode(self._text, at)
        except JSONDecodeError as error:
            raise self.wrong(error.pos, error.msg) from error
        return mend_text(said), end

    def _entries(self, at: int, depth: int) -> tuple[dict[str, Field], int]:
        entries: dict[str, Field] = {}
        at = self.skip(at)
        while self._text[at : at + 1] != "}":
            if entries:
                at = self._after(at, ",")
            if self._text[at : at + 1] != '"':
                raise self.wrong(at, "a name in quotes is missing")
            start = at
            name, at = self._string(at)
            field, at = self.value(self._after(self.skip(at), ":"), depth + 1)
            if name in entries:
                earlier = entries[name].line
                problem = f"{name!r} is written twice, at line {earlier} and here; this counts"
                self._notes.error(self._path, problem, self._line(start))
            entries[name] = Field(
                line=self._line(start),
                data=field.data,
                text=field.text,
                entries=field.entries,
                items=field.items,
            )
            at = self.skip(at)
        return entries, at + 1

    def _items(self, at: int, depth: int) -> tuple[tuple[Field, ...], int]:
        items: list[Field] = []
        at = self.skip(at)
        while self._text[at : at + 1] != "]":
            if items:
                at = self._after(at, ",")
            field, at = self.value(at, depth + 1)
            items.append(field)
            at = self.skip(at)
        return tuple(items), at + 1

    def _after(self, at: int, mark: str) -> int:
        if self._text[at : at + 1] != mark:
            raise self.wrong(at, f"{mark!r} is missing")
        return self.skip(at + 1)
