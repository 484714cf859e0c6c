"""JSON as fields: the same values as from YAML, with their lines."""

import re
from bisect import bisect_left
from json import JSONDecodeError, JSONDecoder

from msgspec.structs import replace

from lamina.adapters.agents.fields import Field, UnreadableText, report_twin
from lamina.adapters.agents.problems import ProblemList
from lamina.adapters.agents.yaml_fields import MOST_CHARACTERS, MOST_VALUES
from lamina.core.codec import mend_text

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_MOST_DEPTH = 100
# Only used at a quote; raw line breaks in a text do no harm.
_STRINGS = JSONDecoder(strict=False)


def read_json(text: str, path: str, problems: ProblemList) -> Field:
    """The value that a text holds.

    Raises:
        UnreadableText: it is not JSON.
    """
    if len(text) > MOST_CHARACTERS:
        problem = f"{len(text):,} characters of JSON are over the limit of {MOST_CHARACTERS:,}"
        raise UnreadableText(problem, 1)
    reader = _Reader(text, path, problems)
    field, end = reader.value(reader.skip(0), 0)
    if reader.skip(end) != len(text):
        raise reader.wrong(reader.skip(end), "something follows what should be all")
    return field


class _Reader:
    def __init__(self, text: str, path: str, problems: ProblemList) -> None:
        self._text = text
        self._path = path
        self._problems = problems
        self._count = 0
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def wrong(self, at: int, problem: str) -> UnreadableText:
        hint = "comments and trailing commas are not JSON"
        return UnreadableText(f"it is no JSON: {problem} ({hint})", self._line(at))

    def _line(self, at: int) -> int:
        return bisect_left(self._ends, at) + 1

    def value(self, at: int, depth: int) -> tuple[Field, int]:
        line, first = self._line(at), self._text[at : at + 1]
        self._count += 1
        if self._count > MOST_VALUES:
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
            text, end = self._string(at)
            return Field(line=line, data=text, text=text), end
        match = _SCALAR.match(self._text, at)
        if not match:
            raise self.wrong(at, f"a value is missing where {first or 'the text ends'!r} stands")
        return Field(line=line, data=self._scalar(match), text=match[0]), match.end()

    def _scalar(self, match: re.Match[str]) -> object:
        if match[0] in _WORDS:
            return _WORDS[match[0]]
        try:
            return float(match[0]) if match[1] or match[2] else int(match[0])
        except ValueError:
            return match[0]  # a number of thousands of digits

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = _STRINGS.raw_decode(self._text, at)
        except JSONDecodeError as error:
            raise self.wrong(error.pos, error.msg) from error
        return mend_text(text), end

    def _entries(self, at: int, depth: int) -> tuple[dict[str, Field], int]:
        entries: dict[str, Field] = {}
        at = self.skip(at)
        while self._text[at : at + 1] != "}":
            if entries:
                at = self._after(at, ",")
            if self._text[at : at + 1] != '"':
                raise self.wrong(at, "a name in quotes is missing")
            line = self._line(at)
            name, at = self._string(at)
            field, at = self.value(self._after(self.skip(at), ":"), depth + 1)
            report_twin(entries, name, self._path, self._problems, line)
            entries[name] = replace(field, line=line)
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
