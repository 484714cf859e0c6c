"""Reads rules and references from files: names them, decides when they are included, and reports
problems.

Law: every text that is read becomes a guide, even if its frontmatter is invalid; no two guides of a
kind share a name.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import cast, get_args

from msgspec.structs import replace

from lamina.adapters.agents.disk import MEGABYTE, Disk
from lamina.adapters.agents.fields import ProblemList, Sheet
from lamina.adapters.agents.imports import unclosed_fence
from lamina.adapters.agents.markdown_file import MarkdownFile, read_markdown
from lamina.core.values.agent import DEFAULT_LEVEL, HIGHEST_LEVEL, LOWEST_LEVEL, Guide, GuideKind
from lamina.core.values.item import Include

INCLUDES: tuple[str, ...] = get_args(Include)
# Text as long as several books is sent only if a person adds it, not because its file says so.
MAX_CHARACTERS = MEGABYTE
# Invisible characters, and those that reverse the text direction.
_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}
_HEADLESS = (
    "has no head between lines of '---', so it joins only when it is added by hand; "
    "'include: always' or 'include: agent' there changes that"
)


class GuideSet:
    """An agent's guides; names are unique within a kind."""

    def __init__(self, problems: ProblemList) -> None:
        self._problems = problems
        self._guides: dict[tuple[str, str], Guide] = {}
        self._texts: dict[tuple[str, str], Guide] = {}

    @property
    def all(self) -> tuple[Guide, ...]:
        return tuple(self._guides.values())

    def add(self, guide: Guide, path: str, line: int | None = None, *, within: str = "") -> Guide:
        """Add a guide; if its name is taken, use one that shows its origin."""
        guide = self._lighten(guide, path, line)
        self._check_text(guide, path, line)
        first = self._guides.get((guide.kind, guide.name))
        if first is not None:
            name = self._free_name(guide, within)
            problem = f"{guide.name!r} is also the name of the {guide.kind} in {first.place}"
            self._problems.error(path, f"{problem}; this one is called {name!r}", line)
            guide = replace(guide, name=name)
        self._guides[(guide.kind, guide.name)] = guide
        return guide

    def _free_name(self, guide: Guide, within: str) -> str:
        if within and (guide.kind, f"{within}-{guide.name}") not in self._guides:
            return f"{within}-{guide.name}"
        number = 2
        while (guide.kind, f"{guide.name}-{number}") in self._guides:
            number += 1
        return f"{guide.name}-{number}"

    def _check_text(self, guide: Guide, path: str, line: int | None) -> None:
        if not guide.text.strip():
            self._problems.warn(path, "has no text", line)
            return
        twin = self._texts.setdefault((guide.kind, guide.text), guide)
        if twin is not guide:
            problem = f"has the same text as {twin.name!r}; where both join it is sent twice"
            self._problems.warn(path, problem, line)
        is_short = len(guide.text) <= MAX_CHARACTERS
        if is_short and (open_at := unclosed_fence(guide.text)) is not None:
            problem = "a code block begins here and has no end; what follows it looks like code"
            self._problems.warn(path, problem, open_at + (line or 1))

    def _lighten(self, guide: Guide, path: str, line: int | None) -> Guide:
        if len(guide.text) <= MAX_CHARACTERS or (guide.include == "manual" and not guide.globs):
            return guide
        problem = f"has {len(guide.text):,} characters: too long to join by itself; add it by hand"
        self._problems.error(path, problem, line)
        return replace(guide, include="manual", globs=())


def clean_name(name: str, path: str, problems: ProblemList, line: int | None) -> str:
    """Return the name with only characters that can be displayed and typed; empty if none are
    left."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) not in _UNSEEN)
    visible = unicodedata.normalize("NFC", visible).strip()
    if visible != name.strip():
        problem = f"the name {name!r} holds what cannot be seen or is composed; it is {visible!r}"
        problems.warn(path, problem, line)
    if re.search(r"\s", visible):
        problem = f"the name {visible!r} has spaces: a message has to put it in quotes"
        problems.warn(path, f"{problem}; dashes are easier to type", line)
    if "/" in visible or "\\" in visible:
        problems.warn(path, f"the name {visible!r} looks like a path; write it with dashes", line)
    return visible


def place_of(path: str, line: int | None) -> str:
    return f"{path}:{line}" if line else path


def walk_guides(
    disk: Disk, folder: Path, suffixes: Collection[str], problem: str
) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder with one of the suffixes, each with the name of its subfolder.
    Report other files with `problem`, if given."""
    for path in disk.walk(folder):
        if path.suffix.lower() in suffixes:
            yield path, path.parent.name if path.parent != folder else ""
        elif problem:
            disk.problems.warn(disk.label(path), problem)


def read_page(disk: Disk, path: Path, headless: str = "") -> tuple[MarkdownFile, Sheet] | None:
    """Return a Markdown file and its frontmatter as a sheet; None if it cannot be read. `headless`
    is the warning for a file without frontmatter."""
    text, label = disk.text(path), disk.label(path)
    if text is None:
        return None
    page = read_markdown(text, label, disk.problems)
    if headless and not page.has_head and text.strip():
        disk.problems.warn(label, headless, 1)
    return page, Sheet(page.head, label, disk.problems, 1)


def read_guides(disk: Disk, guides: GuideSet, folder: Path, kind: GuideKind) -> None:
    """Add the guides in and below a folder in Lamina's format."""
    problem = f"is not read: a {kind} is a file that ends in .md"
    for path, within in walk_guides(disk, folder, (".md",), problem):
        add_guide(disk, guides, path, kind, within=within)


def add_guide(
    disk: Disk, guides: GuideSet, path: Path, kind: GuideKind, *, within: str = ""
) -> None:
    """Add the guide in a file in Lamina's format."""
    if (parts := read_page(disk, path, _HEADLESS)) is not None:
        page, sheet = parts
        guides.add(guide_of(sheet, kind, path.stem, page), sheet.path, page.line, within=within)


def guide_of(
    sheet: Sheet, kind: GuideKind, stem: str, page: MarkdownFile, priority: str = "priority"
) -> Guide:
    """Build a guide from frontmatter and text; `stem` is its name if the frontmatter has none."""
    problems, path = sheet.problems, sheet.path
    own_name = sheet.text("name").strip()
    name = clean_name(own_name, path, problems, sheet.line_of("name")) if own_name else ""
    guide = Guide(
        kind=kind,
        name=name or clean_name(stem, path, problems, None) or "unnamed",
        text=page.body,
        description=one_line(sheet.text("description")),
        level=sheet.whole_number(priority, DEFAULT_LEVEL, LOWEST_LEVEL, HIGHEST_LEVEL),
        include=cast(Include, sheet.choice("include", INCLUDES, "manual")),
        globs=sheet.texts("globs"),
        place=place_of(path, page.line),
    )
    sheet.finish()
    if guide.include == "agent" and not guide.description:
        problem = "is searched for by its description, and has none; its text alone has to be found"
        problems.warn(path, problem, sheet.line_of("include"))
    return guide


def one_line(text: str) -> str:
    return " ".join(text.split())
