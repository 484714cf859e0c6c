"""Agents by name: where they are searched, the agent of a workspace itself, and personas."""

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.agents import agent_reader
from lamina.adapters.agents.agent_reader import LoadedAgent
from lamina.adapters.files.linked_root import LinkedRoot, full_path
from lamina.adapters.files.own_file import read_own_file
from lamina.adapters.files.paths import LeadsOut, PathRefused, expand_home
from lamina.apps.wiring.folders import data_folder
from lamina.core.values.agent import Agent, Problem
from lamina.errors import LaminaError, UsageError

# Inside a workspace: its agents, and the persona of every agent that answers in it.
WORKSPACE_FOLDER = ".lamina"
AGENTS = "agents"
PERSONA = "persona.md"
_MAX_PERSONA = 100_000


class FoundAgent(Struct, frozen=True, kw_only=True):
    """An agent with a name, and where it was found. `agent` is None if it cannot be read at all;
    `problem` says why."""

    name: str
    path: str
    where: str
    agent: Agent | None = None
    problem: str = ""


# The folder of a workspace; None if it has none.
WorkspacePath = str | os.PathLike[str] | None


def read_agent(path: str | os.PathLike[str], workspace: WorkspacePath) -> Agent:
    """Return the agent at a path from `find_agent`.

    Raises:
        UsageError: there is no agent.
    """
    return agent_reader.read_agent(path, bringer_of(path, workspace))


def bringer_of(path: str | os.PathLike[str], workspace: WorkspacePath) -> Path | None:
    """Return the workspace that brings the agent at a path: no link in it may lead elsewhere. None
    for the user's own agents, and for a path outside the workspace."""
    if workspace is None or full_path(path).is_relative_to(full_path(data_folder())):
        return None
    return full_path(workspace)


def agent_folders(workspace: str | os.PathLike[str]) -> tuple[tuple[str, Path], ...]:
    """The folders in which agents are searched by name, in order: the user's own folder comes
    first."""
    return (
        ("user", data_folder() / AGENTS),
        ("workspace", Path(workspace) / WORKSPACE_FOLDER / AGENTS),
    )


class AgentFinder:
    """Finds agents by name, among the user's own and in a workspace. Reads each at most once."""

    def __init__(self, workspace: WorkspacePath) -> None:
        self._workspace = workspace
        self._loaded: dict[str, LoadedAgent] = {}

    def load(self, path: str | os.PathLike[str]) -> LoadedAgent:
        """Return the agent at a path from `find`.

        Raises:
            UsageError: there is no agent.
        """
        place = os.path.abspath(path)
        if place not in self._loaded:
            # An absolute path, so that messages about its files stay correct if the process moves.
            within = bringer_of(place, self._workspace)
            self._loaded[place] = agent_reader.load_agent(place, within)
        return self._loaded[place]

    def find(self, name_or_path: str) -> Path:
        """Find the folder or file of the agent that a person means: by name among their own or in
        the workspace, or by path.

        Raises:
            UsageError: there is none.
        """
        if _is_name(name_or_path) and (matches := self._matches(name_or_path)):
            return matches[0][1]
        path = expand_home(name_or_path)
        if os.path.exists(path):  # unlike Path.exists, it never raises: a name may be anything
            return path
        for _, _, path in self._agents:
            if self._written_name(path) == name_or_path:
                return path
        names = ", ".join(sorted({name for _, name, _ in self._agents})) or "none"
        raise UsageError(
            f"there is no agent {name_or_path!r}: it is neither a path nor one of the known "
            f"names ({names}). `lamina agent list` lists agents, `lamina agent new {name_or_path}` "
            f"creates one"
        )

    def find_shadowed(self, name: str) -> Path | None:
        """The workspace's agent with the same name as one of the user's own."""
        if not _is_name(name):
            return None
        matches = self._matches(name)
        others = [path for where, path in matches if where == "workspace"]
        return others[0] if others and matches[0][0] == "user" else None

    @cached_property
    def _agents(self) -> tuple[tuple[str, str, Path], ...]:
        return tuple(_named(self._workspace))

    def _matches(self, name: str) -> list[tuple[str, Path]]:
        """The places of agents with a name; the user's own also match the name in their file."""
        return [
            (where, path)
            for where, folder_name, path in self._agents
            if name == folder_name or (where == "user" and self._written_name(path) == name)
        ]

    def _written_name(self, path: Path) -> str:
        try:
            return self.load(path).agent.name
        except (LaminaError, OSError):
            return ""


def find_agent(name_or_path: str, workspace: WorkspacePath = ".") -> Path:
    """Find the folder or file of the agent that a person means.

    Raises:
        UsageError: there is none.
    """
    return AgentFinder(workspace).find(name_or_path)


