"""Rules as Cursor keeps them: `.mdc` files that say when they apply.

Law: every file is a rule, whatever its head says.
"""

from pathlib import Path

from lamina.agents.disk import Disk
from lamina.agents.fields import Sheet
from lamina.agents.guides import GuideSet, clean_name, one_line, place_of
from lamina.agents.markdown_file import read_markdown
from lamina.values.agent import Guide
from lamina.values.item import Include

CURSOR_SUFFIX = ".mdc"
# Patterns that tell no file from another.
_EVERYTHING = {"*", "**", "**/*", "**/**", "**/*.*", "*.*", "/**", "/**/*", "./**", "./**/*"}


def read_cursor_rules(disk: Disk, guides: GuideSet, folder: Path, *, others: bool = True) -> None:
    """Keeps the rules of a folder and of those below it; with `others`, complains of what is no
    rule there."""
    for path in disk.walk(folder):
        if path.suffix.lower() == CURSOR_SUFFIX:
            within = path.parent.name if path.parent != folder else ""
            add_cursor_rule(disk, guides, path, within=within)
        elif others:
            problem = f"is not read: Cursor's rules end in {CURSOR_SUFFIX}"
            disk.problems.warn(disk.label(path), problem)


def add_cursor_rule(disk: Disk, guides: GuideSet, path: Path, *, within: str = "") -> None:
    text, label = disk.text(path), disk.label(path)
    if text is None:
        return
    page = read_markdown(text, label, disk.problems)
    if not page.has_head and text.strip():
        problem = "has no head between lines of '---', so it joins only when it is added by hand"
        disk.problems.warn(label, problem, 1)
    sheet = Sheet(page.head, label, disk.problems, 1)
    description = one_line(sheet.text("description"))
    globs = sheet.texts("globs")
    always = sheet.flag("alwaysApply") or False
    sheet.finish()
    if globs and not always:
        _complain_of_globs(sheet, globs, description)
    guide = Guide(
        kind="rule",
        name=clean_name(path.stem, label, disk.problems, None) or "unnamed",
        text=page.body,
        description=description,
        include=_include(always, globs, description),
        globs=() if always else globs,
        place=place_of(label, page.line),
    )
    guides.add(guide, label, page.line, within=within)


def _include(always: bool, globs: tuple[str, ...], description: str) -> Include:
    """As Cursor has it; but a pattern that fits every file says nothing of when a rule is meant,
    and such a rule is searched for by its description as well."""
    if always:
        return "always"
    says_which = any(glob not in _EVERYTHING for glob in globs)
    return "agent" if description and not says_which else "manual"


def _complain_of_globs(sheet: Sheet, globs: tuple[str, ...], description: str) -> None:
    broad = [glob for glob in globs if glob in _EVERYTHING]
    if broad:
        also = ", and is searched for by its description" if description else ""
        problem = (
            f"globs: {broad[0]!r} fits every file, so it joins with whatever is attached{also}"
        )
        advice = "write 'alwaysApply: true', or patterns that tell files apart"
        sheet.problems.warn(sheet.path, f"{problem}; {advice}", sheet.line_of("globs"))
