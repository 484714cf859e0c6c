"""Reads a project's instruction files: AGENTS.md, CLAUDE.md and `.claude/rules`.

Laws: instructions always apply, from the project's root down to the current folder, the closest
last. A file is read once, however many links and imports lead to it.
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.guides import (
    MAX_CHARACTERS,
    clean_name,
    one_line,
    place_of,
    read_page,
    walk_guides,
)
from lamina.adapters.agents.imports import find_imports, imports_only, looks_like_path
from lamina.adapters.files.paths import expand_home
from lamina.core.values.agent import DEFAULT_LEVEL, HIGHEST_LEVEL, Guide

AGENTS_FILE = "AGENTS.md"
CLAUDE_FILES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
CLAUDE_RULES = ".claude/rules"
# The maximum number of bytes that Codex reads from all AGENTS.md files together.
CODEX_BYTES = 32 * 1024
_MAX_HOPS = 5
_MAX_IMPORTS = 500


class Instructions:
    """A collector of files as rules that always apply, in the order given."""

    def __init__(self, draft: AgentDraft) -> None:
        self._draft = draft
        self._level = DEFAULT_LEVEL
        # The files already read, with links resolved.
        self._real_paths: dict[PurePosixPath | None, str] = {}
        # The added texts and their files.
        self._texts: dict[str, str] = {}

    def add_agents_files(self, folders: Sequence[Path]) -> None:
        """Add the AGENTS.md in each folder, the closest last."""
        room = CODEX_BYTES
        for folder in folders:
            path = folder / AGENTS_FILE
            if not self._draft.disk.is_file(path) or (text := self._add(path)) is None:
                continue
            size = len(text.encode())
            if size > room:
                label = self._draft.disk.label(path)
                drops = f"all but {room:,} bytes" if room else "all"
                problem = f"Codex reads {CODEX_BYTES:,} bytes of all {AGENTS_FILE}, and would drop"
                problem = f"{problem} {drops} of these {size:,}; they are read whole here"
                self._draft.problems.warn(label, problem)
            room = max(0, room - size)

    def add_claude_files(self, folders: Sequence[Path]) -> None:
        """Add the CLAUDE.md in each folder, the closest last, each followed by its imports."""
        for folder in folders:
            for name in CLAUDE_FILES:
                if self._draft.disk.is_file(folder / name):
                    self.add_with_imports(folder / name)

    def add_with_imports(self, path: Path) -> None:
        text = self._add(path)
        if text is not None:
            self._import(path, text, (self._draft.disk.real_path(path),))

    def _add(self, path: Path) -> str | None:
        """Add a file as a rule and return its text; None if it cannot be read or was already
        read."""
        disk = self._draft.disk
        real = disk.real_path(path)
        label = disk.label(path)
        if real in self._real_paths:
            if (first := self._real_paths[real]) != label:
                self._draft.notes.append(f"{label} is {first} by a link, and is left out")
            return None
        if (text := disk.text(path)) is None:
            return None
        self._real_paths[real] = label
        own = text.strip("\n").rstrip()
        if own.strip() and (first := self._texts.setdefault(own.strip(), label)) != label:
            self._draft.notes.append(f"{label} says the same as {first}, and is left out")
            return text
        if imports_only(text) and (sent := self._sent_imports(path, text)):
            self._draft.notes.append(f"{label} only imports {', '.join(sent)}, and is left out")
            return text
        guide = Guide(
            kind="rule",
            name=self._name(path),
            text=own,
            level=self._level,
            include="always",
            place=place_of(label, 1),
        )
        self._draft.guides.add(guide, label, 1)
        self._level = min(self._level + 1, HIGHEST_LEVEL)
        return text

    def _sent_imports(self, path: Path, text: str) -> list[str]:
        """Return the files imported by a text if all of them are already sent."""
        names = [name for _, name in find_imports(text)[:_MAX_IMPORTS]]
        targets = [Path(os.path.normpath(path.parent / expand_home(name))) for name in names]
        labels = [self._real_paths.get(self._draft.disk.real_path(target)) for target in targets]
        return [label for label in labels if label] if all(labels) else []

    def _name(self, path: Path) -> str:
        """Return the file's path relative to the root, which is how such files refer to each
        other."""
        root = self._draft.disk.root
        inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        return inside.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    def _import(self, path: Path, text: str, chain: tuple[PurePosixPath | None, ...]) -> None:
        disk, problems, label = self._draft.disk, self._draft.problems, self._draft.disk.label(path)
        if len(text) > MAX_CHARACTERS:
            problems.error(label, "is too long to be searched for imports; there are none of it")
            return
        imports = find_imports(text)
        if len(imports) > _MAX_IMPORTS:
            line = imports[_MAX_IMPORTS][0]
            problem = f"from here on @ imports nothing: {_MAX_IMPORTS} are enough"
            problems.error(label, problem, line)
        for line, name in imports[:_MAX_IMPORTS]:
            target = Path(os.path.normpath(path.parent / expand_home(name)))
            real = disk.real_path(target)
            # Checked first, so that nothing outside the root is even looked up.
            if disk.leads_out(target):
                if looks_like_path(name):
                    problem = f"@{name} leads out of {disk.label(disk.root)!r} and is not imported"
                    problems.error(label, problem, line)
            elif not disk.is_file(target):
                if looks_like_path(name):
                    problems.warn(label, f"@{name} is imported, and there is no such file", line)
            elif real in chain:
                problems.warn(label, f"@{name} imports itself in a circle; it is read once", line)
            elif len(chain) > _MAX_HOPS:
                problem = f"@{name} is more than {_MAX_HOPS} imports away and is not imported"
                problems.error(label, problem, line)
            elif len(self._real_paths) >= _MAX_IMPORTS:
                problem = f"@{name} is not imported: there are {_MAX_IMPORTS} files already"
                problems.error(label, problem, line)
            elif (inner := self._add(target)) is not None:
                self._import(target, inner, (*chain, real))


def read_claude_rules(draft: AgentDraft, folder: Path) -> None:
    """Add `.claude/rules`: those with `paths` are included with matching files, others always
    apply."""
    problem = "is not read: Claude's rules end in .md"
    for path, within in walk_guides(draft.disk, folder, (".md",), problem):
        if (parts := read_page(draft.disk, path)) is not None:
            page, sheet = parts
            globs = sheet.texts("paths")
            guide = Guide(
                kind="rule",
                name=clean_name(path.stem, sheet.path, draft.problems, None) or "unnamed",
                text=page.body,
                description=one_line(sheet.text("description")),
                include="manual" if sheet.has("paths") else "always",
                globs=globs,
                place=place_of(sheet.path, page.line),
            )
            sheet.finish()
            draft.guides.add(guide, sheet.path, page.line, within=within)
