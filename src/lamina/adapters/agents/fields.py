"""The values of a YAML or JSON file with their lines.

Law: a value of the wrong kind is a problem at its line and counts as its default.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from lamina.adapters.agents.problems import ProblemList

_MARKS = re.compile(r"[{},]")


class Field(Struct, frozen=True, kw_only=True):
    """A value as plain data. `text` is a scalar as it is written, so that version 1.10 is not 1.1;
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
        """What the file says, in a message."""
        return repr(self.text) if self.is_scalar else self.kind


class UnreadableText(Exception):
    """A text that is not YAML or JSON, or that we refuse to read."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


def report_twin(
    entries: Mapping[str, Field], name: str, path: str, problems: ProblemList, line: int
) -> None:
    """Complains of a name that is there already."""
    if name in entries:
        earlier = entries[name].line
        problem = f"{name!r} is written twice, at line {earlier} and here; this counts"
        problems.error(path, problem, line)


class Sheet:
    """The entries of an object, read by name; `finish` reports those that were not read."""

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
        """A whole number, or the nearest allowed one."""
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
        """The texts of a list, or of a comma-separated text."""
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
        """Marks entries as known but not used here."""
        self._known_names.update(names)

    def finish(self) -> None:
        """Warns of entries that were not read."""
        names = sorted(self._known_names)
        for name, field in self.entries.items():
            if name not in self._known_names:
                near = get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
                problem = f"{name!r} means nothing here and is not used; {hint}"
                self.problems.warn(self.path, problem, field.line)


def number_of(field: Field) -> int | float | None:
    """A number, even if it is written as a text."""
    value = field.data
    if isinstance(value, bool):
        return None
    if re.fullmatch(r"[+-]?0\d+", field.text.strip()):
        return int(field.text)  # 042 is how levels are shown, not an octal number
    if isinstance(value, int | float):
        return value
    for form in (int, float):
        try:
            return form(field.text) if isinstance(value, str) else None
        except ValueError:
            continue
    return None


def split_commas(text: str) -> tuple[str, ...]:
    """Parts between commas; commas inside braces do not count, as in `**/*.{ts,tsx}`."""
    parts, start, depth = [], 0, 0
    for mark in _MARKS.finditer(text):
        depth = max(0, depth + {"{": 1, "}": -1, ",": 0}[mark[0]])
        if mark[0] == "," and not depth:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)
