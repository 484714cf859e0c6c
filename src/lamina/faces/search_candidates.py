"""What can be chosen for a question: the tools of files; the rules, references and tools of agents.

Law: an agent is opened as a session opens it, so that its servers are started if its folder is
trusted, and named if they are not.
"""

import json
import shlex
from collections.abc import Container, Sequence
from pathlib import Path

from msgspec import Struct

from lamina.agents import holds_agent
from lamina.errors import UsageError
from lamina.extras import require
from lamina.faces.hook_files import TrustAsker
from lamina.faces.tool_file import ListedTool, read_tools
from lamina.faces.trust import settle_trust
from lamina.selection.chunks import chunk_tool
from lamina.sources.candidates import guide_document, tool_document
from lamina.tools.toolbox import Toolbox
from lamina.values.agent import Guide
from lamina.values.item import ItemId, key_of
from lamina.values.selection import Document, SearchSettings
from lamina.values.settings import Settings
from lamina.values.tool import OfferedTool
from lamina.wiring.agent_defaults import AgentDefaults, read_agent_defaults
from lamina.wiring.agents import list_agents
from lamina.wiring.tool_hosts import agent_hosts


class CandidateSources(Struct, frozen=True, kw_only=True):
    """Where candidates come from: files with tools, agents by path or name. With `trust` all that
    the agents' folders bring counts, without asking."""

    tools: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    workspace: Path = Path()
    trust: bool = False


class Candidate(Struct, frozen=True, kw_only=True):
    """Something that can be chosen, as a person knows it."""

    document: Document
    name: str
    kind: str
    server: str = ""
    include: str = ""


class Candidates(Struct, frozen=True, kw_only=True):
    """What there is to choose from; the settings and `relations` are how the agent wants it to be
    chosen. `guides` are the rules and references among the candidates."""

    candidates: tuple[Candidate, ...]
    guides: tuple[Guide, ...] = ()
    guide_search: SearchSettings = SearchSettings()
    tool_search: SearchSettings = SearchSettings()
    relations: dict[str, tuple[str, ...]] = {}
    problems: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        return tuple(candidate.document for candidate in self.candidates)

    def searched(
        self, there: Container[ItemId] = ()
    ) -> tuple[tuple[tuple[Candidate, ...], SearchSettings], ...]:
        """What search may choose besides what is `there`: of the rules and references, and of the
        tools, each with how it is chosen. They are searched apart, as in a session."""
        free = [
            candidate
            for candidate in self.candidates
            if candidate.include in ("", "agent") and candidate.document.id not in there
        ]
        guides = tuple(candidate for candidate in free if candidate.kind != "tool")
        tools = tuple(candidate for candidate in free if candidate.kind == "tool")
        pools = ((guides, self.guide_search), (tools, self.tool_search))
        return tuple((pool, settings) for pool, settings in pools if pool)

    def by_id(self) -> dict[ItemId, Candidate]:
        return {candidate.document.id: candidate for candidate in self.candidates}


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
    tools = [_listed_candidate(tool) for path in sources.tools for tool in read_tools(path)]
    gathered = Candidates(candidates=tuple(tools))
    for name in agents:
        agent = await read_agent_defaults(name, sources.workspace)
        agent = await settle_trust(agent, asker, trust=sources.trust)
        gathered = _join(gathered, await _gather_agent(agent, name, sources.workspace))
    return gathered


async def _gather_agent(agent: AgentDefaults, name: str, workspace: Path) -> Candidates:
    """What an agent has, as a session would be given it."""
    guides, settings = agent.agent.guides, agent.settings
    tools, problems = await _start_servers(agent, workspace)
    if agent.agent.problems:
        count = len(agent.agent.problems)
        odd = f"{count:,} {'oddities' if count > 1 else 'oddity'} in the files of the agent"
        problems.append(f"{odd} {name!r}; `lamina agent check {shlex.quote(name)}` names them")
    if not guides and not tools:
        problems.append(f"the agent {name!r} has no rules and no references")
    return Candidates(
        candidates=(
            *map(_guide_candidate, guides),
            *(_offered_candidate(tool, settings) for tool in tools),
        ),
        guides=guides,
        guide_search=settings.guide_search,
        tool_search=settings.tool_search,
        relations=agent.agent.relations,
        problems=tuple(problems),
    )


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


def _offered_candidate(tool: OfferedTool, settings: Settings) -> Candidate:
    server, _, name = key_of(tool.id).partition("/")
    is_always = tool.include == "agent" and settings.tool_policy == "all"
    return Candidate(
        document=tool_document(tool),
        name=name,
        kind="tool",
        server=server,
        include="always" if is_always else tool.include,
    )


def _guide_candidate(guide: Guide) -> Candidate:
    return Candidate(
        document=guide_document(guide), name=guide.name, kind=guide.kind, include=guide.include
    )
