"""`lamina select`, `search` and `index`: what fits a question and why, and what the index holds.

Law: names and texts of others cannot steer the terminal.
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

# What searches needs an extra, which the help of the commands does not: it is imported where it is
# used.
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
        help="Search this agent's rules, references and tools; by default those of the workspace's "
        "own folder.",
    ),
]  # fmt: skip
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Start the agent's servers even if its folder is not trusted, just for this command. "
        "See `lamina trust`.",
    ),
]

LONG_GRAPH = 5_000


@asynccontextmanager
async def open_search(
    lexical: bool, console: Console
) -> AsyncIterator[tuple["SqliteIndex", "IndexSearch"]]:
    """The index, and what searches it; an embedding model that is not on this machine is fetched
    before the person's eyes, and if it cannot be, words have to do: a load says so."""
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
    """What there is to choose from; a person at the terminal is asked about a folder whose servers
    they did not trust."""
    return await gather_candidates(sources, ConsoleNotices(console, asks=can_ask(console)))


async def index_candidates(
    sources: CandidateSources, lexical: bool, graph: bool, console: Console
) -> tuple[str, bool]:
    """Indexes candidates, and says what was new of them, and whether all of it is kept; with
    `graph` it is worked out, too, which of them are alike."""
    from lamina.engine.sources.item_search import describe_lexical

    candidates = await gather_from(sources, console)
    async with open_search(lexical, console) as (index, search):
        corpus = await index.load(candidates.documents, search.progress)
        search.warn_of((*candidates.problems, *corpus.warnings, *corpus.failed))
        search.warn_of(describe_lexical(corpus))
        related = await _relate(index, corpus, candidates, console) if graph else ""
        counts, stats = corpus.counts, index.stats()
        search.warn_of(index.notes())
    failed = f", {counts.failed:,} failed and tried again next time" if counts.failed else ""
    chunks = count_of(counts.new + counts.reused + counts.failed, "chunk")
    report = (
        f"{count_of(len(candidates.candidates), 'item')}, {chunks}: "
        f"{counts.new:,} new, {counts.reused:,} known{failed}.\n{related}"
        f"{visible(stats.path)}: {count_of(sum(stats.chunks.values()), 'chunk')}, "
        f"{format_bytes(stats.bytes)}"
    )
    if stats.unwritten:
        unkept = count_of(stats.unwritten, "new chunk")
        report += f"\n{unkept} could not be kept, and will be indexed again"
    return report, not stats.unwritten


async def _relate(
    index: "SqliteIndex", corpus: "IndexedCorpus", candidates: Candidates, console: Console
) -> str:
    """Builds the graphs that an expansion asks for, and says how large they are."""
    from lamina.core.selection.expansion import graph_shape

    if corpus.lexical:
        print_line(
            console, "warning: there is no graph without embeddings: it says whose texts are alike"
        )
        return ""
    if len(candidates.documents) >= LONG_GRAPH:
        print_line(console, f"comparing {len(candidates.documents):,} items, each with each")
    lines: list[str] = []
    for pool, settings in candidates.searched():
        part = await index.load([candidate.document for candidate in pool])
        threshold, top = graph_shape(settings)
        graph = await part.graph(threshold, top)
        pairs = sum(map(len, graph.values()))
        alone = sum(not others for others in graph.values())
        lines.append(
            f"graph: {len(graph):,} items, {pairs:,} likenesses of {threshold:g} and more, "
            f"up to {top} an item; {alone:,} items are like no other.\n"
        )
    return "".join(lines)


def show_stats(as_json: bool) -> str:
    """What the index holds."""
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


def print_line(console: Console, line: str) -> None:
    """One line on standard error."""
    print_note(console, one_line(line))


def to_json(value: Any) -> str:
    """For machines; in ASCII, so that nothing in it can steer a terminal."""
    return json.dumps(value, indent=2)


# How much of a text is shown where there is no terminal whose width would say.
WIDTH = 160


