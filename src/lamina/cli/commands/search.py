"""Commands that find what fits a question, and keep what is known of what there is to find."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from lamina.cli.terminal_text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from lamina.faces.search_candidates import CandidateSources

app = typer.Typer()

Question = Annotated[str, typer.Argument(help="What is asked; '-' reads it from standard input.")]
Tools = Annotated[
    Path | None,
    typer.Option(
        "--tools",
        metavar="FILE",
        help="JSON with tools: a list, what an MCP server lists, or functions of a vendor's form.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-A",
        metavar="PATH|NAME",
        help="Whose rules and references, whatever their include mode; of the workspace's own "
        "folder by default.",
    ),
]
Workspace = Annotated[
    Path, typer.Option("--workspace", "-w", help="The folder whose agents are looked for.")
]
Lexical = Annotated[bool, typer.Option("--lexical", help="By words alone, without embeddings.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]


@app.command()
def select(
    question: Question,
    tools: Tools = None,
    agent: AgentOption = None,
    workspace: Workspace = Path(),
    top: Annotated[
        int | None, typer.Option(min=1, help="Exactly the N best, whatever their scores.")
    ] = None,
    preset: Annotated[
        Literal["conservative", "normal", "aggressive"] | None,
        typer.Option(help="How much is taken; the agent's own settings by default."),
    ] = None,
    expand: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Search again from what was chosen, N times; as the settings say by default.",
        ),
    ] = None,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph", help="With --expand: by a graph of what is alike, built once and kept."
        ),
    ] = False,
    lexical: Lexical = False,
    as_json: AsJson = False,
) -> None:
    """Choose the tools, or the rules and references, that a question needs, as a session would.

    Each with its score (cosine similarity), the part of the question that brought it, and the text
    of it that fitted best. An embedding model that is not here is fetched (84 MB, once).
    """
    from lamina.cli.search_results import select_from, show_chosen
    from lamina.faces.search import SelectOptions

    if top is not None and preset is not None:
        raise typer.BadParameter(
            "--top and --preset do not go together: both say how much is taken"
        )
    if top is not None and expand is not None:
        raise typer.BadParameter(
            "--top and --expand do not go together: --top takes nothing besides the N best"
        )
    if graph and not expand:
        raise typer.BadParameter("--graph goes with --expand N: it says how that is done")
    sources = _sources(tools, agent, workspace)
    how = SelectOptions(top=top, preset=preset, expand=expand, graph=graph, lexical=lexical)
    chosen = anyio.run(select_from, _read(question), sources, how, _console())
    typer.echo(show_chosen(chosen, as_json))


@app.command()
def search(
    query: Question,
    tools: Tools = None,
    agent: AgentOption = None,
    workspace: Workspace = Path(),
    top: Annotated[int, typer.Option(min=1, help="How many are shown.")] = 10,
    lexical: Lexical = False,
    as_json: AsJson = False,
) -> None:
    """Rank tools, or rules and references, by how well they fit: score, rank by words, best text.

    Nothing is left out for its score: this shows what `select` chooses from.
    """
    from lamina.cli.search_results import rank_from, show_ranked

    sources = _sources(tools, agent, workspace)
    ranked = anyio.run(rank_from, _read(query), sources, top, lexical, _console())
    typer.echo(show_ranked(ranked, as_json))


@app.command()
def index(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="JSON files with tools, and folders or files of agents."),
    ] = None,
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", metavar="FILE", help="JSON with tools; may be given often."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-A", metavar="PATH|NAME", help="An agent; may be given often."),
    ] = None,
    workspace: Workspace = Path(),
    lexical: Lexical = False,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph",
            help="Work out which items are alike, too, for expansions by graph; takes long for "
            "many of them: each is compared with each.",
        ),
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Only say what it holds.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Forget everything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --clear: do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --stats: for machines.")] = False,
) -> None:
    """Index tools, rules and references now, instead of when they are first searched.

    The index is one file for all workspaces. It knows chunks by their text: what did not change is
    not indexed again, and what is lost with it is only time.
    """
    from lamina.cli.search_index import clear_index, index_candidates, show_stats
    from lamina.faces.search_candidates import CandidateSources, sources_from_paths

    is_named = bool(paths or tools or agent)
    if (stats and clear) or ((stats or clear) and is_named):
        raise typer.BadParameter("--stats and --clear go alone: they are about the whole index")
    if graph and (stats or clear):
        raise typer.BadParameter("--graph goes with what is to be indexed")
    if graph and lexical:
        raise typer.BadParameter("--graph and --lexical do not go together: words make no graph")
    if as_json and not stats:
        raise typer.BadParameter("--json goes with --stats")
    if stats:
        typer.echo(show_stats(as_json))
        return
    if clear:
        if not yes:
            typer.confirm("Forget all that is indexed? It is made again when wanted", abort=True)
        typer.echo(visible(clear_index()))
        return
    named = sources_from_paths(paths or [])
    sources = CandidateSources(
        tools=(*named.tools, *(tools or ())),
        agents=(*named.agents, *(agent or ())),
        workspace=workspace,
    )
    typer.echo(anyio.run(index_candidates, sources, lexical, graph, _console()))


def _sources(tools: Path | None, agent: str | None, workspace: Path) -> "CandidateSources":
    from lamina.faces.search_candidates import CandidateSources

    if tools is not None and agent is not None:
        raise typer.BadParameter("--tools and --agent do not go together: choose from one of them")
    return CandidateSources(
        tools=(tools,) if tools else (), agents=(agent,) if agent else (), workspace=workspace
    )


def _read(question: str) -> str:
    text = sys.stdin.read() if question == "-" else question
    if not text.strip():
        raise typer.BadParameter("the question is empty")
    return text


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)
