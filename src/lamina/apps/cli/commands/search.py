"""Commands that find what fits a question, and keep the index that they search."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lamina.adapters.files.extras import require
from lamina.apps.cli.flags import AgentWorkspace, AsJson, Lexical
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import (
    error_console,
    print_outcome,
    print_report,
    read_argument,
    refuse_if,
)
from lamina.apps.cli.terminal_text import print_text, visible

if TYPE_CHECKING:
    from lamina.apps.views.search_candidates import CandidateSources

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
    from lamina.apps.cli.search_commands import select_from, show_chosen
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
    from lamina.apps.cli.search_commands import rank_from, show_ranked

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
    from lamina.apps.cli.search_commands import clear_index, index_candidates, show_stats
    from lamina.apps.views.search_candidates import CandidateSources, sources_from_paths

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
) -> "CandidateSources":
    from lamina.apps.views.search_candidates import CandidateSources

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
