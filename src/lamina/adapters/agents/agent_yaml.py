"""Reads agents in Lamina's own format, a folder with `agent.yaml` and other files with fixed names,
and writes the skeleton of a new one.

Law: creating an agent overwrites nothing.
"""

import json
import os
from difflib import get_close_matches
from pathlib import Path

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.declared_servers import read_server_file
from lamina.adapters.agents.declared_settings import (
    keep_setting,
    read_model,
    read_search,
    read_settings,
)
from lamina.adapters.agents.fields import Field, Sheet
from lamina.adapters.agents.guides import clean_name, one_line, read_guides
from lamina.adapters.agents.skills import read_skills
from lamina.core.values.agent import Project
from lamina.core.values.item import GUIDE_KINDS, ITEM_KINDS
from lamina.errors import UsageError

AGENT_FILES = ("agent.yaml", "agent.yml")
_PARTS = {
    *AGENT_FILES, "persona.md", "memory.md", "rules", "references", "mcp.json", "projects",
    "skills",
}  # fmt: skip
_FOREIGN = {"AGENTS.md", "CLAUDE.md", "tsagent.json", "prompt.md", "refs", "SKILL.md"}
_PROJECT_FILES = ("prompt.md", "context.md")


def read_agent_folder(draft: AgentDraft, folder: Path, sheet: Sheet | None) -> None:
    """Read an agent folder; `sheet` is its `agent.yaml`, None if that is empty."""
    disk = draft.disk
    if sheet is not None:
        read_agent_sheet(draft, sheet)
    for name in ("persona", "memory"):
        if disk.is_file(folder / f"{name}.md"):
            setattr(draft, name, (disk.text(folder / f"{name}.md") or "").strip())
    read_guides(disk, draft.guides, folder / "rules", "rule")
    read_guides(disk, draft.guides, folder / "references", "reference")
    if disk.is_file(folder / "mcp.json"):
        read_server_file(draft, folder / "mcp.json")
    _read_projects(draft, folder / "projects")
    read_skills(draft, folder / "skills")
    _complain_of_relations(draft)
    _complain_of_others(draft, folder)


def _complain_of_relations(draft: AgentDraft) -> None:
    """Warn about relations that name missing items; for tools, only the server is checked."""
    there = {str(guide.id) for guide in draft.guides.all}
    for item, path, line in draft.mentions:
        kind, _, key = item.partition(":")
        server = key.partition("/")[0]
        if kind in GUIDE_KINDS and item not in there:
            draft.problems.warn(path, f"relations: there is no {kind} {key!r}", line)
        elif kind == "tool" and server and server not in draft.servers:
            draft.problems.warn(path, f"relations: there is no server {server!r} in mcp.json", line)


def _complain_of_others(draft: AgentDraft, folder: Path) -> None:
    for name in draft.disk.names(folder):
        label = draft.disk.label(folder / name)
        if name in _FOREIGN:
            problem = "is not read beside agent.yaml; make it a rule, or persona.md"
            draft.problems.warn(label, problem)
        elif name not in _PARTS and (near := get_close_matches(name, _PARTS, n=1, cutoff=0.8)):
            draft.problems.warn(label, f"is not read; did you mean {near[0]!r}?")


def read_agent_sheet(draft: AgentDraft, sheet: Sheet) -> None:
    own_name = clean_name(sheet.text("name"), sheet.path, draft.problems, sheet.line_of("name"))
    draft.name = own_name or draft.name
    draft.description = one_line(sheet.text("description"))
    draft.version = sheet.text("version").strip()
    draft.model = read_model(draft, sheet.path, sheet.field("model"))
    read_settings(draft, sheet.sheet("settings"))
    for name, setting in (("search", "guide_search"), ("tool_search", "tool_search")):
        if (field := sheet.field(name)) is not None:
            draft.settings[setting] = read_search(draft, sheet.path, name, field)
    if (field := sheet.field("tool_policy")) is not None:
        keep_setting(draft, sheet.path, "tool_policy", field)
    _read_relations(draft, sheet)
    sheet.finish()


def _read_relations(draft: AgentDraft, sheet: Sheet) -> None:
    for name, field in sheet.object("relations").items():
        source = _related(draft, sheet, name, field)
        others = field.items if field.is_list else (field,)
        ids = tuple(
            other
            for member in others
            if (other := _related(draft, sheet, member.text if member.is_scalar else "", member))
        )
        if source and ids:
            draft.relations[source] = ids


