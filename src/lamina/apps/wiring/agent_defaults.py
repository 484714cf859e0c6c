"""What an agent brings to a session: persona, project, settings, options and servers.

Law: an agent is read once, and the version that was judged is the one that is used.
"""

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.agents.agent_reader import AgentFolder, LoadedAgent
from lamina.adapters.agents.trusted_claims import without_claims
from lamina.apps.wiring.agent_finder import (
    AgentFinder,
    WorkspacePath,
    bringer_of,
    persona_parts,
    servers_path,
)
from lamina.apps.wiring.trust_lookup import FolderTrust, look_up_trust
from lamina.core.values.agent import Agent, Project, Trust, tool_modes
from lamina.core.values.envelope import Options
from lamina.core.values.item import Include, ItemId
from lamina.core.values.settings import Settings
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.adapters.tools.mcp_client.config import ServerList


class AgentDefaults(Struct, frozen=True, kw_only=True):
    """What an agent gives a session by default. `loaded` and `all_servers` are as they were read;
    `agent` and `servers` are the parts that count, and `notices` say which parts do not. It can be
    passed wherever an agent's path is expected, and is then not read again."""

    loaded: LoadedAgent
    place: str
    trust: FolderTrust
    all_servers: "ServerList"
    system: tuple[tuple[str, str], ...] = ()
    project: Project | None = None
    # A notice about another agent of the same name.
    shadowed: str = ""

    def __fspath__(self) -> str:
        return self.place

    @property
    def agent(self) -> Agent:
        agent = self.loaded.agent
        if self.trust.counts:
            return agent
        return replace(agent, **without_claims(agent, self.trust.claims))

    @property
    def servers(self) -> "ServerList":
        from lamina.adapters.tools.mcp_client.config import ServerList

        return self.all_servers if self.trust.counts else ServerList()

    @property
    def settings(self) -> Settings:
        settings: Settings = merge_fields(Settings(), self.agent.settings)
        return settings

    @property
    def options(self) -> Options:
        options: Options = merge_fields(Options(), self.agent.options)
        return options

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.trust.notice(), self.shadowed)))

    @property
    def include_modes(self) -> dict[ItemId, Include]:
        """The include modes of its rules, references and tools, whether or not its servers are
        trusted: their tools belong to the session even if they are trusted later."""
        agent = self.loaded.agent
        guides = {guide.id: guide.include for guide in agent.guides}
        return guides | tool_modes(agent.servers)

    def trusted(self) -> "AgentDefaults":
        """The agent as it was read, with every part counting: a person was shown it and agreed."""
        return replace(self, trust=replace(self.trust, standing="given"))

    def guides(self, workspace: WorkspacePath) -> AgentFolder:
        """Its rules and references, read again only after one of their files has changed."""
        return AgentFolder(self.place, bringer_of(self.place, workspace), loaded=self.loaded)


async def read_agent_defaults(
    agent: str | os.PathLike[str],
    workspace: WorkspacePath,
    *,
    project: str | None = None,
    default_persona: str = "",
    trust: Trust = False,
) -> AgentDefaults:
    """Return the agent of a name or path, as a session uses it: claims that need trust do not count
    unless `trust` allows them. An agent that has been read already is returned unchanged.

    Raises:
        UsageError: there is no such agent, or it has no such project.
    """
    if isinstance(agent, AgentDefaults):
        return agent
    read = partial(_read, os.fspath(agent), workspace, project, default_persona, trust)
    return await run_sync(read)


def _read(
    name: str, workspace: WorkspacePath, project: str | None, default_persona: str, trust: Trust
) -> AgentDefaults:
    from lamina.adapters.tools.mcp_client.config import servers_from

    finder = AgentFinder(workspace)
    place = os.path.abspath(finder.find(name))
    loaded = finder.load(place)
    servers = servers_from(loaded.agent.servers, servers_path(loaded.agent), os.environ)
    return AgentDefaults(
        loaded=loaded,
        place=place,
        trust=look_up_trust(loaded.agent, place, servers, workspace, trust),
        all_servers=servers,
        system=persona_parts(loaded.agent, workspace, default_persona),
        project=find_project(loaded.agent, project) if project else None,
        shadowed=_tell_shadowed(name, finder),
    )


def _tell_shadowed(name: str, finder: AgentFinder) -> str:
    other = finder.find_shadowed(name)
    if other is None:
        return ""
    return (
        f"the agent {name!r} is your own; the workspace has one of that name, "
        f"which is reached by its path: {str(other)!r}"
    )


def find_project(agent: Agent, name: str) -> Project:
    """Return an agent's project by its name.

    Raises:
        UsageError: the agent has no project of that name.
    """
    for project in agent.projects:
        if project.name == name:
            return project
    names = ", ".join(project.name for project in agent.projects) or "none"
    raise UsageError(f"the agent {agent.name!r} has no project {name!r}; it has: {names}")


def merge_fields(base: Any, fields: dict[str, Any]) -> Any:
    """Return `base` with the fields that an agent sets, which were checked when it was read."""
    whole = msgspec.to_builtins(base) | fields
    return msgspec.convert(whole, type(base), strict=False)
