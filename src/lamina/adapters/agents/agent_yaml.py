"""An agent in our own format: a folder with `agent.yaml`, and files named after their content."""

from difflib import get_close_matches
from pathlib import Path

from lamina.adapters.agents.draft import AgentDraft
from lamina.adapters.agents.fields import Field, Sheet
from lamina.adapters.agents.guides import clean_name, one_line, read_guides
from lamina.adapters.agents.servers import read_server_file
from lamina.adapters.agents.settings import keep_setting, read_model, read_search, read_settings
from lamina.adapters.agents.skills import read_skills
from lamina.core.values.agent import Project
from lamina.core.values.item_kind import GUIDE_KINDS, ITEM_KINDS

AGENT_FILES = ("agent.yaml", "agent.yml")
_PARTS = {
    *AGENT_FILES, "persona.md", "memory.md", "rules", "references", "mcp.json", "projects",
    "skills",
}  # fmt: skip
_FOREIGN = {"AGENTS.md", "CLAUDE.md", "tsagent.json", "prompt.md", "refs", "SKILL.md"}
_PROJECT_FILES = ("prompt.md", "context.md")


def read_agent_folder(draft: AgentDraft, folder: Path, sheet: Sheet | None) -> None:
    """Reads the folder of an agent; `sheet` is its `agent.yaml`, None if that says nothing."""
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
    """Warns of names in relations that do not exist; of tools, only servers are known here."""
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
    """The id of an item; a tool may be named as `apps/web/tool`."""
    item = item.strip()
    if ":" not in item and "/" in item:
        item = f"tool:{item}"
    # Every id has a kind and a name; a tool's name begins with its server, empty for a function.
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
