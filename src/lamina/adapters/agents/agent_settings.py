"""Settings of an agent, changed in its file.

Laws: the file keeps its comments and everything that we do not know. It is replaced whole or not at
all, through the one door, and only if it is still as it was read. What an agent may not say is not
written into it.
"""

import hashlib
import stat
from pathlib import Path

from lamina.adapters.agents.agent_reader import open_door
from lamina.adapters.agents.agent_yaml import AGENT_FILES
from lamina.adapters.agents.disk import MOST_BYTES
from lamina.adapters.agents.fields import Field, UnreadableText
from lamina.adapters.agents.problems import ProblemList
from lamina.adapters.agents.settings import SEARCHES, find_problem
from lamina.adapters.agents.teamspark import SETTING_NAMES, TEAMSPARK_FILES, TEAMSPARK_KEYS
from lamina.adapters.agents.yaml_edit import Scalar, Value, set_value
from lamina.adapters.agents.yaml_fields import read_yaml
from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import PathRefused
from lamina.adapters.files.root import Root
from lamina.errors import UsageError

MODEL = "model"
# What stands beside `settings` in agent.yaml, by the name that sessions have for it.
_BESIDE = {"guide_search": "search", "tool_search": "tool_search", "tool_policy": "tool_policy"}


def session_name(name: str) -> str:
    """What sessions call a setting that a person names as agent.yaml does: `search.top_n`."""
    whole, dot, part = name.partition(".")
    names = {file_name: setting for setting, file_name in _BESIDE.items()}
    return f"{names.get(whole, whole)}{dot}{part}"


def change_setting(place: Path, within: Path | None, name: str, value: Scalar) -> str:
    """Writes a setting, or a part of one (`guide_search.top_n`), into the file of the agent at
    `place`, a folder or a file, and gives the path of that file. None leaves it to whoever opens a
    session. `within` is the workspace that brings the agent.

    Raises:
        UsageError: there is no such setting, it takes no such value, or the file cannot be changed.
    """
    if value is not None and name != MODEL and (problem := find_problem(name, value)):
        raise UsageError(f"{name}: {problem}")
    file = place
    try:
        door = open_door(place, within)
        file = _file_of(place, door)
        data = door.read(file, MOST_BYTES)
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
    """The file that holds the settings of an agent."""
    file = place
    if stat.S_ISDIR(door.status(place).st_mode):
        names = (*AGENT_FILES, *TEAMSPARK_FILES)
        found = [place / name for name in names if door.is_there(place / name)]
        if not found:
            problem = f"{place} has no settings of its own: these are in {AGENT_FILES[0]}"
            raise UsageError(f"{problem}; `lamina agent new NAME` writes one")
        file = found[0]
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"{file} is no YAML, and is not changed here; edit it by hand")
    return file


def _place_of(text: str, name: str, value: Scalar) -> tuple[tuple[str, ...], Value]:
    """Where a setting stands in a file, which is one of ours or TeamSpark's, and what is written
    there. A part joins what the file says of the whole."""
    whole = read_yaml(text, "", ProblemList())
    if whole is not None and TEAMSPARK_KEYS & set(whole.entries):
        if name not in SETTING_NAMES:
            names = ", ".join(SETTING_NAMES)
            raise UsageError(f"a file of TeamSpark has no place for {name}; it has {names}")
        return ("settings", SETTING_NAMES[name]), value
    setting, dot, part = name.partition(".")
    keys = _keys(whole, setting)
    if not dot:
        return keys, value
    standing = _find(whole, keys)
    if standing is not None and (standing.is_object or standing.data is None):
        return (*keys, part), value
    if standing is None:
        return keys, {part: value}
    # It is the name of a preset, or says whether to search at all.
    own = "search" if isinstance(standing.data, bool) else "preset"
    return keys, {own: standing.data, part: value}


def _keys(whole: Field | None, setting: str) -> tuple[str, ...]:
    """Where a setting stands, or is to stand. What the file has beside its settings goes first."""
    if setting == MODEL:
        return (MODEL,)
    beside, inside = _BESIDE.get(setting), ("settings", setting)
    if beside is None:
        return inside
    is_new = _find(whole, inside) is None and setting in SEARCHES
    return (beside,) if is_new or _find(whole, (beside,)) is not None else inside


def _find(whole: Field | None, keys: tuple[str, ...]) -> Field | None:
    for key in keys:
        whole = whole.entries.get(key) if whole is not None and whole.is_object else None
    return whole
