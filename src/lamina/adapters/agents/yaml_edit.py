"""One value of a YAML text changed, and every other character left where it is.

Law: what comes out says what the text said before, but for that value; otherwise it is refused.
"""

import json
from typing import TYPE_CHECKING, Any

from lamina.adapters.agents.fields import Field, UnreadableText
from lamina.adapters.agents.problems import ProblemList
from lamina.adapters.agents.yaml_fields import read_yaml

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

Scalar = str | int | float | bool | None
Value = Scalar | dict[str, Scalar]
_BY_HAND = "change it by hand"


def set_value(text: str, keys: tuple[str, ...], value: Value) -> str:
    """The text with `value` at `keys`: a name, or a name within an object.

    Raises:
        UnreadableText: it is no YAML, or cannot be changed without touching more of it.
    """
    before = read_yaml(text, "", ProblemList())
    changed = _change(text, keys, value)
    after = read_yaml(changed, "", ProblemList())
    if _plain(after) != _with_value(_plain(before), keys, value):
        raise UnreadableText(f"{'.'.join(keys)} is written in an unusual way; {_BY_HAND}", 1)
    return changed


def _change(text: str, keys: tuple[str, ...], value: Value) -> str:
    import yaml

    # Read before, within its limits: whatever comes here is YAML.
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        return _append(text, keys, value, newline)
    if not isinstance(root, yaml.MappingNode):
        raise UnreadableText("it holds no entries like 'name: ...'", 1)
    place = root
    for at, key in enumerate(keys):
        pair = _find(place, key)
        if pair is None:
            return _insert(text, place, root, keys[at:], value, newline)
        name, inner = pair
        rest = keys[at + 1 :]
        if inner.start_mark.index < name.end_mark.index:
            raise UnreadableText(f"{key} is an alias; {_BY_HAND}", name.start_mark.line + 1)
        if not rest:
            return _replace(text, name, inner, value)
        if not isinstance(inner, yaml.MappingNode):
            return _fill(text, name, inner, rest[0], value, newline)
        place = inner
    raise AssertionError("there is no key")


def _find(mapping: "MappingNode", key: str) -> "tuple[Node, Node] | None":
    pairs = [(name, value) for name, value in mapping.value if name.value == key]
    return pairs[-1] if pairs else None


def _replace(text: str, name: "Node", node: "Node", value: Value) -> str:
    """The text with another value behind a name."""
    import yaml

    line = node.start_mark.line + 1
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        # It ends where something else begins: what stands in between belongs to that.
        start, end = text.index(":", name.end_mark.index) + 1, node.value[-1][1].end_mark.index
        if "#" not in text[start:end] and isinstance(node.value[-1][1], yaml.ScalarNode):
            return f"{text[:start]} {_write(value)}{text[end:]}"
    is_short = isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">")
    is_short = is_short or (isinstance(node, yaml.MappingNode) and bool(node.flow_style))
    if not is_short:
        raise UnreadableText(f"{name.value} has a value of several lines; {_BY_HAND}", line)
    if start < end:
        return text[:start] + _write(value) + text[end:]
    # Nothing stands there, not even a space.
    start = text.index(":", name.end_mark.index) + 1
    return f"{text[:start]} {_write(value)}{text[start:]}"


def _fill(text: str, name: "Node", node: "Node", key: str, value: Value, newline: str) -> str:
    """The text with an entry in an object that has none yet."""
    if node.tag != "tag:yaml.org,2002:null":
        raise UnreadableText(f"{name.value} has to be an object", node.start_mark.line + 1)
    # Where it is said to be nothing, that gives way.
    text = text[: node.start_mark.index] + text[node.end_mark.index :]
    end = _line_end(text, name.end_mark.index)
    indent = " " * (name.start_mark.column + 2)
    lead = "" if text[:end].endswith("\n") else newline
    return f"{text[:end]}{lead}{indent}{key}: {_write(value)}{newline}{text[end:]}"


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _insert(
    text: str,
    place: "MappingNode",
    root: "MappingNode",
    keys: tuple[str, ...],
    value: Value,
    newline: str,
) -> str:
    """The text with a new entry at the end of an object."""
    if place.flow_style:
        end = place.end_mark.index - 1
        comma = ", " if place.value else ""
        if len(keys) > 1:
            raise UnreadableText(f"it is written in braces; {_BY_HAND}", place.start_mark.line + 1)
        return f"{text[:end].rstrip()}{comma}{keys[0]}: {_write(value)}{text[end:]}"
    if place is root:
        return _append(text, keys, value, newline)
    # Behind the line that the last entry ends in.
    last = place.value[-1][1]
    end = last.end_mark.index
    if not text[:end].endswith("\n"):
        end = _line_end(text, end)
    indent = " " * place.value[0][0].start_mark.column
    lead = "" if text[:end].endswith("\n") else newline
    return f"{text[:end]}{lead}{indent}{keys[0]}: {_write(value)}{newline}{text[end:]}"


def _append(text: str, keys: tuple[str, ...], value: Value, newline: str) -> str:
    lead = "" if not text or text.endswith("\n") else newline
    if len(keys) == 1:
        return f"{text}{lead}{keys[0]}: {_write(value)}{newline}"
    return f"{text}{lead}{keys[0]}:{newline}  {keys[1]}: {_write(value)}{newline}"


def _write(value: Value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_write(part)}" for name, part in value.items()) + "}"
    # JSON is YAML.
    return json.dumps(value, ensure_ascii=False)


def _plain(field: Field | None) -> Any:
    if field is None:
        return {}
    if field.is_object:
        return {name: _plain(inner) for name, inner in field.entries.items()}
    if field.is_list:
        return [_plain(inner) for inner in field.items]
    return field.data


def _with_value(whole: Any, keys: tuple[str, ...], value: Value) -> Any:
    if not keys:
        return value
    own = whole if isinstance(whole, dict) else {}
    return own | {keys[0]: _with_value(own.get(keys[0]), keys[1:], value)}
