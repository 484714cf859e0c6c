"""Detects the kind of agent at a path, reads it, and rereads it when its files change.

Laws: a path without an agent is the caller's error; anything else is reported as a problem of the
agent, which is read as far as possible. An agent is checked for changes before every turn, so each
call sees all edits; an unchanged agent costs one check per file.
"""

import os
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Struct

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.agent_yaml import AGENT_FILES, read_agent_folder, read_agent_sheet
from lamina.adapters.agents.cursor import CURSOR_SUFFIX, add_cursor_rule, read_cursor_rules
from lamina.adapters.agents.declared_servers import (
    parse_server_file,
    read_server_file,
    read_server_root,
)
from lamina.adapters.agents.disk import Disk, Stamp, stamp_of
from lamina.adapters.agents.fields import ProblemList, Sheet, UnreadableText, read_yaml
from lamina.adapters.agents.guides import add_guide
from lamina.adapters.agents.instructions import (
    AGENTS_FILE,
    CLAUDE_FILES,
    CLAUDE_RULES,
    Instructions,
    read_claude_rules,
)
from lamina.adapters.agents.skills import SKILL_FILE, add_overview, read_skill, read_skills
from lamina.adapters.agents.teamspark import (
    TEAMSPARK_FILES,
    TEAMSPARK_KEYS,
    add_teamspark_guide,
    parse_teamspark_file,
    read_teamspark,
    read_teamspark_folder,
    without_vectors,
)
from lamina.adapters.files.linked_root import LinkedRoot, full_path
from lamina.adapters.files.paths import LeadsOut, PathRefused, expand_home
from lamina.core.values.agent import Agent, Guides, Problem, tool_modes
from lamina.errors import UsageError

