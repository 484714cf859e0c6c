"""Changes a setting in an agent's file: edits one YAML value and leaves every other character as it
is.

Laws: a change that would alter the meaning of anything but that value is refused. The file keeps
its comments and unknown entries. It is replaced atomically, through its root, and only if it has
not changed since it was read. Settings that an agent may not have are not written.
"""

import hashlib
import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.adapters.agents.agent_reader import open_door
from lamina.adapters.agents.agent_yaml import AGENT_FILES
from lamina.adapters.agents.declared_settings import SEARCHES, find_problem
from lamina.adapters.agents.disk import MAX_BYTES
from lamina.adapters.agents.fields import Field, ProblemList, UnreadableText, read_yaml
from lamina.adapters.agents.teamspark import SETTING_NAMES, TEAMSPARK_FILES, TEAMSPARK_KEYS
from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import PathRefused
from lamina.adapters.files.root import Root
from lamina.errors import UsageError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node


Scalar = str | int | float | bool | None
Value = Scalar | dict[str, Scalar]
_BY_HAND = "change it by hand"


def set_value(text: str, keys: tuple[str, ...], value: Value) -> str:
    """Return the text with `value` set at `keys`: a name, or a name within an object.

    Raises:
        UnreadableText: it is not valid YAML, or cannot be changed without side effects.
    """
    before = read_yaml(text, "", ProblemList())
    changed = _change(text, keys, value)
    after = read_yaml(changed, "", ProblemList())
    if _plain(after) != _with_value(_plain(before), keys, value):
        raise UnreadableText(f"{'.'.join(keys)} is written in an unusual way; {_BY_HAND}", 1)
    return changed


def _change(text: str, keys: tuple[str, ...], value: Value) -> str:
    import yaml

    # The text was already read within the limits, so it is valid YAML.
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        return _append(text, keys, value, newline)
    if not isinstance(root, yaml.MappingNode):
        raise UnreadableText("it has no entries like 'name: ...'", 1)
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
    """Return the text with the value after a name replaced."""
    import yaml

    line = node.start_mark.line + 1
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        # The value ends where the next token begins: text in between belongs to that token.
        start, end = text.index(":", name.end_mark.index) + 1, node.value[-1][1].end_mark.index
        if "#" not in text[start:end] and isinstance(node.value[-1][1], yaml.ScalarNode):
            return f"{text[:start]} {_write(value)}{text[end:]}"
    is_short = isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">")
    is_short = is_short or (isinstance(node, yaml.MappingNode) and bool(node.flow_style))
    if not is_short:
        raise UnreadableText(f"{name.value} has a value of several lines; {_BY_HAND}", line)
    if start < end:
        return text[:start] + _write(value) + text[end:]
    # Nothing follows the name, not even a space.
    start = text.index(":", name.end_mark.index) + 1
    return f"{text[:start]} {_write(value)}{text[start:]}"


def _fill(text: str, name: "Node", node: "Node", key: str, value: Value, newline: str) -> str:
    """Return the text with a first entry in an empty object."""
    if node.tag != "tag:yaml.org,2002:null":
        raise UnreadableText(f"{name.value} has to be an object", node.start_mark.line + 1)
    # An explicit null is replaced.
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
    """Return the text with a new entry at the end of an object."""
    if place.flow_style:
        end = place.end_mark.index - 1
        comma = ", " if place.value else ""
        if len(keys) > 1:
            raise UnreadableText(f"it is written in braces; {_BY_HAND}", place.start_mark.line + 1)
        return f"{text[:end].rstrip()}{comma}{keys[0]}: {_write(value)}{text[end:]}"
    if place is root:
        return _append(text, keys, value, newline)
    # After the line where the last entry ends.
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
    # JSON is also YAML.
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


MODEL = "model"
# Entries beside `settings` in agent.yaml, by the names that sessions use for them.
_BESIDE = {"guide_search": "search", "tool_search": "tool_search", "tool_policy": "tool_policy"}


