"""What a session over hundreds of tools costs: tools that join and stay, an exact list, or all.

    python bench/tool_sessions.py --data DIR [--turns 30] [--target NAME]... [--json FILE]

DIR holds `toolsel/livemcpbench.json`. The same questions are asked in agent mode, with the real
index and the real embedding model, on an emulator of each vendor, which accounts for its prefix
cache by that vendor's own rules; in three orders. The model calls the tools that a question needs
as far as they are in the list or described to it (`tool_sessions_played.py`), then it answers. By
default it looks for what it misses: it asks `find_tools` with the words of the question and of each
of its steps, never with a tool's name.

`breaks` are requests that do not begin with all of the one before, counted on the wire. `recall` is
the share of needed tools that could be called in their turn: whoever offers more of them gets more
results, and pays for those, too. `exact, as callable` therefore chooses as many for each question
as it takes to make as large a share callable (one of 5, 10, 20, ... 500). `described` are the
tokens of all descriptions in the conversation, of which the model found those in brackets; where a
vendor loads what is found (Anthropic), of the definitions. `(n)`
behind the tools: OpenAI takes no more than n of them, and would have refused; the row says what it
would cost if it did not.
"""

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from lamina.adapters.embed.minilm import MiniLM
from lamina.apps.wiring.index import open_index
from lamina.core.ports import Index
from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.question import split_question
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.engine.sources.candidates import tool_document
from tool_sessions_played import (
    MAX_TOOLS_OPENAI,
    Outcome,
    Question,
    ToolSet,
    Way,
    offer,
    orders,
    play,
    read_tools,
)
from versions import version

TURNS = 30
MAX_BREAKS, LEAST_CALLABLE, MAX_COST = 5, 0.9, 0.6
TARGETS = ("openai:gpt-4o", "openai:gpt-5", "openai:gpt-5.6", "anthropic:claude-sonnet-5")
STICKY, UNSEARCHED, EXACT, ALL = "sticky (default)", "sticky, no searches", "exact", "all"
EQUAL = "exact, as callable"
SIZES = (5, 10, 20, 40, 80, 160, 320, 400, 500)
WAYS = (
    Way(name=STICKY, settings=Settings(), searches=True),
    Way(name=UNSEARCHED, settings=Settings()),
    Way(name="sticky, always joining", settings=Settings(tool_joins=None)),
    Way(name=EXACT, settings=Settings(tool_policy="exact")),
    Way(name=ALL, settings=Settings(tool_policy="all")),
)


def exact_way(size: int) -> Way:
    """Exactly the `size` tools that fit each question best."""
    search = SearchSettings(top_k=10 * size, top_n=size, floor=-1.0)
    return Way(name=EQUAL, settings=Settings(tool_policy="exact", tool_search=search))


async def likely_size(
    data: ToolSet, questions: Sequence[Question], share: float, index: Index
) -> int:
    """How many tools a question takes for this share of the needed ones to be among them: by
    searches alone, so that not every size has to be played."""
    offered = list(map(offer, data.tools))
    names = {tool.id: tool.definition.name for tool in offered}
    documents = [tool_document(tool) for tool in offered]
    corpus = await index.load(documents)
    for size in SIZES:
        wanted = there = 0
        for question in questions:
            query = split_question(question.query)
            scores = await corpus.score([part.text for part in query.parts])
            items = choose_items(documents, scores, query, exact_way(size).settings.tool_search)
            chosen = {names[item.item] for item in items}
            wanted += len(question.gold)
            there += sum(bool(chosen & right) for right in question.right_names)
        if there >= share * wanted:
            return size
    return SIZES[-1]


async def play_all(data: ToolSet, targets: Sequence[str], turns: int) -> list[Outcome]:
    results: list[Outcome] = []
    with TemporaryDirectory() as folder:
        index = open_index(path=Path(folder) / "index.sqlite", fetch=True)
        try:
            for target in targets:
                for order, questions in orders(data.queries[:turns]).items():
                    run = partial(play, target)
                    ways = [partial(run, way, order, questions, data.tools, index) for way in WAYS]
                    outcomes = [await play_way() for play_way in ways]
                    likely = await likely_size(data, questions, outcomes[0].recall, index)
                    for size in (size for size in SIZES if size >= likely):
                        equal = await run(exact_way(size), order, questions, data.tools, index)
                        if equal.recall >= outcomes[0].recall:
                            break
                    outcomes.insert(-1, equal)
                    show(outcomes)
                    results += outcomes
        finally:
            index.close()
    return results


