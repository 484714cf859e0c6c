"""Reads YAML and JSON values with their line numbers, and collects the problems found.

Laws: a value of the wrong type is reported with its line, and the default is used. YAML yields only
strings, numbers, lists and objects; a document that aliases expand endlessly is refused, and
duplicate names are reported. JSON yields the same values as YAML.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import mend_text
from lamina.core.values.agent import Problem

if TYPE_CHECKING:
    from yaml.nodes import Node


# The limit per file: nobody reads more, and a hostile file may have thousands.
MAX_PROBLEMS = 200


class ProblemList:
    """Problems in order of discovery, without duplicates."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}
        self._counts: Counter[str] = Counter()

    def error(self, path: str, problem: str, line: int | None = None) -> None:
        self.add(path, problem, line, "error")

    def warn(self, path: str, problem: str, line: int | None = None) -> None:
        self.add(path, problem, line, "warning")

    def add(
        self, path: str, problem: str, line: int | None, level: Literal["error", "warning"]
    ) -> None:
        entry = Problem(path=path, problem=problem, line=line, level=level)
        if entry in self._problems or self._counts[path] > MAX_PROBLEMS:
            return
        self._counts[path] += 1
        if self._counts[path] > MAX_PROBLEMS:
            more = f"has more than {MAX_PROBLEMS} problems; the others are not shown"
            entry = Problem(path=path, problem=more)
        self._problems[entry] = None

    @property
    def all(self) -> tuple[Problem, ...]:
        return tuple(self._problems)


_MARKS = re.compile(r"[{},]")


class Field(Struct, frozen=True, kw_only=True):
    """A value as plain data. `text` is a scalar as written, so that version 1.10 is not 1.1;
    `entries` and `items` belong to an object or a list."""

    line: int
    data: Any = None
    text: str = ""
    entries: dict[str, "Field"] = {}
    items: tuple["Field", ...] = ()

    @property
    def is_object(self) -> bool:
        return isinstance(self.data, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.data, list)

    @property
    def is_scalar(self) -> bool:
        return not self.is_object and not self.is_list

    @property
    def kind(self) -> str:
        if self.is_object or self.is_list:
            return "an object" if self.is_object else "a list"
        return "nothing" if self.data is None else repr(self.data)

    @property
    def spelling(self) -> str:
        """Return the value as written in the file, for a message."""
        return repr(self.text) if self.is_scalar else self.kind