CURSOR_RULES = ".cursor/rules"
# In reading order: if several link to the same folder, the first one counts.
SKILL_FOLDERS = (
    "skills", ".claude/skills", ".agents/skills", ".cursor/skills", ".github/skills",
    ".codex/skills", ".gemini/skills", ".opencode/skills",
)  # fmt: skip
SERVER_FILES = ("mcp.json", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
_KNOWN = (
    f"a folder with {AGENT_FILES[0]}, {TEAMSPARK_FILES[2]}, {AGENTS_FILE}, CLAUDE.md, "
    f"{CURSOR_RULES}, {CLAUDE_RULES}, skills or mcp.json, or one such file"
)


def _read_either(draft: AgentDraft, folder: Path, file: Path) -> None:
    """Read a folder with an `agent.yaml`, a file name that TeamSpark also uses."""
    sheet = _parse_yaml(draft, file)
    is_theirs = sheet is not None and TEAMSPARK_KEYS & set(sheet.entries)
    read = read_teamspark_folder if is_theirs else read_agent_folder
    read(draft, folder, sheet)


def _parse_yaml(draft: AgentDraft, file: Path) -> Sheet | None:
    """Return the content of an agent's YAML file, ours or TeamSpark's; report it and return None if
    it is empty."""
    text, label = draft.disk.text(file), draft.disk.label(file)
    if text is None:
        return None
    try:
        whole = read_yaml(without_vectors(text), label, draft.problems)
    except UnreadableText as error:
        problem = f"it is no YAML: {error.problem}; nothing it says is used"
        draft.problems.error(label, problem, error.line)
        return None
    if whole is None:
        draft.problems.warn(label, "is empty; give the agent a name and a description", 1)
    elif not whole.is_object:
        problem = f"has to hold entries like 'name: ...', not {whole.kind}"
        draft.problems.error(label, problem, whole.line)
    else:
        return Sheet(whole.entries, label, draft.problems, 1)
    return None


def _read_theirs(draft: AgentDraft, folder: Path, file: Path) -> None:
    read_teamspark_folder(draft, folder, parse_teamspark_file(draft, file))


# Files that mark their folder as an agent.
_FOLDER_READERS: Mapping[str, Callable[[AgentDraft, Path, Path], None]] = {
    **dict.fromkeys(AGENT_FILES, _read_either),
    **dict.fromkeys(TEAMSPARK_FILES, _read_theirs),
}


class LoadedAgent(Struct, frozen=True, kw_only=True):
    """An agent, with the stamps of all files and folders read for it."""

    agent: Agent
    stamps: dict[str, Stamp]


def read_agent(path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None) -> Agent:
    """Return the agent in a folder or file. `within` is the workspace that contains it; links, even
    one to the agent's folder, may not lead out of it. Without a workspace, the path comes from a
    person and may contain links.

    Raises:
        UsageError: the path contains no agent.
    """
    return load_agent(path, within).agent


def load_agent(
    path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None
) -> LoadedAgent:
    """Return the agent like `read_agent`, with the stamps that reveal changes."""
    agent_path = expand_home(path)
    base = full_path(agent_path)
    door = open_door(base, within)
    try:
        is_folder = stat.S_ISDIR(door.status(base).st_mode)
        folder = base if is_folder else base.parent
        root = _root(door, folder)
        relative = not agent_path.is_absolute()
        disk = Disk(root, ProblemList(), relative=relative, door=door)
    except LeadsOut:
        raise UsageError(
            f"the agent at {str(path)!r} leads out of {str(door.path)!r} by a link and is not "
            f"opened; to use what it leads to, name that by its own path"
        ) from None
    except PathRefused as refusal:
        problem = "it does not exist" if refusal.reason == "missing" else refusal.detail
        raise UsageError(f"there is no agent at {str(path)!r}: {problem}") from None
    draft = AgentDraft(disk, base, folder.name if is_folder else base.stem)
    is_agent = _read_folder(draft, base) if is_folder else _read_file(draft, base)
    if not is_agent:
        raise UsageError(
            f"{str(path)!r} holds no agent; one is {_KNOWN}. "
            f"`lamina agent new NAME` writes one to begin with"
        )
    add_overview(draft)
    return LoadedAgent(agent=draft.agent(), stamps=disk.stamps)


def holds_agent(path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None) -> bool:
    """Check whether a folder contains an agent of any kind, without opening its files."""
    base = full_path(path)
    files = (*_FOLDER_READERS, SKILL_FILE, AGENTS_FILE, *CLAUDE_FILES, *SERVER_FILES)
    folders = (CURSOR_RULES, CLAUDE_RULES, *SKILL_FOLDERS)
    try:
        disk = Disk(base, ProblemList(), door=open_door(base, within))
    except (UsageError, PathRefused):
        return False
    return (
        any(disk.is_file(base / name) for name in files)
        or any(disk.is_folder(base / name) for name in folders)
        or _has_rules(disk, base)
    )


def open_door(base: Path, within: str | os.PathLike[str] | None) -> LinkedRoot:
    """Return the root through which an agent is opened: the outermost of its workspace, its
    repository and its own folder. Paths are used as the person spelled them, so no link inside can
    change the choice."""
    own = base if base.is_dir() else base.parent
    folders = [own, _repository(own) or own]
    if within is not None:
        folders += [root for root in _spellings(within) if own.is_relative_to(root)]
    return LinkedRoot(min(folders, key=lambda folder: len(folder.parts)))


def _spellings(folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    return full_path(folder), Path(os.path.realpath(folder))


def _repository(folder: Path) -> Path | None:
    """Return the repository that contains a folder. A home folder under version control does not
    count, because it would include everything that a person downloads."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for parent in (folder, *folder.parents):
        if (parent / ".git").exists():
            real = Path(os.path.realpath(parent))
            is_part = Path(os.path.realpath(folder)).is_relative_to(real)
            return parent if is_part and not home.is_relative_to(real) else None
    return None


def _root(door: LinkedRoot, folder: Path) -> Path:
    """Return the folder that links may not leave: the repository, or else this folder. A
    self-contained agent is its own root."""
    disk = Disk(folder, ProblemList(), door=door)
    files = (*_FOLDER_READERS, SKILL_FILE)
    if any(disk.is_file(folder / name) for name in files) or _has_rules(disk, folder):
        return folder
    return _repository(folder) or folder


def _has_rules(disk: Disk, folder: Path) -> bool:
    return any(name.endswith(CURSOR_SUFFIX) for name in disk.names(folder))


def _read_folder(draft: AgentDraft, folder: Path) -> bool:
    for name, read in _FOLDER_READERS.items():
        if draft.disk.is_file(folder / name):
            read(draft, folder, folder / name)
            return True
    return _read_all(draft, folder)


def _read_all(draft: AgentDraft, folder: Path) -> bool:
    """Read all files in other formats in a folder."""
    disk, root = draft.disk, draft.disk.root
    chain = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(root)][::-1]
    instructions = Instructions(draft)
    instructions.add_agents_files(chain)
    instructions.add_claude_files(chain)
    read_claude_rules(draft, folder / CLAUDE_RULES)
    read_cursor_rules(disk, draft.guides, folder / CURSOR_RULES)
    if any(name.lower().endswith(CURSOR_SUFFIX) for name in disk.names(folder)):
        read_cursor_rules(disk, draft.guides, folder, others=False)
    if disk.is_file(folder / SKILL_FILE):
        read_skill(draft, folder)
    for name in ("", *SKILL_FOLDERS):
        if disk.is_folder(folder / name):
            read_skills(draft, folder / name)
    for name in SERVER_FILES:
        if disk.is_file(folder / name):
            read_server_file(draft, folder / name)
    return bool(draft.guides.all or draft.servers or draft.problems.all)


def _read_file(draft: AgentDraft, path: Path) -> bool:
    by_name: dict[str, Callable[[], None]] = {
        **{name: partial(read, draft, path.parent, path) for name, read in _FOLDER_READERS.items()},
        AGENTS_FILE: lambda: Instructions(draft).add_agents_files([path.parent]),
        "CLAUDE.md": lambda: Instructions(draft).add_with_imports(path),
        "CLAUDE.local.md": lambda: Instructions(draft).add_with_imports(path),
        SKILL_FILE: lambda: read_skill(draft, path.parent),
    }
    by_suffix: dict[str, Callable[[], None]] = {
        CURSOR_SUFFIX: lambda: add_cursor_rule(draft.disk, draft.guides, path),
        ".mdt": lambda: add_teamspark_guide(draft, path, "rule"),
        ".md": lambda: add_guide(draft.disk, draft.guides, path, "rule"),
        ".json": lambda: _read_json_file(draft, path),
        ".yaml": lambda: _read_yaml_file(draft, path),
        ".yml": lambda: _read_yaml_file(draft, path),
    }
    if path.name in by_name:
        draft.name = path.parent.name
    read_file = by_name.get(path.name) or by_suffix.get(path.suffix.lower())
    if read_file is not None:
        read_file()
    return read_file is not None


def _read_json_file(draft: AgentDraft, path: Path) -> None:
    """Read servers or a TeamSpark agent from a JSON file."""
    whole, label = parse_server_file(draft, path), draft.disk.label(path)
    if whole is None:
        return
    if set(whole.entries) & (TEAMSPARK_KEYS - {"mcpServers"}):
        read_teamspark(draft, Sheet(whole.entries, label, draft.problems, 1))
    else:
        read_server_root(draft, label, whole)


def _read_yaml_file(draft: AgentDraft, path: Path) -> None:
    """Read a TeamSpark agent, or a stand-alone `agent.yaml`."""
    if (sheet := _parse_yaml(draft, path)) is not None:
        is_theirs = TEAMSPARK_KEYS & set(sheet.entries)
        read = read_teamspark if is_theirs else read_agent_sheet
        read(draft, sheet)


class AgentFolder:
    """The current agent at a path. `within` is the workspace that contains it, if any; `loaded` is
    the result of an earlier reading, if any."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        within: str | os.PathLike[str] | None = None,
        *,
        loaded: LoadedAgent | None = None,
    ) -> None:
        # Absolute, so that changing the current folder has no effect.
        self.path = Path(os.path.abspath(expand_home(path)))
        self._within = None if within is None else os.path.abspath(within)
        self._latest = loaded
        # Why the agent no longer exists.
        self._gone = ""
        self._lock = anyio.Lock()

    async def agent(self) -> Agent:
        """Return the agent; reread it only if one of its files changed.

        Raises:
            UsageError: no agent ever existed there.
        """
        async with self._lock:
            latest = await anyio.to_thread.run_sync(self._look)
            self._latest = latest
            return latest.agent

    async def guides(self) -> Guides:
        agent = await self.agent()
        return Guides(
            guides=agent.guides,
            problems=agent.problems,
            tool_modes=tool_modes(agent.servers),
            gone=self._gone,
        )

    def _look(self) -> LoadedAgent:
        if self._latest and all(
            stamp_of(path) == stamp for path, stamp in self._latest.stamps.items()
        ):
            return self._latest
        try:
            latest = load_agent(self.path, self._within)
            self._gone = ""
            return latest
        except UsageError as error:
            if self._latest is None:
                raise
            # Deleted while in use: return an empty agent with a problem that says so.
            self._gone = str(error)
            problem = Problem(path=str(self.path), problem=f"the agent is gone: {error}")
            agent = Agent(name=self._latest.agent.name, problems=(problem,), place=str(self.path))
            return LoadedAgent(agent=agent, stamps=self._latest.stamps)
