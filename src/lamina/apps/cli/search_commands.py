"""`lamina select`, `search` and `index`: what matches a question and why, and the index.

Law: names and texts written by others cannot steer the terminal.
"""

import json
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer
from msgspec.structs import asdict
from rich.console import Console

from lamina.adapters.files.extras import require
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import AgentWorkspace, AsJson, Lexical
from lamina.apps.cli.index_progress import IndexProgress
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.model_commands import ensure_model
from lamina.apps.cli.outcome import (
    error_console,
    print_outcome,
    print_report,
    read_argument,
    refuse_if,
)
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.terminal_text import format_bytes, one_line, print_note, print_text, visible
from lamina.apps.views.search_candidates import (
    CandidateSources,
    gather_candidates,
    sources_from_paths,
)
from lamina.apps.wiring.index import open_index, wants_embeddings
from lamina.core.audit.break_causes import count_of
from lamina.core.values.request import WHOLE_POOL
from lamina.engine.sources.candidates import Candidates
from lamina.errors import ModelMissing, UsageError

# Search needs an extra, but the commands' help does not, so it is imported where it is used.
if TYPE_CHECKING:
    from lamina.adapters.embed.index.corpus import IndexedCorpus
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex
    from lamina.engine.sources.item_search import IndexSearch, SearchResult, SelectOptions

app = typer.Typer()

Question = Annotated[str, typer.Argument(help="The question; '-' reads it from standard input.")]
Tools = Annotated[
    Path | None,
    typer.Option(
        "--tools", metavar="FILE",
        help="JSON with tools: a list, an MCP server's list, or functions in a vendor's format.",
    ),
]  # fmt: skip
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", "-A", metavar="PATH|NAME",
        help="Search this agent's rules, references and tools; by default those of the workspace "
        "itself.",
    ),
]  # fmt: skip
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="For this command only, start the agent's servers even if its folder is not trusted. "
        "See `lamina trust`.",
    ),
]

LONG_GRAPH = 5_000


@asynccontextmanager
async def open_search(
    lexical: bool, console: Console
) -> AsyncIterator[tuple["SqliteIndex", "IndexSearch"]]:
    """Open the index and its search. A missing embedding model is downloaded with a progress bar;
    if that fails, search works by words alone, and loading says so."""
    from lamina.engine.sources.item_search import IndexSearch

    def warn(problem: object) -> None:
        print_line(console, f"warning: {problem}")

    if wants_embeddings() and not lexical:
        try:
            await ensure_model("minilm", console)
        except ModelMissing as error:
            warn(error)
    index, progress = open_index(lexical=lexical), IndexProgress(console)
    try:
        yield index, IndexSearch(index, warn, progress, index.notes)
    finally:
        progress.stop()
        index.close()


async def gather_from(sources: CandidateSources, console: Console) -> Candidates:
    """Gather the candidates; a person at the terminal is asked about a folder whose servers they do
    not trust yet."""
    return await gather_candidates(sources, ConsoleNotices(console, asks=can_ask(console)))


async def index_candidates(
    sources: CandidateSources, lexical: bool, graph: bool, console: Console
) -> tuple[str, bool]:
    """Index candidates; return a report of what was new, and whether everything was saved. With
    `graph`, also find out which candidates are similar."""
    from lamina.engine.sources.item_search import describe_lexical

    candidates = await gather_from(sources, console)
    async with open_search(lexical, console) as (index, search):
        corpus = await index.load(candidates.documents, search.progress)
        search.warn_of((*candidates.problems, *corpus.warnings, *corpus.failed))
        search.warn_of(describe_lexical(corpus))
        related = await _relate(index, corpus, candidates, console) if graph else ""
        counts, stats = corpus.counts, index.stats()
        search.warn_of(index.notes())
    failed = (
        f", {counts.failed:,} failed and will be tried again next time" if counts.failed else ""
    )
    chunks = count_of(counts.new + counts.reused + counts.failed, "chunk")
    report = (
        f"{count_of(len(candidates.candidates), 'item')}, {chunks}: "
        f"{counts.new:,} new, {counts.reused:,} known{failed}.\n{related}"
        f"{visible(stats.path)}: {count_of(sum(stats.chunks.values()), 'chunk')}, "
        f"{format_bytes(stats.bytes)}"
    )
    if stats.unwritten:
        unkept = count_of(stats.unwritten, "new chunk")
        report += f"\n{unkept} could not be saved, and will be indexed again"
    return report, not stats.unwritten