async def select_from(
    question: str, sources: CandidateSources, how: "SelectOptions", console: Console
) -> tuple["SearchResult", ...]:
    from lamina.engine.sources.item_search import select_candidates

    candidates = await gather_from(sources, console)
    async with open_search(how.lexical, console) as (_, search):
        results = await select_candidates(question, candidates, how, search)
    if all(result.origin == WHOLE_POOL for result in results):
        print_line(console, "nothing fits the question; `lamina search` shows how everything ranks")
    return results


async def rank_from(
    question: str, sources: CandidateSources, top: int, lexical: bool, console: Console
) -> tuple["SearchResult", ...]:
    from lamina.engine.sources.item_search import rank_candidates

    candidates = await gather_from(sources, console)
    async with open_search(lexical, console) as (_, search):
        return await rank_candidates(question, candidates, top, search)


def show_chosen(results: Sequence["SearchResult"], as_json: bool) -> str:
    """Each item with its score, and under it why."""
    if as_json:
        return to_json([_row(result, ("rank", "lexical_rank")) for result in results])
    width = _width()
    return "\n".join(
        f"{_score(result)}  {_label(result)}\n      {one_line(result.why, width - 6)}"
        for result in results
    )


def show_ranked(results: Sequence["SearchResult"], as_json: bool) -> str:
    """Each item with its place, its score and its place by words, and under it the best text."""
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
            help="Exactly the N that `lamina search` ranks first, by score, however low.",
        ),
    ] = None,
    preset: Annotated[
        Literal["conservative", "normal", "aggressive"] | None,
        typer.Option(
            metavar="HOW",
            help="How much to take: conservative, normal or aggressive; by default as the agent's "
            "settings say.",
        ),
    ] = None,
    expand: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N",
            help="Search again from what was chosen, N times; by default as the settings say.",
        ),
    ] = None,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph", help="With --expand: follow a graph of similar items, built once and kept."
        ),
    ] = False,
    lexical: Lexical = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Choose the rules, references and tools that a question needs, as a session would.

    Of an agent: what is always in, what the question names (@rule:NAME), what search chooses of
    what it may choose (include: agent), and what comes along with that. An agent's servers are
    started for their tools once you trust its folder; until then they are named and left out.

    Each comes with its score (cosine similarity), the part of the question that it matched, and the
    passage of it that matched best. The embedding model is downloaded if it is missing (84 MB,
    once).
    """
    require("search")
    from lamina.engine.sources.item_search import SelectOptions

    refuse_if(top and preset, "--top and --preset do not go together: both say how much is taken")
    refuse_if(
        top and expand is not None,
        "--top and --expand do not go together: --top takes nothing besides the N best",
    )
    refuse_if(graph and not expand, "--graph goes with --expand N: it says how that is done")
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
    """Rank rules, references and tools by how well they fit: score, rank by words, best text.

    Nothing is left out for a low score: this is what `select` chooses from. As there, the servers
    of an agent that you trust are started.
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
            help="Also work out which items are similar, for --expand by graph; slow for many "
            "items, as each is compared with each.",
        ),
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Only show what it holds.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Forget everything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --clear: do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --stats: print JSON.")] = False,
) -> None:
    """Index tools, rules and references now, instead of when they are first searched.

    There is one index file for all workspaces. It knows chunks by their text, so what has not
    changed is not indexed again. Losing it costs nothing but time.
    """
    require("search")
    is_named = bool(paths or tools or agent)
    refuse_if(
        (stats and clear) or ((stats or clear) and is_named),
        "--stats and --clear go alone: they are about the whole index",
    )
    refuse_if(trust and (stats or clear), "--trust goes with agents whose servers are started")
    refuse_if(graph and (stats or clear), "--graph goes with what is to be indexed")
    refuse_if(graph and lexical, "--graph and --lexical do not go together: words make no graph")
    refuse_if(as_json and not stats, "--json goes with --stats")
    if stats:
        print_report(show_stats(as_json), as_json=as_json)
        return
    if clear:
        if not yes:
            typer.confirm("Forget all that is indexed? It is made again when wanted", abort=True)
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
        "--tools and --agent do not go together: choose from one of them",
    )
    refuse_if(trust and tools is not None, "--trust goes with an agent: a file starts nothing")
    return CandidateSources(
        tools=(tools,) if tools else (),
        agents=(agent,) if agent else (),
        workspace=workspace,
        trust=trust,
    )