def _related(draft: AgentDraft, sheet: Sheet, item: str, field: Field) -> str:
    """Return an item's id; a tool may be named as `apps/web/tool`."""
    item = item.strip()
    if ":" not in item and "/" in item:
        item = f"tool:{item}"
    # Every id has a kind and a name; a tool's name begins with its server (empty for a function).
    kind, _, key = item.partition(":")
    if kind in ITEM_KINDS and key and (kind != "tool" or "/" in key):
        draft.mentions.append((item, sheet.path, field.line))
        return item
    problem = f"relations: {item!r} names nothing; write tool:server/name, rule:name or the like"
    draft.problems.error(sheet.path, problem, field.line)
    return ""


def _read_projects(draft: AgentDraft, folder: Path) -> None:
    disk = draft.disk
    for name in disk.names(folder):
        inner = folder / name
        if name.startswith("."):
            continue
        if not disk.is_folder(inner):
            problem = f"is not read: a project is a folder with {' and '.join(_PROJECT_FILES)}"
            draft.problems.warn(disk.label(inner), problem)
            continue
        texts = {
            file: (disk.text(inner / file) or "").strip()
            for file in _PROJECT_FILES
            if disk.is_file(inner / file)
        }
        if not texts:
            problem = f"is a project without {' or '.join(_PROJECT_FILES)}; it is empty"
            draft.problems.warn(disk.label(inner), problem)
        project_name = clean_name(name, disk.label(inner), draft.problems, None) or name
        prompt, context = (texts.get(file, "") for file in _PROJECT_FILES)
        draft.projects.append(Project(name=project_name, prompt=prompt, context=context))


_AGENT = """\
# An agent: who answers, by which rules, with which tools.
name: {name}
description: What this agent is for, in a sentence.
version: "0.1"

# Who answers, as provider:id; without it, whoever a session is opened with.
# model: anthropic:claude-opus-5

# Settings and options of its sessions; each can be changed in a session.
settings:
  # temperature: 0.5
  # max_tokens: 2000
  # Whether a person is asked before a tool runs: always, never, or as each tool says.
  ask_before_tools: tool

# How rules and references with `include: agent` are chosen for a question:
# conservative, normal or aggressive, or one by one.
search: normal
# search:
#   preset: normal
#   top_n: 5
#   include_score: 0.7

# The same for tools, and how the list of tools changes: sticky (tools join when they are chosen,
# and stay), exact (just those chosen), or all.
tool_search: normal
tool_policy: sticky

# What comes along with what was chosen.
# relations:
#   tool:files/read_file: [tool:files/write_file]
"""
_PERSONA = """\
You are {name}. Say here who that is, what it is good at, and how it speaks.
"""
_RULE = """\
---
description: How answers are written.
# Rules with lower numbers come first: 0 to 999.
priority: 500
# always: part of every request. agent: when a question calls for it. manual: when it is added.
include: always
# With patterns it joins when a file that fits is attached.
# globs: ["**/*.py"]
---
Say what you are sure of, and what you are not.
"""
_REFERENCE = """\
---
description: Words that mean something particular here, with what they mean.
include: agent
---
# Glossary

- **Lamina**: one thin layer.
"""
_MEMORY = ""


def write_skeleton(name: str, parent: str | os.PathLike[str]) -> Path:
    """Write a new agent's folder and return it.

    Raises:
        UsageError: the name is invalid, or the folder already exists or cannot be written.
    """
    if not name or name in (".", "..") or name != Path(name).name or "\\" in name or "\0" in name:
        raise UsageError(f"{name!r} is not a valid folder name; use letters, digits and dashes")
    folder = Path(parent) / name
    files = {
        # JSON is also YAML: quote the name only if necessary.
        "agent.yaml": _AGENT.format(name=_quote(name)),
        "persona.md": _PERSONA.format(name=name),
        "rules/style.md": _RULE,
        "references/glossary.md": _REFERENCE,
        "memory.md": _MEMORY,
        "mcp.json": '{\n  "mcpServers": {}\n}\n',
    }
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{str(folder)!r} already exists; nothing was written") from None
    except OSError as error:
        problem = f"{str(folder)!r} cannot be created: {error.strerror or error}"
        raise UsageError(f"{problem}; choose another place with --in FOLDER") from error
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        with (folder / path).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return folder


def _quote(name: str) -> str:
    plain = name.replace("-", "").replace("_", "")
    is_plain = plain.isascii() and plain.isalnum() and not plain.isdigit() and name[0].isalpha()
    is_reserved = name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return name if is_plain and not is_reserved else json.dumps(name, ensure_ascii=False)