async def _relate(
    index: "SqliteIndex", corpus: "IndexedCorpus", candidates: Candidates, console: Console
) -> str:
    """Build the graphs that an expansion needs, and report their size."""
    from lamina.core.selection.expansion import graph_shape

    if corpus.lexical:
        print_line(console, "warning: a graph of similar texts needs embeddings; none was built")
        return ""
    if len(candidates.documents) >= LONG_GRAPH:
        print_line(console, f"comparing {len(candidates.documents):,} items with each other")
    lines: list[str] = []
    for pool, settings in candidates.searched():
        part = await index.load([candidate.document for candidate in pool])
        threshold, top = graph_shape(settings)
        graph = await part.graph(threshold, top)
        pairs = sum(map(len, graph.values()))
        alone = sum(not others for others in graph.values())
        lines.append(
            f"graph: {len(graph):,} items, {pairs:,} similarities of {threshold:g} or more, "
            f"up to {top} per item; {alone:,} items are similar to no other.\n"
        )
    return "".join(lines)


def show_stats(as_json: bool) -> str:
    """Return statistics of the index."""
    index = open_index(lexical=True)
    stats, notes = index.stats(), index.notes()
    index.close()
    if as_json:
        return to_json(msgspec.to_builtins(stats) | {"warnings": list(notes)})
    lines = [f"{visible(stats.path)}: {format_bytes(stats.bytes)}"]
    lines += [
        f"{count:>9,}  chunks {f'by {one_line(maker)}' if maker else 'by their words alone'}"
        for maker, count in stats.chunks.items()
    ]
    lines += [f"{stats.graphs:>9,}  graphs of similar items"] if stats.graphs else []
    lines += [f"set aside, damaged: {visible(path)}" for path in stats.set_aside]
    lines += [f"warning: {visible(note)}" for note in notes]
    return "\n".join(lines)


def clear_index() -> str:
    """Clear the index.

    Raises:
        UsageError: the file could not be emptied.
    """
    index = open_index(lexical=True)
    before = sum(index.stats().chunks.values())
    cleared, notes = index.clear(), index.notes()
    index.close()
    if not cleared:
        raise UsageError(f"the index was not cleared: {'; '.join(notes)}")
    return "\n".join((*notes, f"{before:,} chunks removed; they are indexed again when needed"))


def print_line(console: Console, line: str) -> None:
    """Print one line to standard error."""
    print_note(console, one_line(line))


def to_json(value: Any) -> str:
    """JSON in ASCII, so that nothing in it can steer a terminal."""
    return json.dumps(value, indent=2)


# How much of a text is shown without a terminal to set the width.
WIDTH = 160


async def select_from(
    question: str, sources: CandidateSources, how: "SelectOptions", console: Console
) -> tuple["SearchResult", ...]:
    from lamina.engine.sources.item_search import select_candidates

    candidates = await gather_from(sources, console)
    async with open_search(how.lexical, console) as (_, search):
        results = await select_candidates(question, candidates, how, search)
    if all(result.origin == WHOLE_POOL for result in results):
        print_line(
            console, "nothing matches the question; `lamina search` shows how everything ranks"
        )
    return results


async def rank_from(
    question: str, sources: CandidateSources, top: int, lexical: bool, console: Console
) -> tuple["SearchResult", ...]:
    from lamina.engine.sources.item_search import rank_candidates

    candidates = await gather_from(sources, console)
    async with open_search(lexical, console) as (_, search):
        return await rank_candidates(question, candidates, top, search)


def show_chosen(results: Sequence["SearchResult"], as_json: bool) -> str:
    """The selected items with their scores, and the reason below each."""
    if as_json:
        return to_json([_row(result, ("rank", "lexical_rank")) for result in results])
    width = _width()
    return "\n".join(
        f"{_score(result)}  {_label(result)}\n      {one_line(result.why, width - 6)}"
        for result in results
    )


def show_ranked(results: Sequence["SearchResult"], as_json: bool) -> str:
    """The items with rank, score and rank by words, and the best passage below each."""
    if as_json:
        return to_json([_row(result, ("origin", "source")) for result in results])
    width = _width()
    lines: list[str] = []
    for result in results:
        words = "no words" if result.lexical_rank is None else f"by words {result.lexical_rank}"
        lines.append(f"{result.rank:>3}  {_score(result)}  {_label(result)}, {words}")
        lines.append(f"           {one_line(result.chunk, width - 11)}")
    return "\n".join(lines)


def _row(result: "SearchResult", without: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in asdict(result).items() if key not in without}


def _score(result: "SearchResult") -> str:
    return "   -" if result.score is None else f"{result.score:4.2f}"


def _label(result: "SearchResult") -> str:
    name = one_line(f"{result.server} · {result.name}" if result.server else result.name)
    return f"{name} ({result.kind}, {result.include})" if result.include else name


def _width() -> int:
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH


