"""What an agent brings to a session: persona, project, settings, options and servers.

Law: an agent is read once, and what was judged is what is used.
"""

import os
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import fields, replace

from lamina.agents.claims import without_claims
from lamina.errors import UsageError
from lamina.values.agent import Agent, Project
from lamina.values.envelope import Options
from lamina.values.settings import Settings
from lamina.values.trust import Trust
from lamina.wiring.agents import (
    WorkspacePath,
    find_agent,
    find_shadowed,
    persona_parts,
    read_agent,
    servers_path,
)
from lamina.wiring.trust import FolderTrust, look_up_trust

if TYPE_CHECKING:
    from lamina.tools.mcp_client.config import ServerList


class AgentDefaults(Struct, frozen=True, kw_only=True):
    """What an agent gives a session that says nothing else. `agent` and `servers` are what counts
    of it; `notices` say what does not."""

    agent: Agent
    place: str
    trust: FolderTrust
    servers: "ServerList"
    notices: tuple[str, ...] = ()
    system: tuple[tuple[str, str], ...] = ()
    project: Project | None = None
    settings: Settings = Settings()
    options: Options = Options()


async def read_agent_defaults(
    agent: str | os.PathLike[str],
    workspace: WorkspacePath,
    *,
    project: str | None = None,
    default_persona: str = "",
    trust: Trust = False,
) -> AgentDefaults:
    """The agent of a name or path, as a session takes it: what its folder may not say does not
    count, unless `trust` says so.

    Raises:
        UsageError: there is no such agent, or it has no such project.
    """

    def read() -> AgentDefaults:
        from lamina.tools.mcp_client.config import ServerList, servers_from

        place = find_agent(os.fspath(agent), workspace)
        definition = read_agent(place, workspace)
        servers = servers_from(definition.servers, servers_path(definition), os.environ)
        folder = look_up_trust(definition, place, servers, workspace, trust)
        notices = [folder.notice()]
        if not folder.counts:
            definition = replace(definition, **without_claims(definition, folder.claims))
            servers = ServerList()
        if other := find_shadowed(os.fspath(agent), workspace):
            notices.append(
                f"the agent {os.fspath(agent)!r} is your own; the workspace has one of that name, "
                f"which is reached by its path: {str(other)!r}"
            )
        return AgentDefaults(
            agent=definition,
            place=os.path.abspath(place),
            trust=folder,
            servers=servers,
            notices=tuple(filter(None, notices)),
            system=persona_parts(definition, workspace, default_persona),
            project=find_project(definition, project) if project else None,
            settings=merge_fields(Settings(), definition.settings),
            options=merge_fields(Options(), definition.options),
        )

    return await run_sync(read)


def find_project(agent: Agent, name: str) -> Project:
    """A project of an agent by its name.

    Raises:
        UsageError: it has none of that name.
    """
    for project in agent.projects:
        if project.name == name:
            return project
    names = ", ".join(project.name for project in agent.projects) or "none"
    raise UsageError(f"the agent {agent.name!r} has no project {name!r}; it has: {names}")


def merge_settings(given: Settings | None, agent: Settings) -> Settings:
    """The settings of a session: what was given beside the agent's. What was left at its default
    was not said, so that a word on one thing never undoes what an agent is strict about."""
    if given is None:
        return agent
    own = {
        field.name: value
        for field in fields(Settings)
        if (value := getattr(given, field.name)) != field.default
    }
    return replace(agent, **own)


def merge_fields(base: Any, fields: dict[str, Any]) -> Any:
    """`base` with the fields that an agent sets; they were checked when it was read."""
    whole = msgspec.to_builtins(base) | fields
    return msgspec.convert(whole, type(base), strict=False)
