"""Reads Cursor rules: `.mdc` files whose frontmatter says when they apply.

Law: every file is a rule, whatever its frontmatter says.
"""

from pathlib import Path

from lamina.adapters.agents.disk import Disk
from lamina.adapters.agents.fields import Sheet
from lamina.adapters.agents.guides import (
    GuideSet,
    clean_name,
    one_line,
    place_of,
    read_page,
    walk_guides,
)
from lamina.core.values.agent import Guide
from lamina.core.values.item import Include

CURSOR_SUFFIX = ".mdc"
_HEADLESS = "has no head between lines of '---', so it joins only when it is added by hand"
# Patterns that match all files.
_EVERYTHING = {"*", "**", "**/*", "**/**", "**/*.*", "*.*", "/**", "/**/*", "./**", "./**/*"}


def read_cursor_rules(disk: Disk, guides: GuideSet, folder: Path, *, others: bool = True) -> None:
    """Add the rules in and below a folder; with `others`, warn about files that are not rules."""
    problem = f"is not read: Cursor's rules end in {CURSOR_SUFFIX}" if others else ""
    for path, within in walk_guides(disk, folder, (CURSOR_SUFFIX,), problem):
        add_cursor_rule(disk, guides, path, within=within)


def add_cursor_rule(disk: Disk, guides: GuideSet, path: Path, *, within: str = "") -> None:
    parts = read_page(disk, path, _HEADLESS)
    if parts is None:
        return
    page, sheet = parts
    description = one_line(sheet.text("description"))
    globs = sheet.texts("globs")
    always = sheet.flag("alwaysApply") or False
    sheet.finish()
    if globs and not always:
        _complain_of_globs(sheet, globs, description)
    guide = Guide(
        kind="rule",
        name=clean_name(path.stem, sheet.path, disk.problems, None) or "unnamed",
        text=page.body,
        description=description,
        include=_include(always, globs, description),
        globs=() if always else globs,
        place=place_of(sheet.path, page.line),
    )
    guides.add(guide, sheet.path, page.line, within=within)


def _include(always: bool, globs: tuple[str, ...], description: str) -> Include:
    """Return when a rule is included, as in Cursor. A pattern that matches every file does not say
    when a rule applies, so such a rule is also searched for by its description."""
    if always:
        return "always"
    says_which = any(glob not in _EVERYTHING for glob in globs)
    return "agent" if description and not says_which else "manual"


def _complain_of_globs(sheet: Sheet, globs: tuple[str, ...], description: str) -> None:
    broad = next((glob for glob in globs if glob in _EVERYTHING), None)
    if broad is not None:
        also = ", and is searched for by its description" if description else ""
        problem = f"globs: {broad!r} fits every file, so it joins with whatever is attached{also}"
        advice = "write 'alwaysApply: true', or patterns that tell files apart"
        sheet.problems.warn(sheet.path, f"{problem}; {advice}", sheet.line_of("globs"))
