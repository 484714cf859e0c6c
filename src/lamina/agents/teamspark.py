"""Agents of TeamSpark: one YAML file, or the older folder with `tsagent.json`.

Law: what such a file leaves out has TeamSpark's default.
"""

import re
from pathlib import Path

from lamina.agents.draft import AgentDraft
from lamina.agents.fields import Field, Sheet, UnreadableText
from lamina.agents.guides import clean_name, guide_of, one_line, read_page, walk_guides
from lamina.agents.json_fields import read_json
from lamina.agents.markdown_file import MarkdownFile
from lamina.agents.servers import read_servers
from lamina.agents.settings import as_number, keep_setting, read_model
from lamina.agents.yaml_fields import read_yaml
from lamina.values.agent import GuideKind

TEAMSPARK_FILES = ("tsagent.yaml", "tsagent.yml", "tsagent.json")
# Any of these marks a YAML file as TeamSpark's.
TEAMSPARK_KEYS = {"metadata", "systemPrompt", "mcpServers"}
_FOLDERS: tuple[tuple[str, GuideKind], ...] = (("rules", "rule"), ("refs", "reference"))
_SUFFIXES = {".mdt", ".md"}
_OPTIONS = {"maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
_DEFAULTS = {"max_tokens": 1000, "temperature": 0.5, "top_p": 0.5}
_SEARCH = {"contextTopK": "top_k", "contextTopN": "top_n", "contextIncludeScore": "include_score"}
_ASKING = ("always", "never", "tool")
_TURNS, _MOST_TURNS = "maxChatTurns", 20
# TeamSpark's own settings.
_ITS_OWN = ("theme", "systemPath", "mostRecentModel")
_KEPT_WITH_GUIDES = ("enabled", "embeddings", "hash")
# TeamSpark stores vectors beside texts: a thousand numbers per paragraph, over many lines.
_VECTORS = re.compile(
    r"^([ ]*(?:- )*embeddings:)[ \t]*(?:#.*)?((?:[-+.,\d\[\]eE \t]*(?:\n|$))+)", re.MULTILINE
)
_FEW = 500


def without_vectors(text: str) -> str:
    """The YAML of an agent without its vectors, which would take minutes to read; every line keeps
    its number."""
    if "embeddings:" not in text:
        return text

    def empty_out(match: re.Match[str]) -> str:
        if len(match[2]) < _FEW:
            return match[0]
        return match[1] + "\n" * match[2].count("\n")

    return _VECTORS.sub(empty_out, text)


def read_teamspark_file(draft: AgentDraft, path: Path) -> bool:
    """Reads the file of an agent; False if that failed."""
    text, label = draft.disk.text(path), draft.disk.label(path)
    if text is None:
        return False
    try:
        if path.suffix.lower() == ".json":
            whole: Field | None = read_json(text, label, draft.problems)
        else:
            whole = read_yaml(without_vectors(text), label, draft.problems)
    except UnreadableText as error:
        draft.problems.error(label, f"{error.problem}; nothing it says is used", error.line)
        return False
    if whole is None or not whole.is_object:
        kind = whole.kind if whole else "nothing"
        problem = f"has to hold 'metadata', 'settings' and the like, not {kind}"
        draft.problems.error(label, problem, 1)
        return False
    read_teamspark(draft, Sheet(whole.entries, label, draft.problems, 1))
    return True


def read_teamspark(draft: AgentDraft, sheet: Sheet) -> None:
    metadata = sheet.sheet("metadata")
    name, line = metadata.text("name"), metadata.line_of("name")
    draft.name = clean_name(name, sheet.path, draft.problems, line) or draft.name
    draft.description = one_line(metadata.text("description"))
    draft.version = metadata.text("version").strip()
    _read_settings(draft, sheet.sheet("settings"))
    draft.persona = sheet.text("systemPrompt").strip()
    _read_list(draft, sheet, "rules", "rule")
    _read_list(draft, sheet, "references", "reference")
    if (servers := sheet.field("mcpServers")) is not None:
        read_servers(draft, sheet.path, servers)
    if sheet.has("providers"):
        problem = "is not used: keys of providers come from the environment, not from an agent"
        draft.problems.warn(sheet.path, f"providers {problem}", sheet.line_of("providers"))
    sheet.ignore("providers", "version")
    sheet.finish()


def _read_settings(draft: AgentDraft, sheet: Sheet) -> None:
    draft.model = read_model(draft, sheet.path, sheet.field("model"))
    draft.options |= _DEFAULTS
    search: dict[str, Field] = {}
    for name, field in sheet.entries.items():
        if name in _OPTIONS and sheet.has(name):
            keep_setting(draft, sheet.path, _OPTIONS[name], as_number(field))
        elif name in _SEARCH and sheet.has(name):
            search[_SEARCH[name]] = as_number(field)
    if search:
        whole = Field(line=sheet.line or 1, data={}, entries=search)
        for setting in ("guide_search", "tool_search"):
            keep_setting(draft, sheet.path, setting, whole)
    if sheet.has("toolPermission"):
        draft.settings["ask_before_tools"] = sheet.choice("toolPermission", _ASKING, "tool")
    if sheet.whole_number(_TURNS, _MOST_TURNS, 1, 1000) != _MOST_TURNS:
        problem = f"{_TURNS} is not kept with an agent; a program gives open_agent max_requests"
        draft.problems.warn(sheet.path, problem, sheet.line_of(_TURNS))
    sheet.ignore(*_OPTIONS, *_SEARCH, *_ITS_OWN)
    sheet.finish()


def _read_list(draft: AgentDraft, sheet: Sheet, name: str, kind: GuideKind) -> None:
    field = sheet.field(name)
    if field is None:
        return
    if not field.is_list:
        sheet.complain(name, f"has to be a list, not {field.kind}")
        return
    for at, item in enumerate(field.items, start=1):
        if not item.is_object:
            problem = f"{name}: entry {at} has to have a name and a text, and is {item.kind}"
            draft.problems.error(sheet.path, problem, item.line)
            # A text without a name is still a text.
            if not item.text.strip():
                continue
            item = Field(line=item.line, data={}, entries={"text": item})
        inner = Sheet(item.entries, sheet.path, draft.problems, item.line)
        if not inner.has("name"):
            inner.complain("name", f"is missing; it is called {kind}-{at}")
        text = inner.text("text").strip("\n").rstrip()
        page = MarkdownFile(body=text, line=item.line, has_head=True)
        inner.ignore(*_KEPT_WITH_GUIDES)
        guide = guide_of(inner, kind, f"{kind}-{at}", page, priority="priorityLevel")
        draft.guides.add(guide, sheet.path, item.line)


def read_teamspark_folder(draft: AgentDraft, folder: Path, file: Path) -> None:
    """Reads an agent of the older form: its file, `prompt.md`, `rules` and `refs`."""
    disk = draft.disk
    read_teamspark_file(draft, file)
    if not draft.persona and disk.is_file(folder / "prompt.md"):
        draft.persona = (disk.text(folder / "prompt.md") or "").strip()
    for name, kind in _FOLDERS:
        problem = f"is not read: a {kind} of TeamSpark ends in .mdt"
        for path, _ in walk_guides(disk, folder / name, _SUFFIXES, problem):
            add_teamspark_guide(draft, path, kind)


def add_teamspark_guide(draft: AgentDraft, path: Path, kind: GuideKind) -> None:
    parts = read_page(draft.disk, path, "has no head, so it joins only when it is added by hand")
    if parts is None:
        return
    page, sheet = parts
    sheet.ignore(*_KEPT_WITH_GUIDES)
    guide = guide_of(sheet, kind, path.stem, page, priority="priorityLevel")
    draft.guides.add(guide, sheet.path, page.line)
