"""What can be chosen for a question: the tools of files; the rules, references and tools of agents.

Law: an agent is opened as a session opens it, so that its servers are started if its folder is
trusted, and named if they are not.
"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.agents import holds_agent
from lamina.adapters.extras import require
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.adapters.tools.toolbox import Toolbox
from lamina.apps.views.agents import ENCODING
from lamina.apps.views.hook_files import TrustAsker
from lamina.apps.views.tool_file import ListedTool, read_tools
from lamina.apps.views.trust import settle_trust
from lamina.apps.wiring.agent_defaults import AgentDefaults, read_agent_defaults
from lamina.apps.wiring.agents import list_agents
from lamina.apps.wiring.tool_hosts import agent_hosts
from lamina.core.assembly.tools import is_small_pool
from lamina.core.codec import mend_text
from lamina.core.selection.chunks import chunk_tool
from lamina.core.values.message import ToolDefinition
from lamina.core.values.selection import Document
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool
from lamina.engine.sources.candidates import (
    Candidate,
    Candidates,
    guide_candidate,
    offered_candidate,
)
from lamina.errors import UsageError


class CandidateSources(Struct, frozen=True, kw_only=True):
    """Where candidates come from: files with tools, agents by path or name. With `trust` all that
    the agents' folders bring counts, without asking."""

    tools: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    workspace: Path = Path()
    trust: bool = False


def sources_from_paths(paths: Sequence[Path]) -> CandidateSources:
    """Files with tools, and agents: JSON is tools, unless it names servers."""
    agents = [path for path in paths if not _holds_tools(path)]
    return CandidateSources(
        tools=tuple(path for path in paths if path not in agents),
        agents=tuple(str(path) for path in agents),
    )


def _holds_tools(path: Path) -> bool:
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        # Whoever reads it for its tools says what is wrong with it.
        return True
    return not (isinstance(content, dict) and "mcpServers" in content)


async def gather_candidates(sources: CandidateSources, asker: TrustAsker) -> Candidates:
    """The tools of files, and the rules, references and tools of agents whatever their include
    mode; without either, of the workspace itself. Whoever can be asked decides about a folder that
    is not trusted.

    Raises:
        ExtraMissing: an agent's servers are trusted, and what speaks to them is not installed.
        UsageError: a file cannot be read, or there is nothing to choose from.
    """
    agents = sources.agents
    if not agents and not sources.tools:
        if not holds_agent(sources.workspace):
            raise _nothing_in(sources.workspace)
        agents = (str(sources.workspace),)
    listed = [tool for path in sources.tools for tool in read_tools(path)]
    pools = {tool.id: tool.definition for tool in listed}
    gathered = Candidates(candidates=tuple(map(_listed_candidate, listed)))
    settings = Settings()
    for name in agents:
        agent = await read_agent_defaults(name, sources.workspace)
        agent = await settle_trust(agent, asker, trust=sources.trust)
        theirs, tools = await _gather_agent(agent, name, sources.workspace)
        gathered, settings = _join(gathered, theirs), agent.settings
        pools |= {tool.id: tool.definition for tool in tools if tool.include == "agent"}
    is_whole = is_small_pool(list(pools.values()), settings, _count_definition)
    return replace(gathered, whole_pool=frozenset(pools) if is_whole else frozenset())


def _count_definition(tool: ToolDefinition) -> int:
    text = json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False)
    return EncodingCounter(ENCODING).count(mend_text(text))


async def _gather_agent(
    agent: AgentDefaults, name: str, workspace: Path
) -> tuple[Candidates, tuple[OfferedTool, ...]]:
    """What an agent has, as a session would be given it."""
    guides, settings = agent.agent.guides, agent.settings
    tools, problems = await _start_servers(agent, workspace)
    if agent.agent.problems:
        count = len(agent.agent.problems)
        odd = f"{count:,} {'oddities' if count > 1 else 'oddity'} in the files of the agent"
        problems.append(f"{odd} {name!r}; `lamina agent check {shlex.quote(name)}` names them")
    if not guides and not tools:
        problems.append(f"the agent {name!r} has no rules and no references")
    candidates = Candidates(
        candidates=(
            *map(guide_candidate, guides),
            *(offered_candidate(tool, settings) for tool in tools),
        ),
        guides=guides,
        guide_search=settings.guide_search,
        tool_search=settings.tool_search,
        relations=agent.agent.relations,
        problems=tuple(problems),
    )
    return candidates, tools


async def _start_servers(
    agent: AgentDefaults, workspace: Path
) -> tuple[tuple[OfferedTool, ...], list[str]]:
    """The tools that an agent's servers and skills offer, and what is said of those that are not
    offered."""
    if agent.servers.servers:
        require("mcp")
    async with Toolbox(*agent_hosts(agent, workspace, stays=False)) as toolbox:
        toolset = await toolbox.toolset()
    # What is not trusted is said once, with all that does not count.
    problems = [
        f"not offered: {tool.what}: {tool.detail}"
        for tool in toolset.withheld
        if tool.reason != "untrusted"
    ]
    return toolset.tools, [*agent.notices, *problems]


def _join(one: Candidates, other: Candidates) -> Candidates:
    """The candidates of both; of two ways to choose, the later one's."""
    return Candidates(
        candidates=one.candidates + other.candidates,
        guides=one.guides + other.guides,
        guide_search=other.guide_search,
        tool_search=other.tool_search,
        relations=one.relations | other.relations,
        problems=one.problems + other.problems,
    )


def _nothing_in(workspace: Path) -> UsageError:
    names = ", ".join(agent.name for agent in list_agents(workspace)) or "none known by name"
    return UsageError(
        f"there is nothing to search in {str(workspace.absolute())!r} itself: give --tools FILE, "
        f"or --agent PATH|NAME for the rules and references of an agent ({names}); notes are "
        f"searched with `lamina notes search`"
    )


def _listed_candidate(tool: ListedTool) -> Candidate:
    chunks = chunk_tool(
        tool.name,
        tool.description,
        server=tool.server,
        server_description=tool.server_description,
        parameters=tool.parameters,
    )
    return Candidate(
        document=Document(tool.id, chunks), name=tool.name, kind="tool", server=tool.server
    )
