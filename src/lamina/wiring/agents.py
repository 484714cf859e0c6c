"""Agents by name: where they are looked for, what a workspace itself is, and who they are."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.agents.agent_reader import holds_agent, read_agent
from lamina.errors import LaminaError, UsageError
from lamina.values.agent import Agent, Problem
from lamina.wiring.folders import data_folder

# Inside a workspace: its agents, and the persona of all that answer in it.
WORKSPACE_FOLDER = ".lamina"
AGENTS = "agents"
PERSONA = "persona.md"
_MOST_PERSONA = 100_000


class FoundAgent(Struct, frozen=True, kw_only=True):
    """An agent that can be named, and where it was found. `agent` is None if it cannot be read at
    all, and `problem` says why."""

    name: str
    path: str
    where: str
    agent: Agent | None = None
    problem: str = ""


def agent_folders(workspace: str | os.PathLike[str]) -> tuple[tuple[str, Path], ...]:
    """Where agents are looked for by name, in order: nobody's folder takes the place of one's
    own."""
    return (
        ("user", data_folder() / AGENTS),
        ("workspace", Path(workspace) / WORKSPACE_FOLDER / AGENTS),
    )


def find_agent(name_or_path: str, workspace: str | os.PathLike[str] = ".") -> Path:
    """The folder or file of the agent that a person means: by name among their own or in the
    workspace, or by path.

    Raises:
        UsageError: there is none.
    """
    agents = list(_named(workspace))
    if _is_name(name_or_path) and (matches := _matches(name_or_path, agents)):
        return matches[0][1]
    path = Path(name_or_path).expanduser()
    if path.exists():
        return path
    for _, _, path in agents:
        if _written_name(path) == name_or_path:
            return path
    names = ", ".join(sorted({name for _, name, _ in agents})) or "none"
    raise UsageError(
        f"there is no agent {name_or_path!r}: no path, and none of those that are known by name "
        f"({names}). `lamina agent list` shows them, `lamina agent new {name_or_path}` writes one"
    )


def find_shadowed(name: str, workspace: str | os.PathLike[str] = ".") -> Path | None:
    """The workspace's agent of a name that one's own has as well."""
    if not _is_name(name):
        return None
    matches = _matches(name, list(_named(workspace)))
    others = [path for where, path in matches if where == "workspace"]
    return others[0] if others and matches[0][0] == "user" else None


def _matches(name: str, agents: Sequence[tuple[str, str, Path]]) -> list[tuple[str, Path]]:
    """Where agents of a name are: one's own also by the name that they give themselves."""
    return [
        (where, path)
        for where, folder_name, path in agents
        if name == folder_name or (where == "user" and _written_name(path) == name)
    ]


def _is_name(text: str) -> bool:
    return Path(text).name == text and text not in (".", "..", "~")


def _named(workspace: str | os.PathLike[str]) -> Iterator[tuple[str, str, Path]]:
    """Where, name and path of all that are in the folders of agents."""
    for where, folder in agent_folders(workspace):
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                yield where, path.name, path
            elif path.suffix.lower() in (".yaml", ".yml"):
                yield where, path.stem, path


def _written_name(path: Path) -> str:
    try:
        return read_agent(path).name
    except (LaminaError, OSError):
        return ""


def list_agents(workspace: str | os.PathLike[str] = ".") -> tuple[FoundAgent, ...]:
    """The agents of the user and of the workspace, then what the workspace's own folder holds."""
    agents = [_describe(where, name, path) for where, name, path in _named(workspace)]
    own = Path(workspace)
    if holds_agent(own):
        agents.append(_describe("folder", own.absolute().name or str(own), own))
    return tuple(agents)


def _describe(where: str, name: str, path: Path) -> FoundAgent:
    try:
        agent = read_agent(path)
    except (LaminaError, OSError) as error:
        return FoundAgent(name=name, path=str(path), where=where, problem=str(error))
    return FoundAgent(name=name, path=str(path), where=where, agent=agent)


def check_agent(agent: Agent, environ: Mapping[str, str]) -> Agent:
    """The agent with what only this machine knows about it: whether its model is known, and whether
    its servers could be started with this environment."""
    from lamina.providers.model_book import load_book
    from lamina.tools.mcp_client.config import servers_from

    problems = list(agent.problems)
    if agent.model:
        try:
            load_book().find(agent.model)
        except LaminaError as error:
            problems.append(Problem(path=agent.place, problem=f"model: {error}", level="warning"))
    texts = {problem.problem for problem in problems}
    for server in servers_from(agent.servers, servers_path(agent), environ).problems:
        # What is wrong with the entry itself was found where it stands.
        if not any(f"the server {server.what!r}" in text for text in texts):
            words = f"the server {server.what!r}: {server.detail}"
            problems.append(Problem(path=agent.place, problem=words, level="warning"))
    return replace(agent, problems=tuple(problems))


def servers_path(agent: Agent) -> Path:
    """The file that an agent's servers are seen from: relative folders are relative to its own."""
    place = Path(agent.place).absolute()
    return place / "mcp.json" if place.is_dir() else place


def persona_parts(
    agent: Agent | None, workspace: str | os.PathLike[str], default: str = ""
) -> tuple[tuple[str, str], ...]:
    """Who answers, as parts of L1: the agent's persona (or `default`), then how the workspace and
    then how the user wants it. A missing text makes no part."""
    own = (agent.persona if agent else "") or default
    layers = (
        ("persona", own),
        ("workspace_persona", _persona(Path(workspace) / WORKSPACE_FOLDER / PERSONA)),
        ("user_persona", _persona(data_folder() / PERSONA)),
    )
    return tuple((name, text) for name, text in layers if text)


def _persona(path: Path) -> str:
    """What a file says; nothing if there is none.

    Raises:
        UsageError: it is there and cannot be read, which must not go unseen.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    if len(data) > _MOST_PERSONA:
        raise UsageError(
            f"{str(path)!r} has {len(data):,} bytes, over the limit of {_MOST_PERSONA:,}; what is "
            f"sent with every request should be short"
        )
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8; save it as that") from error
