"""Reads skills: folders with a SKILL.md. The list of skills is always sent; a skill's text is
included when the skill is chosen; its other files are read on request.

Laws: a skill with an invalid name or description still counts, under its folder's name. A file is
one skill, however many links lead to it; the first path counts. A skill that only people may choose
is not offered to the model.
"""

import re
from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.fields import Sheet
from lamina.adapters.agents.guides import clean_name, one_line, place_of, read_page
from lamina.adapters.agents.markdown_file import MarkdownFile
from lamina.core.values.agent import Guide, Skill

SKILL_FILE = "SKILL.md"
OVERVIEW = "skills"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_LETTERS = {"name": 64, "description": 1024, "compatibility": 500}
# `Bash(git add:*) Read`: brackets belong to the name before them.
_TOOL = re.compile(r"(?:[^\s,()]|\([^)]*\))+")
# Fields that control how Claude Code runs a skill; they have no effect here.
_UNUSED = (
    "model", "effort", "context", "agent", "hooks", "shell", "arguments", "disallowed-tools",
    "background", "version", "author", "tags", "category",
)  # fmt: skip
_HEADING = (
    "These skills are instructions for certain tasks. The text of a skill is the reference of its "
    "name; it joins when a question calls for it. Files that it speaks of are read with "
    "read_skill_file(skill, path)."
)


def read_skills(draft: AgentDraft, folder: Path) -> None:
    """Read the skills in a folder."""
    for name in draft.disk.names(folder):
        # A folder that leads out of the root is a problem.
        if draft.disk.is_inside(folder / name) and draft.disk.is_file(folder / name / SKILL_FILE):
            read_skill(draft, folder / name)


def read_skill(draft: AgentDraft, folder: Path) -> None:
    identity = draft.disk.identity(folder / SKILL_FILE)
    if identity in draft.skill_files:
        _note_alias(draft, folder, draft.skill_files[identity])
        return
    parts = read_page(draft.disk, folder / SKILL_FILE)
    if parts is None:
        return
    page, sheet = parts
    if not page.has_head:
        draft.problems.error(sheet.path, "has no head with a name and a description", 1)
    globs = sheet.texts("paths")
    skill = _skill_of(sheet, folder, page)
    guide = Guide(
        kind="reference",
        name=skill.name,
        text=page.body,
        description=skill.description,
        include="agent" if skill.model_invocable and not globs else "manual",
        globs=globs,
        place=place_of(sheet.path, page.line),
    )
    if identity is not None:
        draft.skill_files[identity] = len(draft.skills)
    if skill.unused:
        names = ", ".join(skill.unused)
        draft.notes.append(f"{sheet.path}: nothing here acts upon {names} of a skill")
    # Under its reference's name, which is what the model sees.
    reference = draft.guides.add(guide, sheet.path, page.line, within="skill")
    draft.skills.append(replace(skill, name=reference.name))


def _note_alias(draft: AgentDraft, folder: Path, number: int) -> None:
    skill = draft.skills[number]
    draft.skills[number] = replace(skill, aliases=(*skill.aliases, str(folder)))


def _skill_of(sheet: Sheet, folder: Path, page: MarkdownFile) -> Skill:
    description = _short_text(sheet, "description")
    if not description and page.has_head:
        sheet.complain("description", "is missing; it is what a skill is chosen by")
    if when := one_line(sheet.text("when_to_use")):
        description = f"{description} {when}".strip()
    compatibility = _short_text(sheet, "compatibility")
    skill = Skill(
        name=_name_of(sheet, folder, page),
        description=description,
        folder=str(folder),
        license=one_line(sheet.text("license")),
        compatibility=compatibility,
        tools=_tools(sheet),
        metadata={
            name: one_line(field.text)
            for name, field in sheet.object("metadata").items()
            if field.is_scalar
        },
        argument_hint=_hint(sheet),
        model_invocable=sheet.flag("disable-model-invocation") is not True,
        user_invocable=sheet.flag("user-invocable") is not False,
        unused=tuple(name for name in _UNUSED if sheet.has(name)),
    )
    sheet.ignore(*_UNUSED)
    sheet.finish()
    return skill


def _hint(sheet: Sheet) -> str:
    """Return the hint about arguments after a skill's name. YAML reads `[file]` as a list, but it
    is meant as text."""
    field = sheet.field("argument-hint")
    if field is None or field.is_object:
        return ""
    if field.is_list:
        return " ".join(f"[{one_line(item.text)}]" for item in field.items)
    return one_line(field.text)


def _short_text(sheet: Sheet, name: str) -> str:
    text = one_line(sheet.text(name))
    if len(text) > _MAX_LETTERS[name]:
        sheet.complain(name, f"has {len(text):,} characters, and may have {_MAX_LETTERS[name]:,}")
    return text


def _name_of(sheet: Sheet, folder: Path, page: MarkdownFile) -> str:
    own = clean_name(folder.name, sheet.path, sheet.problems, None) or "unnamed"
    name = sheet.text("name").strip()
    if not name:
        if page.has_head:
            sheet.complain("name", f"is missing; it has to be {own!r}, as its folder")
        return own
    if len(name) > _MAX_LETTERS["name"] or not _NAME.fullmatch(name):
        problem = f"{name!r} has to be up to {_MAX_LETTERS['name']} of a-z, 0-9 and single dashes"
        sheet.complain("name", f"{problem}; it is called {own!r}, as its folder")
        return own
    if name != folder.name:
        problem = f"is {name!r}, and its folder {folder.name!r}; they have to be the same"
        sheet.complain("name", problem)
    return name


def _tools(sheet: Sheet) -> tuple[str, ...]:
    field = sheet.field("allowed-tools")
    if field is None:
        return ()
    if field.is_object:
        sheet.complain("allowed-tools", "has to be names of tools, not an object")
        return ()
    text = " ".join(item.text for item in field.items) if field.is_list else field.text
    return tuple(_TOOL.findall(text))


def add_overview(draft: AgentDraft) -> None:
    """Add a reference that lists all skills and always applies."""
    folders = Counter(Path(alias).parent for skill in draft.skills for alias in skill.aliases)
    for folder, count in folders.items():
        links = "a link to a skill" if count == 1 else f"{count:,} links to skills"
        draft.notes.append(f"{draft.disk.label(folder)} has {links}: each is read once")
    skills = [skill for skill in draft.skills if skill.model_invocable]
    if not skills:
        return
    lines = "\n".join(map(_line, skills))
    place = draft.disk.label(draft.place)
    guide = Guide(
        kind="reference",
        name=OVERVIEW,
        text=f"{_HEADING}\n\n{lines}",
        description="Which skills there are.",
        include="always",
        place=place,
    )
    draft.guides.add(guide, place)


def _line(skill: Skill) -> str:
    name = f"{skill.name} {skill.argument_hint}" if skill.argument_hint else skill.name
    return f"- {name}: {skill.description}" if skill.description else f"- {name}"
