"""The MCP servers that an agent names: as they are written, with terms in our words.

Law: nothing is started here, and no variable is filled in; what an entry says wrongly of
permissions is read as the stricter.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from lamina.agents.draft import AgentDraft
from lamina.agents.fields import Field
from lamina.agents.json_fields import read_json
from lamina.agents.yaml_fields import UnreadableText
from lamina.values.item import Include
from lamina.values.tool import Permission, translate_server_terms

_TERMS: dict[str, tuple[str, ...]] = {
    "permission": get_args(Permission),
    "include": get_args(Include),
}
# VS Code says `servers`; everybody else `mcpServers`.
ROOTS = ("mcpServers", "servers")


def read_server_file(draft: AgentDraft, path: Path) -> None:
    """Keeps the servers of a JSON file."""
    text, shown = draft.disk.text(path), draft.disk.shown(path)
    if text is None:
        return
    if not text.strip():
        draft.notes.error(shown, 'is empty; it has to be JSON, as {"mcpServers": {}}', 1)
        return
    try:
        whole = read_json(text, shown, draft.notes)
    except UnreadableText as error:
        draft.notes.error(shown, error.problem, error.line)
        return
    root = next((each for each in ROOTS if each in whole.entries), None)
    if root is None:
        draft.notes.error(shown, "names no MCP servers: it has to hold 'mcpServers'", whole.line)
        return
    read_servers(draft, shown, whole.entries[root])


def read_servers(draft: AgentDraft, path: str, found: Field) -> None:
    """Keeps the servers of an `mcpServers` object."""
    if found.data is None:
        return
    if not found.is_object:
        problem = f"mcpServers: has to be an object, not {found.kind}"
        draft.notes.error(path, problem, found.line)
        return
    for name, entry in found.entries.items():
        if not name.strip():
            draft.notes.error(path, "a server needs a name", entry.line)
        elif not entry.is_object:
            problem = f"the server {name!r} has to be an object, not {entry.kind}"
            draft.notes.error(path, problem, entry.line)
        elif name in draft.servers:
            problem = f"there is a server {name!r} already; this one is not used"
            draft.notes.error(path, problem, entry.line)
        else:
            draft.servers[name] = _read_server(draft, path, name, entry)


def _read_server(draft: AgentDraft, path: str, name: str, entry: Field) -> dict[str, Any]:
    said = translate_server_terms(entry.data)
    if bool(said.get("command")) == bool(said.get("url")):
        both = "both 'command' and 'url'" if said.get("command") else "neither 'command' nor 'url'"
        draft.notes.error(path, f"the server {name!r} has {both}; it needs one", entry.line)
    _check_terms(draft, path, f"the server {name!r}", said, entry.line)
    tools = said.get("tools")
    if tools is None:
        return said
    if not isinstance(tools, Mapping):
        problem = f"the server {name!r}: 'tools' has to be an object of tools by name"
        draft.notes.error(path, problem, _line(entry, "tools"))
        return {key: value for key, value in said.items() if key != "tools"}
    kept = {}
    for tool, terms in tools.items():
        line = _line(entry, "tools", tool)
        what = f"the tool {tool!r} of {name!r}"
        if isinstance(terms, dict):
            _check_terms(draft, path, what, terms, line)
            kept[tool] = terms
        elif terms is not None:
            draft.notes.error(path, f"{what} has to be an object, not {terms!r}", line)
    return {**said, "tools": kept}


def _check_terms(
    draft: AgentDraft, path: str, what: str, said: dict[str, Any], line: int | None
) -> None:
    for key, choices in _TERMS.items():
        if key in said and said[key] not in choices:
            problem = f"{what}: {key} has to be one of {', '.join(choices)}, not {said[key]!r}"
            draft.notes.error(path, problem, line)
            if key == "permission":
                said[key] = "required"
            else:
                del said[key]
    if "disabled" in said and not isinstance(said["disabled"], bool):
        problem = f"{what}: disabled has to be true or false, not {said['disabled']!r}"
        draft.notes.error(path, problem, line)
        said["disabled"] = True


def _line(entry: Field, *names: str) -> int:
    for name in names:
        entry = entry.entries.get(name, entry)
    return entry.line
