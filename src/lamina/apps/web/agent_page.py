"""One agent as a page shows it: its persona, its contents and files, its problems, what a question
would select, and what counts only once a person trusts the folder.

Laws: server keys are removed in `views.agent_overview`, and nowhere else. For a trial question an
agent is opened as a session opens it, and what its folder brings counts if it was trusted
before.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, convert
from msgspec.structs import asdict

from lamina.adapters.agents.agent_reader import LoadedAgent
from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.views.agent_overview import (
    ENCODING,
    GuideRow,
    count_levels,
    describe_found_agent,
    guide_row,
    guides_in_order,
    server_terms,
)
from lamina.apps.views.search_candidates import CandidateSources, gather_candidates
from lamina.apps.web.agent_files import AgentFileRow, AgentFiles
from lamina.apps.wiring.agent_defaults import merge_fields
from lamina.apps.wiring.agent_finder import (
    FoundAgent,
    agent_folders,
    check_agent,
    list_agents,
    persona_parts,
)
from lamina.apps.wiring.trust_lookup import FolderTrust, Standing
from lamina.core.values.agent import Guide, Problem
from lamina.core.values.selection import AgentChoice, Preset, SearchSettings
from lamina.core.values.settings import Settings
from lamina.engine.runners.agent_search import choose_candidates

if TYPE_CHECKING:
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex


AgentPlace = Literal["user", "workspace", "folder"]


class AgentCard(Struct, frozen=True, kw_only=True):
    """An agent in a list. `id` identifies it: its name, or its place and name if another agent of
    that name comes first, which `is_shadowed` says."""

    id: str
    name: str
    where: AgentPlace
    path: str
    description: str
    model: str
    rules: int
    references: int
    skills: int
    servers: int
    projects: int
    errors: int
    warnings: int
    problem: str
    is_shadowed: bool


class AgentList(Struct, frozen=True, kw_only=True):
    """The agents of a workspace, and the folders that new ones are written to."""

    agents: tuple[AgentCard, ...]
    user_folder: str
    workspace_folder: str


class GuideEntry(GuideRow, frozen=True, kw_only=True):
    """A rule or a reference. `file` is its path in the agent's folder, empty if it is elsewhere."""

    item: str
    file: str
    line: int | None


class ToolTerms(Struct, frozen=True, kw_only=True):
    """The terms for one tool of a server."""

    name: str
    permission: str
    include: str
    disabled: bool


class ServerEntry(Struct, frozen=True, kw_only=True):
    """A server of an agent: its address and terms, without its keys."""

    name: str
    command: str
    url: str
    permission: str
    include: str
    disabled: bool
    tools: tuple[ToolTerms, ...]


class SkillEntry(Struct, frozen=True, kw_only=True):
    """A skill; one that models may not choose is added by hand."""

    name: str
    description: str
    folder: str
    model_invocable: bool


class NamedText(Struct, frozen=True, kw_only=True):
    """A text with its name and its approximate number of tokens."""

    name: str
    text: str
    tokens: int


class AgentPage(Struct, frozen=True, kw_only=True):
    """Everything about an agent. `place` is the folder or file it was read from; `search` and
    `tool_search` say how it chooses rules and references, and tools."""

    card: AgentCard
    version: str
    place: str
    is_folder: bool
    parts: tuple[NamedText, ...]
    memory: str
    settings: dict[str, Any]
    options: dict[str, Any]
    search: SearchSettings
    tool_search: SearchSettings
    tool_policy: str
    guides: tuple[GuideEntry, ...]
    servers: tuple[ServerEntry, ...]
    skills: tuple[SkillEntry, ...]
    projects: tuple[str, ...]
    relations: dict[str, tuple[str, ...]]
    files: tuple[AgentFileRow, ...]
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]


class AgentCheck(Struct, frozen=True, kw_only=True):
    """The problems and oddities of an agent."""

    problems: tuple[Problem, ...]
    errors: int
    warnings: int


class ListedAgent(Struct, frozen=True):
    """An agent in a list, and where it was found."""

    card: AgentCard
    found: FoundAgent


def list_cards(workspace: Path) -> AgentList:
    """List the available agents, the user's own first."""
    folders = dict(agent_folders(workspace))
    return AgentList(
        agents=tuple(listed.card for listed in _cards(workspace)),
        user_folder=str(folders["user"]),
        workspace_folder=str(folders["workspace"]),
    )


def find_listed(agent: str, workspace: Path) -> ListedAgent | None:
    """Return the agent with that id in the list, if there is one. A path is not an id: no path is
    opened this way."""
    return next((listed for listed in _cards(workspace) if listed.card.id == agent), None)


def _cards(workspace: Path) -> Iterable[ListedAgent]:
    names: set[str] = set()
    for found in list_agents(workspace):
        is_shadowed = found.name in names
        names.add(found.name)
        fields = describe_found_agent(found)
        name = f"{found.where}:{found.name}" if is_shadowed else found.name
        yield ListedAgent(AgentCard(id=name, is_shadowed=is_shadowed, **fields), found)


