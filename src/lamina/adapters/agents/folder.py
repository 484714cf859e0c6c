"""An agent that is checked again before every turn.

Law: the next call sees every edit; if nothing changed, it costs one check per file.
"""

import os
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.adapters.agents.agent_reader import LoadedAgent, load_agent
from lamina.adapters.agents.disk import stamp_of
from lamina.adapters.files.paths import expand_home
from lamina.core.values.agent import Agent, Guides, Problem, tool_modes
from lamina.errors import UsageError


class AgentFolder:
    """The agent at a path, as it is now; `within` is the workspace that brings it, if one does.
    `loaded` is the agent as it was read before, if it was."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        within: str | os.PathLike[str] | None = None,
        *,
        loaded: LoadedAgent | None = None,
    ) -> None:
        # Absolute, so that it stays the same if the process changes its folder.
        self.path = Path(os.path.abspath(expand_home(path)))
        self._within = None if within is None else os.path.abspath(within)
        self._latest = loaded
        # Why there is no agent any more.
        self._gone = ""
        self._lock = anyio.Lock()

    async def agent(self) -> Agent:
        """The agent; read again only if one of its files changed.

        Raises:
            UsageError: there is no agent, and never was.
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
            # It was deleted while in use: the agent is empty now, and a problem says so.
            self._gone = str(error)
            problem = Problem(path=str(self.path), problem=f"the agent is gone: {error}")
            agent = Agent(name=self._latest.agent.name, problems=(problem,), place=str(self.path))
            return LoadedAgent(agent=agent, stamps=self._latest.stamps)
