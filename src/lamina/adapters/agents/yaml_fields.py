"""YAML as fields.

Law: YAML gives only texts, numbers, lists and objects; a document whose aliases repeat it endlessly
is refused, and names that are written twice are reported.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lamina.adapters.agents.fields import Field, UnreadableText, report_twin
from lamina.adapters.agents.problems import ProblemList
from lamina.core.codec import mend_text

if TYPE_CHECKING:
    from yaml.nodes import Node

# Some agents keep long texts in YAML; only many values take long to read.
MOST_CHARACTERS = 1_000_000
MOST_VALUES = 20_000
_STANDARD = "tag:yaml.org,2002:"
_PLAIN = {"str", "int", "float", "bool", "null", "timestamp", "binary", "value", "map", "seq"}


def read_yaml(text: str, path: str, problems: ProblemList, first_line: int = 1) -> Field | None:
    """The one document of a text that begins at a line of its file; None if it is empty.

    Raises:
        UnreadableText: it is not YAML, or was refused.
    """
    import yaml

    if len(text) > MOST_CHARACTERS:
        problem = f"{len(text):,} characters of YAML are over the limit of {MOST_CHARACTERS:,}"
        raise UnreadableText(problem, first_line)
    try:
        loader = _loader(text, first_line)
        try:
            node = loader.get_single_node()
            return _Reader(loader, path, problems, first_line).read(node) if node else None
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise UnreadableText(*_explain(error, text, first_line)) from error
    except RecursionError as error:
        raise UnreadableText("it is nested too deep to be read", first_line) from error


def _loader(text: str, first_line: int) -> Any:
    """A loader that stops at too many values. The one in C is faster, but a text of brackets
    crashes the process."""
    import yaml

    class Loader(yaml.SafeLoader):
        events = 0

        def get_event(self) -> Any:
            self.events += 1
            if self.events > MOST_VALUES:
                raise UnreadableText(f"it holds more than {MOST_VALUES:,} values", first_line)
            return super().get_event()  # type: ignore[no-untyped-call]

    return Loader(text)


class _Reader:
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
        if self._count > MOST_VALUES or id(node) in self._open:
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
            # Half characters can be written as escapes, but not sent.
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
