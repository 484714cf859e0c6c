"""What stands in a YAML or JSON file, each value with its line.

Law: a value of the wrong kind is a problem at its line and reads as its default.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from lamina.agents.problems import ProblemList

_MARKS = re.compile(r"[{},]")


class Field(Struct, frozen=True, kw_only=True):
    """A value as plain data. `text` is a scalar as it is written, so that version 1.10 is not 1.1;
    `entries` and `items` are those of an object or a list."""

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


class Sheet:
    """The entries of an object, taken by name; what nobody took is reported by `finish`."""

    def __init__(
        self, entries: Mapping[str, Field], path: str, notes: ProblemList, line: int | None = None
    ) -> None:
        self.entries = entries
        self.path = path
        self.notes = notes
        self.line = line
        self._taken: set[str] = set()

    def has(self, name: str) -> bool:
        found = self.entries.get(name)
        return found is not None and found.data is not None

    def line_of(self, name: str) -> int | None:
        found = self.entries.get(name)
        return found.line if found else self.line

    def field(self, name: str) -> Field | None:
        self._taken.add(name)
        found = self.entries.get(name)
        return found if found is not None and found.data is not None else None

    def complain(self, name: str, problem: str) -> None:
        self.notes.error(self.path, f"{name}: {problem}", self.line_of(name))

    def text(self, name: str, default: str = "") -> str:
        found = self.field(name)
        if found is None:
            return default
        if not found.is_scalar:
            self.complain(name, f"has to be a text, not {found.kind}")
            return default
        return found.text

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number, or the nearest one that is allowed."""
        found = self.field(name)
        if found is None:
            return default
        value = number_of(found)
        if not isinstance(value, int):
            problem = f"has to be a whole number from {low} to {high}, not {found.kind}"
            self.complain(name, f"{problem}; {default} is used")
            return default
        near = min(max(value, low), high)
        if near != value:
            self.complain(name, f"is {value}, and goes from {low} to {high}; {near} is used")
        return near

    def flag(self, name: str) -> bool | None:
        found = self.field(name)
        if found is None:
            return None
        if isinstance(found.data, bool):
            return found.data
        if found.text.strip().lower() in ("true", "false"):
            return found.text.strip().lower() == "true"
        self.complain(name, f"has to be true or false, not {found.kind}")
        return None

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        found = self.field(name)
        if found is None:
            return default
        said = found.text.strip() if found.is_scalar else ""
        if said in choices:
            return said
        if said.lower() in choices:
            return said.lower()
        shown = repr(found.text) if found.is_scalar else found.kind
        problem = f"has to be one of {', '.join(choices)}, not {shown}; {default} is used"
        self.complain(name, problem)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a list, or those that commas keep apart."""
        found = self.field(name)
        if found is None:
            return ()
        if found.is_object:
            self.complain(name, "has to be a list of texts, not an object")
            return ()
        if found.is_scalar:
            return split_commas(found.text)
        for item in found.items:
            if not item.is_scalar:
                problem = f"{name}: has to be a list of texts, and holds {item.kind}"
                self.notes.error(self.path, problem, item.line)
        said = (part for item in found.items if item.is_scalar for part in split_commas(item.text))
        return tuple(dict.fromkeys(said))

    def object(self, name: str) -> Mapping[str, Field]:
        found = self.field(name)
        if found is None:
            return {}
        if not found.is_object:
            self.complain(name, f"has to be an object, not {found.kind}")
            return {}
        return found.entries

    def sheet(self, name: str) -> "Sheet":
        return Sheet(self.object(name), self.path, self.notes, self.line_of(name))

    def take(self, *names: str) -> None:
        """Entries that are known, and of no use here."""
        self._taken.update(names)

    def finish(self, known: Iterable[str] = ()) -> None:
        """Notes what was written and nobody reads."""
        names = sorted({*self._taken, *known})
        for name, found in self.entries.items():
            if name not in self._taken:
                near = get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
                problem = f"{name!r} means nothing here and is not used; {hint}"
                self.notes.warn(self.path, problem, found.line)


def number_of(found: Field) -> int | float | None:
    """A number, also one that is written as a text."""
    value = found.data
    if isinstance(value, bool):
        return None
    if re.fullmatch(r"[+-]?0\d+", found.text.strip()):
        return int(found.text)  # 042 is how levels are shown, and no octal number
    if isinstance(value, int | float):
        return value
    for form in (int, float):
        try:
            return form(found.text) if isinstance(value, str) else None
        except ValueError:
            continue
    return None


def split_commas(text: str) -> tuple[str, ...]:
    """Parts between commas; those inside of braces keep nothing apart, as in `**/*.{ts,tsx}`."""
    parts, start, depth = [], 0, 0
    for found in _MARKS.finditer(text):
        depth = max(0, depth + {"{": 1, "}": -1, ",": 0}[found[0]])
        if found[0] == "," and not depth:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)
