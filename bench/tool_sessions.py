"""What a session over hundreds of tools costs: tools that join and stay, an exact list, or all.

    python bench/tool_sessions.py --data DIR [--turns 30] [--target NAME]... [--json FILE]

DIR holds `toolsel/livemcpbench.json`. The same questions are asked in agent mode, with the real
index and the real embedding model, on an emulator of each vendor, which accounts for its prefix
cache by that vendor's own rules; in three orders. The model calls the tools that a question needs
as far as they are in the list or described to it (`tool_sessions_played.py`), then it answers.

`breaks` are requests that do not begin with all of the one before, counted on the wire. `recall` is
the share of needed tools that could be called in their turn: whoever offers more of them gets more
results, and pays for those, too. `(n)` behind the tools: OpenAI takes no more than n of them, and
would have refused; the row says what it would cost if it did not.
"""

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from lamina.embed.minilm import open_embedder
from lamina.values.settings import Settings
from lamina.wiring.index import open_index
from tool_sessions_played import (
    MOST_TOOLS_OPENAI,
    Outcome,
    ToolSet,
    Way,
    orders,
    play,
    read_tools,
)

TURNS = 30
MOST_BREAKS = 5
TARGETS = ("openai:gpt-4o", "openai:gpt-5", "openai:gpt-5.6", "anthropic:claude-sonnet-5")
STICKY, EXACT, ALL = "sticky (default)", "exact", "all"
WAYS = (
    Way(name=STICKY, settings=Settings()),
    Way(name="sticky, always joining", settings=Settings(tool_joins=None)),
    Way(name=EXACT, settings=Settings(tool_policy="exact")),
    Way(name=ALL, settings=Settings(tool_policy="all")),
)


async def play_all(data: ToolSet, targets: Sequence[str], turns: int) -> list[Outcome]:
    found: list[Outcome] = []
    with TemporaryDirectory() as folder:
        index = open_index(path=Path(folder) / "index.sqlite", fetch=True)
        try:
            for target in targets:
                for order, questions in orders(data.queries[:turns]).items():
                    played = [
                        await play(target, way, order, questions, data.tools, index) for way in WAYS
                    ]
                    show(played)
                    found += played
        finally:
            index.close()
    return found


def show(played: Sequence[Outcome]) -> None:
    """One target, one order."""
    by_way = {each.way: each for each in played}
    print(f"\n{played[0].target}, {played[0].turns} questions {played[0].order}\n")
    print(f"{'':<24}{'requests':>9}{'breaks':>7}{'input':>11}{'cached':>11}{'written':>10}{'$':>9}"
          f"{'to all':>8}{'to exact':>9}{'recall':>8}{'tools':>12}")  # fmt: skip
    for each in played:
        tools = f"{each.most_tools}" + (f" ({MOST_TOOLS_OPENAI})" if each.refused else "")
        print(f"{each.way:<24}{len(each.rows):>9}{each.breaks:>7}{each.total('input'):>11,}"
              f"{each.total('cached'):>11,}{each.total('written'):>10,}{each.cost:>9.4f}"
              f"{each.cost / by_way[ALL].cost:>7.2f}x{each.cost / by_way[EXACT].cost:>8.2f}x"
              f"{each.recall:>8.1%}{tools:>12}", flush=True)  # fmt: skip


def verdict(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The claims for the default, and where each is missed."""
    by = {(outcome.target, outcome.order, outcome.way): outcome for outcome in outcomes}
    claims: dict[str, list[str]] = {
        f"at most {MOST_BREAKS} breaks of the prefix": [],
        "cheaper than sending all tools": [],
        "cheaper than sending exactly the selected ones": [],
    }
    breaks, cheaper_all, cheaper_exact = claims.values()
    for (target, order, way), each in by.items():
        if way != STICKY:
            continue
        where = f"{target} {order}"
        if each.breaks > MOST_BREAKS:
            breaks.append(f"{where}: {each.breaks}")
        for other, missed in ((ALL, cheaper_all), (EXACT, cheaper_exact)):
            cost = by[target, order, other].cost
            if each.cost >= cost:
                missed.append(f"{where}: ${each.cost:.4f} against ${cost:.4f}")
    return claims


def show_verdict(claims: Mapping[str, Sequence[str]], sessions: int) -> None:
    print()
    for claim, missed in claims.items():
        if not missed:
            print(f"kept: {claim}, in all {sessions} sessions")
            continue
        print(f"MISSED: {claim}, in {len(missed)} of {sessions} sessions")
        for each in missed:
            print(f"  {each}")


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
    versions |= {"Python": platform.python_version(), "embeddings": open_embedder().name}
    print("  ".join(f"{name} {number}" for name, number in versions.items()))
    print(f"{len(data.tools)} tools, all chosen by search")
    targets = options.target or TARGETS
    found = anyio.run(partial(play_all, data, targets, options.turns))
    claims = verdict(found)
    show_verdict(claims, sum(each.way == STICKY for each in found))
    for each in unexplained(found):
        print(f"the ledger is wrong: {each}")
    if options.json:
        report = {
            "versions": versions,
            "tools": len(data.tools),
            "claims": {claim: missed or "kept" for claim, missed in claims.items()},
            "unexplained": unexplained(found),
            "results": [each.as_dict() for each in found],
        }
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