class UnreadableText(Exception):
    """The text is not valid YAML or JSON, or is refused."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


def report_twin(
    entries: Mapping[str, Field], name: str, path: str, problems: ProblemList, line: int
) -> None:
    """Report a duplicate name."""
    if name in entries:
        earlier = entries[name].line
        problem = f"{name!r} is written twice, at line {earlier} and here; this counts"
        problems.error(path, problem, line)


class Sheet:
    """An object whose entries are read by name; `finish` reports unread ones."""

    def __init__(
        self,
        entries: Mapping[str, Field],
        path: str,
        problems: ProblemList,
        line: int | None = None,
    ) -> None:
        self.entries = entries
        self.path = path
        self.problems = problems
        self.line = line
        self._known_names: set[str] = set()

    def has(self, name: str) -> bool:
        return self._find(name) is not None

    def line_of(self, name: str) -> int | None:
        field = self.entries.get(name)
        return field.line if field else self.line

    def field(self, name: str) -> Field | None:
        self._known_names.add(name)
        return self._find(name)

    def _find(self, name: str) -> Field | None:
        field = self.entries.get(name)
        return field if field is not None and field.data is not None else None

    def complain(self, name: str, problem: str) -> None:
        self.problems.error(self.path, f"{name}: {problem}", self.line_of(name))

    def text(self, name: str, default: str = "") -> str:
        field = self.field(name)
        if field is None:
            return default
        if not field.is_scalar:
            self.complain(name, f"has to be a text, not {field.kind}")
            return default
        return field.text

    def whole_number(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer, moved into the allowed range."""
        field = self.field(name)
        if field is None:
            return default
        value = number_of(field)
        if not isinstance(value, int):
            problem = f"has to be a whole number from {low} to {high}, not {field.kind}"
            self.complain(name, f"{problem}; {default} is used")
            return default
        near = min(max(value, low), high)
        if near != value:
            self.complain(name, f"is {value}, and goes from {low} to {high}; {near} is used")
        return near

    def flag(self, name: str) -> bool | None:
        field = self.field(name)
        if field is None:
            return None
        if isinstance(field.data, bool):
            return field.data
        if field.text.strip().lower() in ("true", "false"):
            return field.text.strip().lower() == "true"
        self.complain(name, f"has to be true or false, not {field.kind}")
        return None

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        field = self.field(name)
        if field is None:
            return default
        word = field.text.strip() if field.is_scalar else ""
        if word in choices:
            return word
        if word.lower() in choices:
            return word.lower()
        problem = f"has to be one of {', '.join(choices)}, not {field.spelling}; {default} is used"
        self.complain(name, problem)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings in a list or in a comma-separated string."""
        field = self.field(name)
        if field is None:
            return ()
        if field.is_object:
            self.complain(name, "has to be a list of texts, not an object")
            return ()
        if field.is_scalar:
            return split_commas(field.text)
        for item in field.items:
            if not item.is_scalar:
                problem = f"{name}: has to be a list of texts, and holds {item.kind}"
                self.problems.error(self.path, problem, item.line)
        parts = (part for item in field.items if item.is_scalar for part in split_commas(item.text))
        return tuple(dict.fromkeys(parts))

    def object(self, name: str) -> Mapping[str, Field]:
        field = self.field(name)
        if field is None:
            return {}
        if not field.is_object:
            self.complain(name, f"has to be an object, not {field.kind}")
            return {}
        return field.entries

    def sheet(self, name: str) -> "Sheet":
        return Sheet(self.object(name), self.path, self.problems, self.line_of(name))

    def ignore(self, *names: str) -> None:
        """Mark entries as known but unused here."""
        self._known_names.update(names)

    def finish(self) -> None:
        """Warn about entries that were not read."""
        names = sorted(self._known_names)
        for name, field in self.entries.items():
            if name not in self._known_names:
                near = get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
                problem = f"{name!r} means nothing here and is not used; {hint}"
                self.problems.warn(self.path, problem, field.line)


def number_of(field: Field) -> int | float | None:
    """Return a number, even if it is written as a string."""
    value = field.data
    if isinstance(value, bool):
        return None
    if re.fullmatch(r"[+-]?0\d+", field.text.strip()):
        return int(field.text)  # 042 is a zero-padded number, not an octal one
    if isinstance(value, int | float):
        return value
    for form in (int, float):
        try:
            return form(field.text) if isinstance(value, str) else None
        except ValueError:
            continue
    return None


def split_commas(text: str) -> tuple[str, ...]:
    """Return the parts between commas; commas inside braces do not count, as in `**/*.{ts,tsx}`."""
    parts, start, depth = [], 0, 0
    for mark in _MARKS.finditer(text):
        depth = max(0, depth + {"{": 1, "}": -1, ",": 0}[mark[0]])
        if mark[0] == "," and not depth:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)


# Some agents keep long text in YAML; only a large number of values is slow to read.
MAX_CHARACTERS = 1_000_000
MAX_VALUES = 20_000
_STANDARD = "tag:yaml.org,2002:"
_PLAIN = {"str", "int", "float", "bool", "null", "timestamp", "binary", "value", "map", "seq"}


def read_yaml(text: str, path: str, problems: ProblemList, first_line: int = 1) -> Field | None:
    """Return the single document in a YAML text that begins at the given line of its file; None if
    it is empty.

    Raises:
        UnreadableText: it is not valid YAML, or is refused.
    """
    import yaml

    if len(text) > MAX_CHARACTERS:
        problem = f"{len(text):,} characters of YAML are over the limit of {MAX_CHARACTERS:,}"
        raise UnreadableText(problem, first_line)
    try:
        loader = _loader(text, first_line)
        try:
            node = loader.get_single_node()
            return _YamlReader(loader, path, problems, first_line).read(node) if node else None
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise UnreadableText(*_explain(error, text, first_line)) from error
    except RecursionError as error:
        raise UnreadableText("it is nested too deep to be read", first_line) from error


def _loader(text: str, first_line: int) -> Any:
    """Return a loader that stops at too many values. The C loader is faster, but deeply nested
    brackets crash the process."""
    import yaml

    class Loader(yaml.SafeLoader):
        events = 0

        def get_event(self) -> Any:
            self.events += 1
            if self.events > MAX_VALUES:
                raise UnreadableText(f"it holds more than {MAX_VALUES:,} values", first_line)
            return super().get_event()  # type: ignore[no-untyped-call]

    return Loader(text)


class _YamlReader:
    def __init__(self, loader: Any, path: str, problems: ProblemList, first_line: int) -> None:
        self._loader = loader
        self._path = path
        self._problems = problems
        self._first = first_line
        self._count = 0
        self._open: set[int] = set()

    def read(self, node: "Node") -> Field:
        from yaml.nodes import MappingNode, SequenceNode

        line = node.start_mark.line + self._first
        self._count += 1
        if self._count > MAX_VALUES or id(node) in self._open:
            raise UnreadableText("it is refused: its aliases repeat it without end", line)
        self._check_tag(node, line)
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                entries = self._entries(node)
                data = {name: field.data for name, field in entries.items()}
                return Field(line=line, data=data, entries=entries)
            if isinstance(node, SequenceNode):
                items = tuple(self.read(member) for member in node.value)
                return Field(line=line, data=[item.data for item in items], items=items)
            # Lone surrogates can be written as escapes but not sent.
            node.value = mend_text(node.value)
            return Field(line=line, data=self._scalar(node), text=node.value)
        finally:
            self._open.remove(id(node))

    def _entries(self, node: Any) -> dict[str, Field]:
        from yaml.nodes import ScalarNode

        entries: dict[str, Field] = {}
        for key, value in node.value:
            line = key.start_mark.line + self._first
            if not isinstance(key, ScalarNode):
                self._problems.error(self._path, "a list or an object cannot be a name", line)
                continue
            if key.tag == f"{_STANDARD}merge":
                self._problems.error(self._path, "'<<' is not read; write its entries out", line)
                continue
            field, name = self.read(value), mend_text(key.value)
            report_twin(entries, name, self._path, self._problems, line)
            entries[name] = replace(field, line=line)
        return entries

    def _check_tag(self, node: "Node", line: int) -> None:
        name = node.tag.removeprefix(_STANDARD)
        if name == node.tag or name not in _PLAIN:
            problem = f"the tag {node.tag!r} is not read; what it stands on is taken as it is"
            self._problems.error(self._path, problem, line)

    def _scalar(self, node: Any) -> Any:
        if node.tag.removeprefix(_STANDARD) in ("int", "float", "bool", "null"):
            with suppress(ValueError):
                return self._loader.construct_object(node)
        return node.value


def _explain(error: Any, text: str, first_line: int) -> tuple[str, int | None]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        return problem, mark.line + first_line
    position = getattr(error, "position", None)
    if isinstance(position, int):
        line = text[:position].count("\n") + first_line
        return f"a character that YAML does not allow ({text[position]!r})", line
    return str(error), first_line


_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 100
# Only used at a quote; raw line breaks in a string are harmless.
_STRINGS = JSONDecoder(strict=False)


def read_json(text: str, path: str, problems: ProblemList) -> Field:
    """Parse a JSON text.

    Raises:
        UnreadableText: it is not valid JSON.
    """
    if len(text) > MAX_CHARACTERS:
        problem = f"{len(text):,} characters of JSON are over the limit of {MAX_CHARACTERS:,}"
        raise UnreadableText(problem, 1)
    reader = _JsonReader(text, path, problems)
    field, end = reader.value(reader.skip(0), 0)
    if reader.skip(end) != len(text):
        raise reader.wrong(reader.skip(end), "something follows what should be all")
    return field


class _JsonReader:
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
        if self._count > MAX_VALUES:
            raise UnreadableText(f"it holds more than {MAX_VALUES:,} values", line)
        if depth > _MAX_DEPTH:
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