def session_name(name: str) -> str:
    """Return a session's name for a setting named as in agent.yaml: `search.top_n`."""
    whole, dot, part = name.partition(".")
    names = {file_name: setting for setting, file_name in _BESIDE.items()}
    return f"{names.get(whole, whole)}{dot}{part}"


def change_setting(place: Path, within: Path | None, name: str, value: Scalar) -> str:
    """Write a setting, or a part of one (`guide_search.top_n`), to the file of the agent at `place`
    (a folder or a file), and return the file's path. None unsets it, so that the session decides.
    `within` is the workspace that contains the agent.

    Raises:
        UsageError: the setting does not exist, does not accept the value, or the file cannot be
            changed.
    """
    if value is not None and name != MODEL and (problem := find_problem(name, value)):
        raise UsageError(f"{name}: {problem}")
    file = place
    try:
        door = open_door(place, within)
        file = _file_of(place, door)
        data = door.read(file, MAX_BYTES)
        text = data.decode("utf-8")
        changed = set_value(text, *_place_of(text, name, value))
        expected = hashlib.sha256(data).hexdigest()
        root = Root(door.path)
        real = door.real_path(file)
        root.write(real, changed.encode(), replace=True, expected=expected, hidden=True)
    except PathRefused as refusal:
        raise UsageError(f"{file} cannot be changed: {refusal.detail}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8; save it as UTF-8 first") from None
    except UnreadableText as error:
        line = f":{error.line}" if error.line else ""
        raise UsageError(f"{file}{line} cannot be changed: {error.problem}") from None
    return str(file)


def _file_of(place: Path, door: LinkedRoot) -> Path:
    """Return the file that contains an agent's settings."""
    file = place
    if stat.S_ISDIR(door.status(place).st_mode):
        names = (*AGENT_FILES, *TEAMSPARK_FILES)
        found = [place / name for name in names if door.is_there(place / name)]
        if not found:
            problem = f"{place} has no settings of its own: settings are in {AGENT_FILES[0]}"
            raise UsageError(f"{problem}; `lamina agent new NAME` creates one")
        file = found[0]
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"{file} is not YAML and was not changed; edit it by hand")
    return file


def _place_of(text: str, name: str, value: Scalar) -> tuple[tuple[str, ...], Value]:
    """Return the keys of a setting in an agent file, ours or TeamSpark's, and the value to write. A
    part is merged into those already in the file."""
    whole = read_yaml(text, "", ProblemList())
    if whole is not None and TEAMSPARK_KEYS & set(whole.entries):
        if name not in SETTING_NAMES:
            names = ", ".join(SETTING_NAMES)
            raise UsageError(f"TeamSpark files have no setting {name!r}; they have {names}")
        return ("settings", SETTING_NAMES[name]), value
    setting, dot, part = name.partition(".")
    keys = _keys(whole, setting)
    if not dot:
        return keys, value
    standing = _find_field(whole, keys)
    if standing is not None and (standing.is_object or standing.data is None):
        return (*keys, part), value
    if standing is None:
        return keys, {part: value}
    # The current value is a preset's name or a boolean.
    own = "search" if isinstance(standing.data, bool) else "preset"
    return keys, {own: standing.data, part: value}


def _keys(whole: Field | None, setting: str) -> tuple[str, ...]:
    """Return the keys of a setting. An existing entry beside `settings` takes precedence."""
    if setting == MODEL:
        return (MODEL,)
    beside, inside = _BESIDE.get(setting), ("settings", setting)
    if beside is None:
        return inside
    is_new = _find_field(whole, inside) is None and setting in SEARCHES
    return (beside,) if is_new or _find_field(whole, (beside,)) is not None else inside


def _find_field(whole: Field | None, keys: tuple[str, ...]) -> Field | None:
    for key in keys:
        whole = whole.entries.get(key) if whole is not None and whole.is_object else None
    return whole
