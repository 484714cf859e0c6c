"""`lamina select`, `search` and `index`: what fits a question, and what is known of candidates.

Laws: what is chosen here is chosen as in a session, by the same functions. Names and texts of
others cannot steer the terminal.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console

from lamina.agents import holds_agent, read_agent
from lamina.cli.index_progress import IndexProgress
from lamina.cli.models import ensure_model
from lamina.cli.terminal_text import one_line, visible
from lamina.embed.index.corpus import IndexedCorpus
from lamina.embed.index.sqlite_index import SqliteIndex
from lamina.errors import ModelMissing, UsageError
from lamina.faces.tool_file import ListedTool, read_tools
from lamina.ports import Progress
from lamina.selection.chunks import chunk_item, chunk_tool
from lamina.selection.expansion import graph_shape
from lamina.values.agent import Guide
from lamina.values.item import ItemId
from lamina.values.selection import Document, SearchSettings
from lamina.wiring.agents import find_agent, list_agents
from lamina.wiring.index import open_index, wants_embeddings

LONG_GRAPH = 5_000


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
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        # Whoever reads it for its tools says what is wrong with it.
        return True
    return not (isinstance(found, dict) and "mcpServers" in found)


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
    found = [_tool_candidate(tool) for path in sources.tools for tool in read_tools(path)]
    settings = SearchSettings()
    relations: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for name in agents:
        agent = read_agent(find_agent(name, sources.workspace))
        found += [_guide_candidate(guide) for guide in agent.guides]
        settings = msgspec.convert(agent.settings.get("guide_search", settings), SearchSettings)
        relations |= agent.relations
        if agent.problems:
            count = len(agent.problems)
            odd = f"{count:,} {'oddities' if count > 1 else 'oddity'} in the files of the agent"
            problems.append(f"{odd} {name!r}; `lamina agent check {shlex.quote(name)}` names them")
        if not agent.guides:
            problems.append(f"the agent {name!r} has no rules and no references")
    return Candidates(
        candidates=tuple(found),
        settings=settings,
        relations=relations,
        problems=tuple(problems),
    )


def _nothing_in(workspace: Path) -> UsageError:
    known = ", ".join(agent.name for agent in list_agents(workspace)) or "none known by name"
    return UsageError(
        f"there is nothing to search in {str(workspace.absolute())!r} itself: give --tools FILE, "
        f"or --agent PATH|NAME for the rules and references of an agent ({known}); notes are "
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
        document=Document(guide.id, chunks),
        name=guide.name,
        kind=guide.kind,
        include=guide.include,
    )


# -- the index -----------------------------------------------------------------------------------


async def open_ready_index(lexical: bool, console: Console) -> SqliteIndex:
    """The index; an embedding model that is not on this machine is fetched before the person's
    eyes, and if it cannot be, words have to do: a load says so."""
    if wants_embeddings() and not lexical:
        try:
            await ensure_model("minilm", console)
        except ModelMissing as error:
            print_line(console, f"warning: {error}")
    return open_index(lexical=lexical)


async def load_corpus(
    index: SqliteIndex, candidates: Candidates, console: Console
) -> IndexedCorpus:
    """What there is, ready to be searched, and all that is odd about it said."""
    with index_bar(console) as progress:
        corpus = await index.load(candidates.documents, progress)
    for problem in (*candidates.problems, *corpus.warnings, *corpus.failed):
        print_line(console, f"warning: {problem}")
    return corpus


async def index_candidates(
    sources: CandidateSources, lexical: bool, graph: bool, console: Console
) -> str:
    """Indexes candidates, and says what was new of them; with `graph` it is worked out, too, which
    of them are alike."""
    candidates = gather_candidates(sources)
    index = await open_ready_index(lexical, console)
    try:
        corpus = await load_corpus(index, candidates, console)
        if corpus.lexical:
            print_line(console, f"warning: found by words alone: {corpus.lexical}")
        related = await _relate(corpus, candidates, console) if graph else ""
        counts, stats = corpus.counts, index.stats()
    finally:
        index.close()
    failed = f", {counts.failed:,} failed and tried again next time" if counts.failed else ""
    return (
        f"{len(candidates.candidates):,} items, "
        f"{counts.new + counts.reused + counts.failed:,} chunks: "
        f"{counts.new:,} new, {counts.reused:,} known{failed}.\n{related}"
        f"{visible(stats.path)}: {sum(stats.chunks.values()):,} chunks, {_bytes(stats.bytes)}"
    )


async def _relate(corpus: IndexedCorpus, candidates: Candidates, console: Console) -> str:
    """Builds the graph that an expansion asks for, and says how large it is."""
    if corpus.lexical:
        print_line(
            console, "warning: there is no graph without embeddings: it says whose texts are alike"
        )
        return ""
    if len(candidates.documents) >= LONG_GRAPH:
        print_line(console, f"comparing {len(candidates.documents):,} items, each with each")
    threshold, top = graph_shape(candidates.settings)
    graph = await corpus.graph(threshold, top)
    pairs = sum(map(len, graph.values()))
    alone = sum(not others for others in graph.values())
    return (
        f"graph: {len(graph):,} items, {pairs:,} likenesses of {threshold:g} and more, up to {top} "
        f"an item; {alone:,} items are like no other.\n"
    )


def show_stats(as_json: bool) -> str:
    """What the index holds."""
    index = open_index(lexical=True)
    stats, notes = index.stats(), index.notes()
    index.close()
    if as_json:
        return to_json(msgspec.to_builtins(stats) | {"warnings": list(notes)})
    lines = [f"{visible(stats.path)}: {_bytes(stats.bytes)}"]
    lines += [
        f"{count:>9,}  chunks {f'by {one_line(maker)}' if maker else 'by their words alone'}"
        for maker, count in stats.chunks.items()
    ]
    lines += [f"{stats.graphs:>9,}  graphs of what is alike"] if stats.graphs else []
    lines += [f"set aside, damaged: {visible(path)}" for path in stats.set_aside]
    lines += [f"warning: {visible(note)}" for note in notes]
    return "\n".join(lines)


def clear_index() -> str:
    """Forgets all that is indexed.

    Raises:
        UsageError: the file could not be emptied.
    """
    index = open_index(lexical=True)
    before = sum(index.stats().chunks.values())
    cleared, notes = index.clear(), index.notes()
    index.close()
    if not cleared:
        raise UsageError(f"the index was not cleared: {'; '.join(notes)}")
    return "\n".join((*notes, f"{before:,} chunks forgotten; they are made again when wanted"))


# -- showing -------------------------------------------------------------------------------------


@contextmanager
def index_bar(console: Console) -> Iterator[Progress]:
    """How far it is, if it takes long."""
    progress = IndexProgress(console)
    try:
        yield progress
    finally:
        progress.stop()


def print_line(console: Console, line: str) -> None:
    """One line on standard error."""
    console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)


def to_json(value: Any) -> str:
    """For machines; in ASCII, so that nothing in it can steer a terminal."""
    return json.dumps(value, indent=2)


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
