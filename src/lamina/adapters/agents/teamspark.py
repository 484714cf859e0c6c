"""Reads TeamSpark agents: a YAML file, or the older folder with `tsagent.json`.

Law: values missing from such a file have TeamSpark's defaults.
"""

import re
from pathlib import Path

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.declared_servers import read_servers
from lamina.adapters.agents.declared_settings import as_number, keep_setting, read_model
from lamina.adapters.agents.fields import Field, Sheet, UnreadableText, read_json, read_yaml
from lamina.adapters.agents.guides import clean_name, guide_of, one_line, read_page, walk_guides
from lamina.adapters.agents.markdown_file import MarkdownFile
from lamina.core.values.agent import GuideKind

TEAMSPARK_FILES = ("tsagent.yaml", "tsagent.yml", "tsagent.json")
# Any of these marks a YAML file as TeamSpark's.
TEAMSPARK_KEYS = {"metadata", "systemPrompt", "mcpServers"}
_FOLDERS: tuple[tuple[str, GuideKind], ...] = (("rules", "rule"), ("refs", "reference"))
_SUFFIXES = {".mdt", ".md"}
_OPTIONS = {"maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
_DEFAULTS = {"max_tokens": 1000, "temperature": 0.5, "top_p": 0.5}
_SEARCH = {"contextTopK": "top_k", "contextTopN": "top_n", "contextIncludeScore": "include_score"}
_ASKING = ("always", "never", "tool")
_TURNS, _MAX_TURNS = "maxChatTurns", 20
# The location of our settings in its files.
SETTING_NAMES = {ours: theirs for theirs, ours in _OPTIONS.items()} | {
    "model": "model", "max_requests": _TURNS, "ask_before_tools": "toolPermission",
}  # fmt: skip
# TeamSpark's own settings.
_ITS_OWN = ("theme", "systemPath", "mostRecentModel", "autonomous", "mode")
_KEPT_WITH_GUIDES = ("enabled", "embeddings", "hash")
# TeamSpark stores vectors beside texts: a thousand numbers per paragraph, on many lines.
_VECTORS = re.compile(
    r"^([ ]*(?:- )*embeddings:)[ \t]*(?:#.*)?((?:[-+.,\d\[\]eE \t]*(?:\n|$))+)", re.MULTILINE
)
_FEW = 500


def without_vectors(text: str) -> str:
    """Remove the vectors from an agent's YAML, which would take minutes to read; keep all line
    numbers."""
    if "embeddings:" not in text:
        return text

    def empty_out(match: re.Match[str]) -> str:
        if len(match[2]) < _FEW:
            return match[0]
        return match[1] + "\n" * match[2].count("\n")

    return _VECTORS.sub(empty_out, text)


def parse_teamspark_file(draft: AgentDraft, path: Path) -> Sheet | None:
    """Return the content of an agent's file; report it and return None if it cannot be read."""
    text, label = draft.disk.text(path), draft.disk.label(path)
    if text is None:
        return None
    try:
        if path.suffix.lower() == ".json":
            whole: Field | None = read_json(text, label, draft.problems)
        else:
            whole = read_yaml(without_vectors(text), label, draft.problems)
    except UnreadableText as error:
        draft.problems.error(label, f"{error.problem}; nothing it says is used", error.line)
        return None
    if whole is None or not whole.is_object:
        kind = whole.kind if whole else "nothing"
        problem = f"has to hold 'metadata', 'settings' and the like, not {kind}"
        draft.problems.error(label, problem, 1)
        return None
    return Sheet(whole.entries, label, draft.problems, 1)


def read_teamspark(draft: AgentDraft, sheet: Sheet) -> None:
    """Read an agent from a single file."""
    metadata = sheet.sheet("metadata")
    name, line = metadata.text("name"), metadata.line_of("name")
    draft.name = clean_name(name, sheet.path, draft.problems, line) or draft.name
    draft.description = one_line(metadata.text("description"))
    draft.version = metadata.text("version").strip()
    _read_autonomy(draft, sheet, metadata)
    _read_settings(draft, sheet.sheet("settings"))
    draft.persona = sheet.text("systemPrompt").strip()
    _read_list(draft, sheet, "rules", "rule")
    _read_list(draft, sheet, "references", "reference")
    if (servers := sheet.field("mcpServers")) is not None:
        read_servers(draft, sheet.path, servers)
    if sheet.has("providers"):
        problem = "is not used: keys of providers come from the environment, not from an agent"
        draft.problems.warn(sheet.path, f"providers {problem}", sheet.line_of("providers"))
    if sheet.has("supervisors"):
        draft.notes.append(f"{sheet.path}: supervisors of TeamSpark have no counterpart here")
    sheet.ignore("providers", "version", "supervisors")
    sheet.finish()


def _read_autonomy(draft: AgentDraft, *sheets: Sheet) -> None:
    """Read whether an agent is meant to work without asking, which older and newer files say in
    different places. This grants nothing: whoever opens a session decides which tools run without
    asking."""
    for sheet in (*sheets, sheets[0].sheet("settings")):
        is_mode = sheet.has("mode") and sheet.text("mode").strip() == "autonomous"
        draft.autonomous |= sheet.flag("autonomous") is True or is_mode
    if draft.autonomous:
        draft.notes.append(
            f"{sheets[0].path}: it is meant to work without asking back; tools still ask for your "
            f"permission, unless you allow them (--allow-tools)"
        )


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
    if (turns := sheet.whole_number(_TURNS, _MAX_TURNS, 1, 1000)) != _MAX_TURNS:
        draft.settings["max_requests"] = turns
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
            # A text without a name still counts.
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


def read_teamspark_folder(draft: AgentDraft, folder: Path, sheet: Sheet | None) -> None:
    """Read an agent in the older format: `prompt.md`, `rules`, `refs` and `sheet` (its
    `tsagent.json`; None if unreadable)."""
    disk = draft.disk
    if sheet is not None:
        read_teamspark(draft, sheet)
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
