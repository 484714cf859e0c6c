"""What can be chosen for a question: the tools of files, the rules and references of agents."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agents import holds_agent
from lamina.errors import UsageError
from lamina.faces.tool_file import ListedTool, read_tools
from lamina.selection.chunks import chunk_item, chunk_tool
from lamina.values.agent import Guide
from lamina.values.item import ItemId
from lamina.values.selection import Document, SearchSettings
from lamina.wiring.agents import find_agent, list_agents, read_agent


class CandidateSources(Struct, frozen=True, kw_only=True):
    """Where candidates come from: files with tools, agents by path or name."""

    tools: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    workspace: Path = Path()


class Candidate(Struct, frozen=True, kw_only=True):
    """Something that can be chosen, as a person knows it."""

    document: Document
    name: str
    kind: str
    server: str = ""
    include: str = ""


class Candidates(Struct, frozen=True, kw_only=True):
    """What there is to choose from; `settings` and `relations` are how the agent wants it to be
    chosen."""

    candidates: tuple[Candidate, ...]
    settings: SearchSettings = SearchSettings()
    relations: dict[str, tuple[str, ...]] = {}
    problems: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        return tuple(candidate.document for candidate in self.candidates)

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


def gather_candidates(sources: CandidateSources) -> Candidates:
    """The tools of files, and the rules and references of agents whatever their include mode;
    without either, of the workspace itself.

    Raises:
        UsageError: a file cannot be read, or there is nothing to choose from.
    """
    agents = sources.agents
    if not agents and not sources.tools:
        if not holds_agent(sources.workspace):
            raise _nothing_in(sources.workspace)
        agents = (str(sources.workspace),)
    candidates = [_tool_candidate(tool) for path in sources.tools for tool in read_tools(path)]
    settings = SearchSettings()
    relations: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for name in agents:
        agent = read_agent(find_agent(name, sources.workspace), sources.workspace)
        candidates += [_guide_candidate(guide) for guide in agent.guides]
        settings = msgspec.convert(agent.settings.get("guide_search", settings), SearchSettings)
        relations |= agent.relations
        if agent.problems:
            count = len(agent.problems)
            odd = f"{count:,} {'oddities' if count > 1 else 'oddity'} in the files of the agent"
            problems.append(f"{odd} {name!r}; `lamina agent check {shlex.quote(name)}` names them")
        if not agent.guides:
            problems.append(f"the agent {name!r} has no rules and no references")
    return Candidates(
        candidates=tuple(candidates),
        settings=settings,
        relations=relations,
        problems=tuple(problems),
    )


def _nothing_in(workspace: Path) -> UsageError:
    names = ", ".join(agent.name for agent in list_agents(workspace)) or "none known by name"
    return UsageError(
        f"there is nothing to search in {str(workspace.absolute())!r} itself: give --tools FILE, "
        f"or --agent PATH|NAME for the rules and references of an agent ({names}); notes are "
        f"searched with `lamina notes search`"
    )


def _tool_candidate(tool: ListedTool) -> Candidate:
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


def _guide_candidate(guide: Guide) -> Candidate:
    chunks = chunk_item(guide.name, guide.description, guide.text)
    return Candidate(
        document=Document(guide.id, chunks), name=guide.name, kind=guide.kind, include=guide.include
    )
