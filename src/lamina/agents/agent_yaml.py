"""An agent of our own form: a folder with `agent.yaml`, and files by what they hold."""

from difflib import get_close_matches
from pathlib import Path

from lamina.agents.draft import AgentDraft
from lamina.agents.fields import Field, Sheet
from lamina.agents.guides import clean_name, one_line, read_guides
from lamina.agents.servers import read_server_file
from lamina.agents.settings import keep_setting, read_model, read_search, read_settings
from lamina.agents.skills import read_skills
from lamina.agents.yaml_fields import UnreadableText, read_yaml
from lamina.values.agent import Project
from lamina.values.item import ITEM_KINDS, kind_of

AGENT_FILES = ("agent.yaml", "agent.yml")
_PARTS = {
    *AGENT_FILES, "persona.md", "memory.md", "rules", "references", "mcp.json", "projects",
    "skills",
}  # fmt: skip
_FOREIGN = {"AGENTS.md", "CLAUDE.md", "tsagent.json", "prompt.md", "refs", "SKILL.md"}
_PROJECT_FILES = ("prompt.md", "context.md")


def read_agent_folder(draft: AgentDraft, folder: Path, file: Path) -> None:
    """Keeps what the folder of an agent holds."""
    disk = draft.disk
    read_agent_file(draft, file)
    for name in ("persona", "memory"):
        if disk.is_file(folder / f"{name}.md"):
            setattr(draft, name, (disk.text(folder / f"{name}.md") or "").strip())
    read_guides(disk, draft.shelf, folder / "rules", "rule")
    read_guides(disk, draft.shelf, folder / "references", "reference")
    if disk.is_file(folder / "mcp.json"):
        read_server_file(draft, folder / "mcp.json")
    _read_projects(draft, folder / "projects")
    read_skills(draft, folder / "skills")
    _complain_of_relations(draft)
    _complain_of_others(draft, folder)


def _complain_of_relations(draft: AgentDraft) -> None:
    """Names that relations give and that nothing has; of tools, only servers are known here."""
    there = {str(guide.id) for guide in draft.shelf.guides}
    for said, path, line in draft.related:
        kind, _, key = said.partition(":")
        server = key.partition("/")[0]
        if kind in ("rule", "reference") and said not in there:
            draft.notes.warn(path, f"relations: there is no {kind} {key!r}", line)
        elif kind == "tool" and server and server not in draft.servers:
            draft.notes.warn(path, f"relations: there is no server {server!r} in mcp.json", line)


def _complain_of_others(draft: AgentDraft, folder: Path) -> None:
    for name in draft.disk.names(folder):
        shown = draft.disk.shown(folder / name)
        if name in _FOREIGN:
            problem = "is not read beside agent.yaml; make it a rule, or persona.md"
            draft.notes.warn(shown, problem)
        elif name not in _PARTS and (near := get_close_matches(name, _PARTS, n=1, cutoff=0.8)):
            draft.notes.warn(shown, f"is not read; did you mean {near[0]!r}?")


def read_agent_file(draft: AgentDraft, file: Path) -> None:
    """Keeps what `agent.yaml` says."""
    text, shown = draft.disk.text(file), draft.disk.shown(file)
    if text is None:
        return
    try:
        whole = read_yaml(text, shown, draft.notes)
    except UnreadableText as error:
        problem = f"it is no YAML: {error.problem}; nothing it says is used"
        draft.notes.error(shown, problem, error.line)
        return
    if whole is None:
        draft.notes.warn(shown, "is empty; give the agent a name and a description", 1)
    elif not whole.is_object:
        problem = f"has to hold entries like 'name: ...', not {whole.kind}"
        draft.notes.error(shown, problem, whole.line)
    else:
        read_agent_sheet(draft, Sheet(whole.entries, shown, draft.notes, 1))


def read_agent_sheet(draft: AgentDraft, sheet: Sheet) -> None:
    said = clean_name(sheet.text("name"), sheet.path, draft.notes, sheet.line_of("name"))
    draft.name = said or draft.name
    draft.description = one_line(sheet.text("description"))
    draft.version = sheet.text("version").strip()
    draft.model = read_model(draft, sheet.path, sheet.field("model"))
    read_settings(draft, sheet.sheet("settings"))
    for name, setting in (("search", "guide_search"), ("tool_search", "tool_search")):
        if (found := sheet.field(name)) is not None:
            draft.settings[setting] = read_search(draft, sheet.path, name, found)
    if (found := sheet.field("tool_policy")) is not None:
        keep_setting(draft, sheet.path, "tool_policy", found)
    _read_relations(draft, sheet)
    sheet.finish()


def _read_relations(draft: AgentDraft, sheet: Sheet) -> None:
    for name, found in sheet.object("relations").items():
        source = _related(draft, sheet, name, found)
        others = found.items if found.is_list else (found,)
        ids = tuple(
            other
            for field in others
            if (other := _related(draft, sheet, field.text if field.is_scalar else "", field))
        )
        if source and ids:
            draft.relations[source] = ids


def _related(draft: AgentDraft, sheet: Sheet, said: str, found: Field) -> str:
    """The id of an item; a tool may be named as `server/tool`."""
    said = said.strip()
    if ":" not in said and "/" in said:
        said = f"tool:{said}"
    # Everything has a kind and a name, and a tool has a server before it, empty for a function.
    kind, _, key = said.partition(":")
    if kind in ITEM_KINDS and key and (kind_of(said) != "tool" or "/" in key):  # type: ignore[arg-type]
        draft.related.append((said, sheet.path, found.line))
        return said
    problem = f"relations: {said!r} names nothing; write tool:server/name, rule:name or the like"
    draft.notes.error(sheet.path, problem, found.line)
    return ""


def _read_projects(draft: AgentDraft, folder: Path) -> None:
    disk = draft.disk
    for name in disk.names(folder):
        inner = folder / name
        if name.startswith("."):
            continue
        if not disk.is_folder(inner):
            problem = f"is not read: a project is a folder with {' and '.join(_PROJECT_FILES)}"
            draft.notes.warn(disk.shown(inner), problem)
            continue
        texts = {
            each: (disk.text(inner / each) or "").strip()
            for each in _PROJECT_FILES
            if disk.is_file(inner / each)
        }
        if not texts:
            problem = f"is a project without {' or '.join(_PROJECT_FILES)}; it is empty"
            draft.notes.warn(disk.shown(inner), problem)
        shown = clean_name(name, disk.shown(inner), draft.notes, None) or name
        prompt, context = (texts.get(each, "") for each in _PROJECT_FILES)
        draft.projects.append(Project(name=shown, prompt=prompt, context=context))