def read_page(listed: ListedAgent, workspace: Path) -> AgentPage:
    """Return everything about an agent.

    Raises:
        UsageError: it cannot be read.
    """
    files = AgentFiles(Path(listed.found.path), workspace)
    return _page(listed.card, files.load(), files, workspace)


def make_agent(name: str, where: str, workspace: Path) -> AgentPage:
    """Write a new agent as a starting point.

    Raises:
        UsageError: the name is not valid, or already taken.
    """
    write_skeleton(name, dict(agent_folders(workspace))[where])
    made = [listed for listed in _cards(workspace) if listed.card.name == name]
    return read_page(next(listed for listed in made if listed.card.where == where), workspace)


def check_listed(listed: ListedAgent) -> AgentCheck:
    """Return the problems of an agent, including those that depend on this machine."""
    found = listed.found
    if found.agent is None:
        problems: tuple[Problem, ...] = (Problem(path=found.path, problem=found.problem),)
    else:
        problems = check_agent(found.agent, os.environ).problems
    errors, warnings = count_levels(problems)
    return AgentCheck(problems=problems, errors=errors, warnings=warnings)


def _page(card: AgentCard, loaded: LoadedAgent, files: AgentFiles, workspace: Path) -> AgentPage:
    agent = loaded.agent
    settings: Settings = merge_fields(Settings(), agent.settings)
    count = EncodingCounter(ENCODING).count
    return AgentPage(
        card=card,
        version=agent.version,
        place=agent.place,
        is_folder=files.is_folder,
        parts=tuple(
            NamedText(name=name, text=text, tokens=count(text))
            for name, text in persona_parts(agent, workspace)
        ),
        memory=agent.memory,
        settings=agent.settings,
        options=agent.options,
        search=settings.guide_search,
        tool_search=settings.tool_search,
        tool_policy=settings.tool_policy,
        guides=tuple(_guide(guide, files) for guide in guides_in_order(agent.guides)),
        servers=tuple(_server(name, entry) for name, entry in agent.servers.items()),
        skills=convert(agent.skills, tuple[SkillEntry, ...], from_attributes=True),
        projects=tuple(project.name for project in agent.projects),
        relations=agent.relations,
        files=tuple(files.files(loaded)),
        notes=agent.notes,
        problems=check_agent(agent, os.environ).problems,
    )  # fmt: skip


def _guide(guide: Guide, files: AgentFiles) -> GuideEntry:
    file, line = files.file_of(guide)
    return GuideEntry(item=guide.id, file=file, line=line, **asdict(guide_row(guide)))


def _server(name: str, entry: dict[str, Any]) -> ServerEntry:
    terms = server_terms(entry)
    tools = terms.get("tools", {})
    return ServerEntry(
        name=name,
        command=str(terms.get("command", "")),
        url=str(terms.get("url", "")),
        permission=str(terms["permission"]),
        include=str(terms["include"]),
        disabled=bool(terms.get("disabled")),
        tools=tuple(
            ToolTerms(
                name=tool,
                permission=str(own.get("permission", terms["permission"])),
                include=str(own.get("include", terms["include"])),
                disabled=bool(own.get("disabled")),
            )
            for tool, own in tools.items()
        ),
    )


class NoOneToAsk:
    """Asks no one: what a folder brings counts if it was trusted before."""

    async def agree(self, folder: FolderTrust) -> bool:  # noqa: ARG002
        return False

    def say(self, line: str) -> None:
        """Ignore notices: problems are part of the choice."""


async def choose_for(
    question: str, agent: Path, workspace: Path, preset: Preset | None, index: "SqliteIndex"
) -> AgentChoice:
    """Return what a question would select from the agent at a path.

    Raises:
        ExtraMissing: the search package, or the client for its servers, is not installed.
        UsageError: the agent cannot be read.
    """
    sources = CandidateSources(agents=(str(agent),), workspace=workspace)
    candidates = await gather_candidates(sources, NoOneToAsk())
    count = EncodingCounter(ENCODING).count
    return await choose_candidates(question, candidates, index, count, preset=preset)


class TrustPage(Struct, frozen=True, kw_only=True):
    """What a person is shown before they trust a folder: `lines` is all of it, `digest` identifies
    it when trust is given, `changes` lists differences from what they trusted before."""

    place: str
    standing: Standing
    counts: bool
    can_be_kept: bool
    digest: str
    servers: tuple[str, ...]
    hooks: tuple[str, ...]
    model: str
    settings: tuple[str, ...]
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    problem: str
    notice: str


def show_trust(folder: FolderTrust) -> TrustPage:
    """Return what a folder brings, and its trust status."""
    claims = folder.claims
    return TrustPage(
        place=claims.place,
        standing=folder.standing,
        counts=folder.counts,
        can_be_kept=folder.can_be_kept,
        digest=claims.digest,
        servers=tuple(claims.servers),
        hooks=claims.hooks,
        model=claims.model,
        settings=tuple(f"{name}: {value}" for name, value in claims.settings.items()),
        lines=claims.lines,
        changes=folder.changes(),
        problem=folder.problem or claims.problem,
        notice=folder.notice(),
    )
