"""Everything that can be chosen for a question: tools listed in files, and agents' rules,
references and tools.

Laws: an agent is opened as a session opens it, so its servers start if its folder is trusted;
otherwise they are named. An unreadable tool in a file is an error that says where; none is left
out silently.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.agents import holds_agent
from lamina.adapters.files.extras import require
from lamina.adapters.files.own_file import read_named_file
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.adapters.tools.toolbox import Toolbox
from lamina.apps.views.agent_overview import ENCODING
from lamina.apps.views.folder_trust import settle_trust
from lamina.apps.views.trusted_hooks import TrustAsker
from lamina.apps.wiring.agent_defaults import AgentDefaults, read_agent_defaults
from lamina.apps.wiring.agent_finder import list_agents
from lamina.apps.wiring.tool_hosts import agent_hosts
from lamina.core.assembly.tool_offer import is_small_pool
from lamina.core.codec import mend_text
from lamina.core.selection.chunks import chunk_tool
from lamina.core.text.excerpt import brief
from lamina.core.values.item import ItemId, tool_id
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

FORMS = (
    "a list of tools, an object with `tools` (what an MCP server answers to tools/list), or "
    "functions as OpenAI, Anthropic and Gemini take them"
)
# Keys that contain the schema of arguments, by format.
SCHEMAS = ("inputSchema", "input_schema", "parameters", "parametersJsonSchema")
# How much of a wrong value an error message quotes.
SHOWN = 40
DECLARATIONS = ("functionDeclarations", "function_declarations")


class ListedTool(Struct, frozen=True, kw_only=True):
    """A tool as described in a file."""

    name: str
    server: str = ""
    description: str = ""
    server_description: str = ""
    parameters: tuple[str, ...] = ()
    schema: dict[str, Any] = {}

    @property
    def id(self) -> ItemId:
        return tool_id(self.server, self.name)

    @property
    def definition(self) -> ToolDefinition:
        """Return the definition that a request would contain."""
        schema = self.schema or {"properties": {name: {} for name in self.parameters}}
        return ToolDefinition(name=self.name, description=self.description, parameters=schema)


def read_tools(path: Path) -> tuple[ListedTool, ...]:
    """Read the tools of a file, in order.

    Raises:
        UsageError: the file cannot be read, is not JSON, has no tools, or repeats a name.
    """
    try:
        content = json.loads(read_named_file(path).decode("utf-8-sig"))
    except UsageError as error:
        raise UsageError(f"no tools: {error}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{str(path)!r} is not JSON: {error}") from error
    entries = list(_entries(content))
    if not entries:
        raise UsageError(f"no tools found in {str(path)!r}; supported formats: {FORMS}")
    tools = tuple(_tool(entry, f"tool {number} of {str(path)!r}") for number, entry in entries)
    numbers: dict[ItemId, int] = {}
    for number, tool in enumerate(tools, 1):
        if tool.id in numbers:
            of = f" of the server {brief(tool.server)!r}" if tool.server else ""
            raise UsageError(
                f"{str(path)!r} names the tool {brief(tool.name)!r}{of} twice, as number "
                f"{numbers[tool.id]} and {number}; give each a name or a `server` of its own"
            )
        numbers[tool.id] = number
    return tools


def _entries(content: Any) -> Iterator[tuple[int, Any]]:
    """Yield the entries that describe a tool, with their numbers."""
    if isinstance(content, Mapping) and isinstance(content.get("result"), Mapping):
        # The full answer of a server.
        content = content["result"]
    if isinstance(content, Mapping):
        content = content.get("tools", content)
    if isinstance(content, Mapping):
        content = [content] if any(key in content for key in DECLARATIONS) else []
    if isinstance(content, list):
        yield from enumerate(_unfolded(content), 1)


def _unfolded(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        declared = next((key for key in DECLARATIONS if _has(entry, key, list)), "")
        if declared:
            yield from entry[declared]
        elif _has(entry, "function", Mapping):
            yield entry["function"]
        else:
            yield entry


def _has(entry: Any, key: str, kind: type) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get(key), kind)


def _tool(entry: Any, place: str) -> ListedTool:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{place} is {_kind(entry)}, not an object with `name` and `description`")
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"{place} has no name: `name` is {_kind(name)}")
    texts = {
        key: _text(entry.get(key), f"`{key}` of {place}")
        for key in ("server", "description", "server_description")
    }
    return ListedTool(name=name, parameters=_parameters(entry), schema=_schema(entry), **texts)


def _text(value: Any, place: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise UsageError(f"{place} is {_kind(value)}, not text")


def _schema(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments, if it has one."""
    return dict(next((entry[key] for key in SCHEMAS if _has(entry, key, Mapping)), {}))


def _parameters(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a tool's arguments, from a list of them or from their schema."""
    arguments = entry.get("params")
    if arguments is None:
        arguments = _schema(entry).get("properties")
    if not isinstance(arguments, list | Mapping):
        return ()
    names = (
        argument.get("name") if isinstance(argument, Mapping) else argument
        for argument in arguments
    )
    return tuple(name for name in names if isinstance(name, str))


def _kind(value: Any) -> str:
    """Return the type of a value in a file, in words for the file's author."""
    if value is None:
        return "missing"
    return brief(json.dumps(value, ensure_ascii=False), SHOWN)


class CandidateSources(Struct, frozen=True, kw_only=True):
    """Sources of candidates: files with tools, and agents by path or name. `trust` accepts all that
    the agents' folders bring without asking."""

    tools: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    workspace: Path = Path()
    trust: bool = False


def sources_from_paths(paths: Sequence[Path]) -> CandidateSources:
    """Return files with tools, and agents: JSON counts as tools, unless it names servers."""
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
        # The reader of its tools reports what is wrong with it.
        return True
    return not (isinstance(content, dict) and "mcpServers" in content)


async def gather_candidates(sources: CandidateSources, asker: TrustAsker) -> Candidates:
    """Return the tools of files, and the rules, references and tools of agents whatever their
    include mode; without either, those of the workspace itself. The asker decides about untrusted
    folders.

    Raises:
        ExtraMissing: an agent's servers are trusted, but their client package is not installed.
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
    """Return what a session with this agent would be given."""
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
    """Return the tools that an agent's servers and skills offer, and problems with those that are
    not offered."""
    if agent.servers.servers:
        require("mcp")
    async with Toolbox(*agent_hosts(agent, workspace, stays=False)) as toolbox:
        toolset = await toolbox.toolset()
    # Untrusted parts are reported once, together with the folder.
    problems = [
        f"not offered: {tool.what}: {tool.detail}"
        for tool in toolset.withheld
        if tool.reason != "untrusted"
    ]
    return toolset.tools, [*agent.notices, *problems]


def _join(one: Candidates, other: Candidates) -> Candidates:
    """Join two sets of candidates; the later one's search settings win."""
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
