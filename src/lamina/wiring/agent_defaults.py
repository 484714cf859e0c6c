"""What an agent brings to a session: persona, project, settings and options."""

import os
from typing import Any

import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.errors import UsageError
from lamina.values.agent import Agent, Project
from lamina.values.envelope import Options
from lamina.values.settings import Settings
from lamina.wiring.agents import WorkspacePath, find_agent, persona_parts, read_agent


class AgentDefaults(Struct, frozen=True, kw_only=True):
    """What an agent gives a session that says nothing else."""

    agent: Agent
    place: str
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
) -> AgentDefaults:
    """The agent of a name or path, as a session takes it.

    Raises:
        UsageError: there is no such agent, or it has no such project.
    """

    def read() -> AgentDefaults:
        place = find_agent(os.fspath(agent), workspace)
        definition = read_agent(place, workspace)
        return AgentDefaults(
            agent=definition,
            place=os.path.abspath(place),
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


def merge_fields(base: Any, fields: dict[str, Any]) -> Any:
    """`base` with the fields that an agent sets; they were checked when it was read."""
    whole = msgspec.to_builtins(base) | fields
    return msgspec.convert(whole, type(base), strict=False)