def show(outcomes: Sequence[Outcome]) -> None:
    """One target, one order."""
    by_way = {outcome.way: outcome for outcome in outcomes}
    print(f"\n{outcomes[0].target}, {outcomes[0].turns} questions {outcomes[0].order}\n")
    print(f"{'':<24}{'requests':>9}{'breaks':>7}{'input':>11}{'cached':>11}{'written':>10}{'$':>9}"
          f"{'to all':>8}{'to exact':>9}{'recall':>8}{'tools':>12}{'described':>18}")  # fmt: skip
    for outcome in outcomes:
        tools = f"{outcome.most_tools}" + (f" ({MAX_TOOLS_OPENAI})" if outcome.refused else "")
        print(f"{outcome.way:<24}{len(outcome.rows):>9}{outcome.breaks:>7}{outcome.total('input'):>11,}"
              f"{outcome.total('cached'):>11,}{outcome.total('written'):>10,}{outcome.cost:>9.4f}"
              f"{outcome.cost / by_way[ALL].cost:>7.2f}x{outcome.cost / by_way[EXACT].cost:>8.2f}x"
              f"{outcome.recall:>8.1%}{tools:>12}"
              f"{f'{outcome.described_tokens:,} ({outcome.found_tokens:,})':>18}",
              flush=True)  # fmt: skip


def verdict(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The claims for the default, and where each is missed."""
    by = {(outcome.target, outcome.order, outcome.way): outcome for outcome in outcomes}
    claims: dict[str, list[str]] = {
        f"at least {LEAST_CALLABLE:.0%} of the needed tools callable": [],
        f"at most {MAX_BREAKS} breaks of the prefix": [],
        f"at most {MAX_COST}x of the cost of all tools": [],
        "not dearer than exact lists that make as many callable": [],
    }
    callable_share, breaks, to_all, to_equal = claims.values()
    for (target, order, way), result in by.items():
        if way != STICKY:
            continue
        where = f"{target} {order}"
        if result.recall < LEAST_CALLABLE:
            callable_share.append(f"{where}: {result.recall:.1%}")
        if result.breaks > MAX_BREAKS:
            breaks.append(f"{where}: {result.breaks}")
        for other, most, misses in ((ALL, MAX_COST, to_all), (EQUAL, 1.0, to_equal)):
            cost = by[target, order, other].cost
            if result.cost > most * cost:
                misses.append(f"{where}: ${result.cost:.4f} against ${cost:.4f}")
    return claims


def show_verdict(claims: Mapping[str, Sequence[str]], sessions: int) -> None:
    print()
    for claim, misses in claims.items():
        if not misses:
            print(f"kept: {claim}, in all {sessions} sessions")
            continue
        print(f"MISSED: {claim}, in {len(misses)} of {sessions} sessions")
        for miss in misses:
            print(f"  {miss}")


def unexplained(outcomes: Sequence[Outcome]) -> list[str]:
    """Sessions in which the ledger told of other breaks than the wire shows."""
    return [
        f"{outcome.target} {outcome.order}, {outcome.way}: {outcome.breaks} on the wire, "
        f"{len(outcome.reasons)} in the ledger"
        for outcome in outcomes
        if outcome.breaks != len(outcome.reasons)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with toolsel/")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--target", action="append", help="play these only")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    options = parser.parse_args()
    path = options.data / "toolsel" / "livemcpbench.json"
    if not path.is_file():
        parser.error(f"there is no {path}")
    data = read_tools(path)
    if not 1 <= options.turns <= len(data.queries):
        parser.error(f"--turns {options.turns}: there are 1 to {len(data.queries)} questions")
    packages = ("lamina", "openai", "anthropic", "onnxruntime", "numpy")
    versions = {name: version(name) for name in packages}
    versions |= {"Python": platform.python_version(), "embeddings": MiniLM().name}
    print("  ".join(f"{name} {number}" for name, number in versions.items()))
    print(f"{len(data.tools)} tools, all chosen by search")
    targets = options.target or TARGETS
    outcomes = anyio.run(partial(play_all, data, targets, options.turns))
    claims = verdict(outcomes)
    show_verdict(claims, sum(outcome.way == STICKY for outcome in outcomes))
    for outcome in unexplained(outcomes):
        print(f"the ledger is wrong: {outcome}")
    if options.json:
        report = {
            "versions": versions,
            "tools": len(data.tools),
            "claims": {claim: misses or "kept" for claim, misses in claims.items()},
            "unexplained": unexplained(outcomes),
            "results": [outcome.as_dict() for outcome in outcomes],
        }
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
