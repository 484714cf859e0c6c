"""Reads the MCP servers that an agent declares, and translates their settings to ours.

Law: no server is started and no variable is expanded here; an invalid permission counts as the
stricter one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.fields import Field, UnreadableText, read_json
from lamina.core.values.item import Include
from lamina.core.values.tool import Permission, translate_server_terms

_TERMS: dict[str, tuple[str, ...]] = {
    "permission": get_args(Permission),
    "include": get_args(Include),
}
# VS Code uses `servers`; all others use `mcpServers`.
ROOTS = ("mcpServers", "servers")


def read_server_file(draft: AgentDraft, path: Path) -> None:
    """Read the servers in a JSON file."""
    if (whole := parse_server_file(draft, path)) is not None:
        read_server_root(draft, draft.disk.label(path), whole)


def parse_server_file(draft: AgentDraft, path: Path) -> Field | None:
    """Return the content of a JSON file; report it and return None if it cannot be read."""
    text, label = draft.disk.text(path), draft.disk.label(path)
    if text is None:
        return None
    if not text.strip():
        draft.problems.error(label, 'is empty; it has to be JSON, as {"mcpServers": {}}', 1)
        return None
    try:
        return read_json(text, label, draft.problems)
    except UnreadableText as error:
        draft.problems.error(label, error.problem, error.line)
        return None


def read_server_root(draft: AgentDraft, label: str, whole: Field) -> None:
    """Read the servers in a parsed JSON file."""
    root = next((name for name in ROOTS if name in whole.entries), None)
    if root is None:
        draft.problems.error(label, "names no MCP servers: it has to hold 'mcpServers'", whole.line)
        return
    read_servers(draft, label, whole.entries[root])


def read_servers(draft: AgentDraft, path: str, field: Field) -> None:
    """Read the servers in an `mcpServers` object."""
    if field.data is None:
        return
    if not field.is_object:
        problem = f"mcpServers: has to be an object, not {field.kind}"
        draft.problems.error(path, problem, field.line)
        return
    for name, entry in field.entries.items():
        if not name.strip():
            draft.problems.error(path, "a server needs a name", entry.line)
        elif not entry.is_object:
            problem = f"the server {name!r} has to be an object, not {entry.kind}"
            draft.problems.error(path, problem, entry.line)
        elif name in draft.servers:
            problem = f"there is a server {name!r} already; this one is not used"
            draft.problems.error(path, problem, entry.line)
        elif entry.data.get("type") == "internal":
            _note_internal(draft, path, name, entry)
        else:
            draft.servers[name] = _read_server(draft, path, name, entry)


def _note_internal(draft: AgentDraft, path: str, name: str, entry: Field) -> None:
    """Report a server built into TeamSpark; Lamina has its own equivalent or none."""
    tool = entry.data.get("tool")
    what = tool if isinstance(tool, str) else name
    draft.notes.append(f"{path}:{entry.line}: {name!r} is built into TeamSpark; {_built_in(what)}")


def _built_in(tool: str) -> str:
    match tool:
        case "rules" | "references" | "tools":
            return f"{tool} are chosen for each question here, and added by hand with `add`"
        case _:
            return "it has no counterpart here, and is not started"


def _read_server(draft: AgentDraft, path: str, name: str, entry: Field) -> dict[str, Any]:
    config = translate_server_terms(entry.data)
    if bool(config.get("command")) == bool(config.get("url")):
        both = (
            "both 'command' and 'url'" if config.get("command") else "neither 'command' nor 'url'"
        )
        draft.problems.error(path, f"the server {name!r} has {both}; it needs one", entry.line)
    _check_terms(draft, path, f"the server {name!r}", config, entry.line)
    tools = config.get("tools")
    if tools is None:
        return config
    if not isinstance(tools, Mapping):
        problem = f"the server {name!r}: 'tools' has to be an object of tools by name"
        draft.problems.error(path, problem, _line(entry, "tools"))
        return {key: value for key, value in config.items() if key != "tools"}
    checked_tools = {}
    for tool, terms in tools.items():
        line = _line(entry, "tools", tool)
        what = f"the tool {tool!r} of {name!r}"
        if isinstance(terms, dict):
            _check_terms(draft, path, what, terms, line)
            checked_tools[tool] = terms
        elif terms is not None:
            draft.problems.error(path, f"{what} has to be an object, not {terms!r}", line)
    return {**config, "tools": checked_tools}


def _check_terms(
    draft: AgentDraft, path: str, what: str, terms: dict[str, Any], line: int | None
) -> None:
    for key, choices in _TERMS.items():
        if key in terms and terms[key] not in choices:
            problem = f"{what}: {key} has to be one of {', '.join(choices)}, not {terms[key]!r}"
            draft.problems.error(path, problem, line)
            if key == "permission":
                terms[key] = "required"
            else:
                del terms[key]
    if "disabled" in terms and not isinstance(terms["disabled"], bool):
        problem = f"{what}: disabled has to be true or false, not {terms['disabled']!r}"
        draft.problems.error(path, problem, line)
        terms["disabled"] = True


def _line(entry: Field, *names: str) -> int:
    for name in names:
        entry = entry.entries.get(name, entry)
    return entry.line