@app.command()
def select(
    question: Question,
    tools: Tools = None,
    agent: AgentOption = None,
    workspace: AgentWorkspace = Path(),
    top: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N",
            help="Take exactly the N items that `lamina search` ranks first, whatever their score.",
        ),
    ] = None,
    preset: Annotated[
        Literal["conservative", "normal", "aggressive"] | None,
        typer.Option(
            metavar="HOW",
            help="How much to select: conservative, normal or aggressive; by default the agent's "
            "setting.",
        ),
    ] = None,
    expand: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N",
            help="Search again from the selected items, N times; by default the agent's setting.",
        ),
    ] = None,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph", help="With --expand: follow a graph of similar items, which is built once."
        ),
    ] = False,
    lexical: Lexical = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Select the rules, references and tools that a question needs, as a session would.

    From an agent: items that are always included, items that the question names (@rule:NAME), items
    that search selects (include: agent), and their related items. An agent's servers are started
    for their tools once you trust its folder; until then they are named and left out.

    Each item comes with its score (cosine similarity), the part of the question that it matched,
    and its best matching passage. The embedding model is downloaded if it is missing (84 MB, once).
    """
    require("search")
    from lamina.engine.sources.item_search import SelectOptions

    refuse_if(
        top and preset, "--top and --preset cannot be combined: both set how much is selected"
    )
    refuse_if(
        top and expand is not None,
        "--top and --expand cannot be combined: --top takes only the N best",
    )
    refuse_if(graph and not expand, "--graph needs --expand N")
    sources = _sources(tools, agent, workspace, trust)
    how = SelectOptions(top=top, preset=preset, expand=expand, graph=graph, lexical=lexical)
    text = read_argument(question, "question")
    chosen = run_async(select_from, text, sources, how, error_console())
    print_report(show_chosen(chosen, as_json), as_json=as_json)


@app.command()
def search(
    query: Question,
    tools: Tools = None,
    agent: AgentOption = None,
    workspace: AgentWorkspace = Path(),
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many to show.")] = 10,
    lexical: Lexical = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Rank rules, references and tools by relevance: score, rank by words, best passage.

    Nothing is left out for a low score: this is what `select` chooses from. As with `select`, the
    servers of an agent that you trust are started.
    """
    require("search")

    sources = _sources(tools, agent, workspace, trust)
    text = read_argument(query, "question")
    ranking = run_async(rank_from, text, sources, top, lexical, error_console())
    print_report(show_ranked(ranking, as_json), as_json=as_json)


@app.command()
def index(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="JSON files with tools, and folders or files of agents."),
    ] = None,
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", metavar="FILE", help="JSON with tools. Repeatable."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-A", metavar="PATH|NAME", help="An agent. Repeatable."),
    ] = None,
    workspace: AgentWorkspace = Path(),
    lexical: Lexical = False,
    trust: Trust = False,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph",
            help="Also compare all items with each other, for --expand by graph; slow for many "
            "items.",
        ),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Only show statistics of the index.")
    ] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Clear the index.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --clear: do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --stats: print JSON.")] = False,
) -> None:
    """Index tools, rules and references now instead of at their first search.

    All workspaces share one index file. It identifies chunks by their text, so unchanged chunks are
    not indexed again. Losing the file costs nothing but time.
    """
    require("search")
    is_named = bool(paths or tools or agent)
    refuse_if(
        (stats and clear) or ((stats or clear) and is_named),
        "--stats and --clear cannot be combined with other options: they concern the whole index",
    )
    refuse_if(trust and (stats or clear), "--trust needs an agent whose servers to start")
    refuse_if(graph and (stats or clear), "--graph needs something to index")
    refuse_if(
        graph and lexical, "--graph and --lexical cannot be combined: a graph needs embeddings"
    )
    refuse_if(as_json and not stats, "--json needs --stats")
    if stats:
        print_report(show_stats(as_json), as_json=as_json)
        return
    if clear:
        if not yes:
            typer.confirm("Clear the whole index? It is built again when needed", abort=True)
        print_text(visible(clear_index()))
        return
    named = sources_from_paths(paths or [])
    sources = CandidateSources(
        tools=(*named.tools, *(tools or ())),
        agents=(*named.agents, *(agent or ())),
        workspace=workspace,
        trust=trust,
    )
    report, is_kept = run_async(index_candidates, sources, lexical, graph, error_console())
    print_outcome(report, is_kept)


def _sources(
    tools: Path | None, agent: str | None, workspace: Path, trust: bool
) -> CandidateSources:
    refuse_if(
        tools is not None and agent is not None,
        "--tools and --agent cannot be combined",
    )
    refuse_if(trust and tools is not None, "--trust needs an agent: a file starts no servers")
    return CandidateSources(
        tools=(tools,) if tools else (),
        agents=(agent,) if agent else (),
        workspace=workspace,
        trust=trust,
    )