def _is_name(text: str) -> bool:
    return Path(text).name == text and text not in (".", "..", "~")


def _named(workspace: WorkspacePath) -> Iterator[tuple[str, str, Path]]:
    """Place, name and path of every entry in the agents' folders, including links that are broken
    or lead out of the workspace: reading them reports that."""
    folders = [("user", data_folder() / AGENTS)]
    if workspace is not None:
        folders = list(agent_folders(workspace))
    for where, folder in folders:
        try:
            root = LinkedRoot(workspace if workspace and where == "workspace" else folder)
            names = root.names(folder)
        except (UsageError, PathRefused):
            continue
        for name in names:
            if name.startswith("."):
                continue
            path = folder / name
            if path.suffix.lower() in (".yaml", ".yml"):
                yield where, path.stem, path
            elif _may_be_folder(root, path, is_own=where == "user"):
                yield where, name, path


def _may_be_folder(root: LinkedRoot, path: Path, *, is_own: bool) -> bool:
    try:
        return stat.S_ISDIR(root.status(path).st_mode)
    except LeadsOut:
        return not is_own or path.is_dir()
    except PathRefused:
        return False


def list_agents(workspace: str | os.PathLike[str] = ".") -> tuple[FoundAgent, ...]:
    """The agents of the user and of the workspace, then the agent of the workspace's own folder."""
    agents = [_describe(where, name, path, workspace) for where, name, path in _named(workspace)]
    own = Path(workspace)
    if agent_reader.holds_agent(own):
        agents.append(_describe("folder", own.absolute().name or str(own), own, workspace))
    return tuple(agents)


def _describe(where: str, name: str, path: Path, workspace: WorkspacePath) -> FoundAgent:
    try:
        agent = read_agent(path, workspace)
    except (LaminaError, OSError) as error:
        return FoundAgent(name=name, path=str(path), where=where, problem=str(error))
    return FoundAgent(name=name, path=str(path), where=where, agent=agent)


def check_agent(agent: Agent, environ: Mapping[str, str]) -> Agent:
    """Return the agent with problems that only this machine can find: whether its model is known,
    and whether its servers could be started with this environment."""
    from lamina.adapters.providers.model_book import load_book
    from lamina.adapters.tools.mcp_client.config import servers_from

    problems = list(agent.problems)
    if agent.model:
        try:
            load_book().find(agent.model)
        except LaminaError as error:
            problems.append(Problem(path=agent.place, problem=f"model: {error}", level="warning"))
    texts = {problem.problem for problem in problems}
    for server in servers_from(agent.servers, servers_path(agent), environ).problems:
        # Problems of the entry itself were found when the file was read.
        if not any(f"the server {server.what!r}" in text for text in texts):
            words = f"the server {server.what!r}: {server.detail}"
            problems.append(Problem(path=agent.place, problem=words, level="warning"))
    return replace(agent, problems=tuple(problems))


def servers_path(agent: Agent) -> Path:
    """The file against whose folder the relative folders of an agent's servers are resolved."""
    place = Path(agent.place).absolute()
    return place / "mcp.json" if place.is_dir() else place


def persona_parts(
    agent: Agent | None, workspace: WorkspacePath, default: str = ""
) -> tuple[tuple[str, str], ...]:
    """Return the persona parts of L1: the agent's persona (or `default`), then the workspace's,
    then the user's. A missing text makes no part.

    Raises:
        UsageError: a persona exists but cannot be read, which must not go unnoticed.
    """
    own = (agent.persona if agent else "") or default
    layers = (
        ("persona", own),
        ("workspace_persona", _workspace_persona(workspace)),
        ("user_persona", _user_persona()),
    )
    return tuple((name, text) for name, text in layers if text)


def _workspace_persona(workspace: WorkspacePath) -> str:
    if workspace is None or not os.path.isdir(workspace):
        return ""
    path = Path(workspace) / WORKSPACE_FOLDER / PERSONA
    try:
        data = LinkedRoot(workspace).read(path, _MAX_PERSONA)
    except PathRefused as refusal:
        # A broken link is reported just like one that leads out of the workspace.
        if refusal.reason == "missing" and not path.is_symlink():
            return ""
        raise UsageError(f"{str(path)!r} cannot be read: {refusal.detail}") from None
    return _persona(path, data)


def _user_persona() -> str:
    path = data_folder() / PERSONA
    data = read_own_file(path, _MAX_PERSONA)
    return "" if data is None else _persona(path, data)


def _persona(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8; save it as UTF-8") from error
