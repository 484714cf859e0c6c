"""Small pools of tools: offered whole, or searched.

    python bench/small_pools.py --data DIR [--target NAME]... [--lists N] [--json FILE]

DIR holds `toolsel/bfcl.json` and `toolsel/livemcpbench.json`. Three parts in one run, each with
both ways side by side.

*Lists*: every question of BFCL with just the tools that BFCL gives to it, as the first request of a
session has them: the share of needed tools that can be called, and the tokens of the list. *Before*
is the gate as it was, which asked more of a handful of tools; it is computed from the same scores.

*Sessions*: ten questions of BFCL over all the tools that it gives to any of them (up to 24), on an
emulator of each vendor, played as in `tool_sessions.py`: callable, cost by the vendor's own rules,
and breaks of the prefix, counted on the wire. The model asks `find_tools` for what it misses, with
the words of the question.

*Limits*: what a pool costs whole and searched, by its size, on LiveMCPBench, of which nothing is
reported above: pools of 8 to 96 tools, half of them needed by some question, in sessions of ten
turns; three draws of each size. MAX_WHOLE_POOL and `whole_pool_tokens` are chosen here.
"""

import argparse
import json
import platform
import random
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.embed.minilm import MiniLM
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.tools.offered_tool import exposed_name
from lamina.apps.wiring.index import open_index
from lamina.apps.wiring.runners import open_agent
from lamina.core.assembly.tool_offer import MAX_WHOLE_POOL
from lamina.core.codec import canonical_bytes
from lamina.core.ports import Index
from lamina.core.selection.chosen_items import NEEDED, judge_items, weigh_evidence
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import measure_fits
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.engine.runners.answer import Preview
from lamina.engine.sources.candidates import tool_document
from tool_sessions_played import (
    ManyTools,
    Outcome,
    Question,
    Tool,
    ToolSet,
    Way,
    offer,
    play,
    read_tools,
)
from versions import version

TARGETS = ("openai:gpt-4o", "openai:gpt-5", "anthropic:claude-sonnet-5")
WHOLE = Way(name="whole (default)", settings=Settings())
SEARCHED = Way(name="searched", settings=Settings(whole_pool_tokens=0), searches=True)
UNSEARCHED = replace(SEARCHED, name="searched, model does not", searches=False)
# A list of all tools is what a pool of any size would be if it were offered whole.
EVERY = Way(name="whole", settings=Settings(tool_policy="all"))
TURNS, SESSIONS, SEED = 10, 4, 20_261
SIZES, DRAWS = (8, 16, 24, 32, 48, 96), 3
LIMIT_TARGETS = ("openai:gpt-4o", "anthropic:claude-sonnet-5")
SERVER = "bfcl"
# The gate before: how much more evidence one of a handful of tools needed.
CROWD, SCARCE = 20, 0.145


class Asked(Struct, frozen=True, kw_only=True):
    """A question of BFCL with the tools of its own list."""

    question: Question
    tools: tuple[Tool, ...]


def read_bfcl(path: Path) -> list[Asked]:
    data = json.loads(path.read_bytes())
    by_name = {tool["name"]: tool for tool in reversed(data["tools"])}
    asked = []
    for row in data["queries"]:
        if row["gold"] and (names := row.get("candidates")):
            tools = tuple(
                Tool(name, tool["description"], SERVER, tuple(tool.get("params", ())))
                for name in dict.fromkeys(names)
                if (tool := by_name.get(name))
            )
            servers: dict[str, tuple[str, ...]] = dict.fromkeys(row["gold"], (SERVER,))
            gold = tuple(dict.fromkeys(row["gold"]))
            asked.append(Asked(question=Question(row["query"], gold, servers), tools=tools))
    return asked


# -- lists -----------------------------------------------------------------------------------------


async def ask_lists(asked: Sequence[Asked], index: Index) -> dict[str, Any]:
    """What the first request of a session offers of each question's own list."""
    book = load_book()
    counter = book.counter(book.find(TARGETS[0]))
    rows: dict[str, list[tuple[int, int, int]]] = {WHOLE.name: [], SEARCHED.name: []}
    before = wanted_before = 0
    for number, one in enumerate(asked):
        wanted = {exposed_name(SERVER, gold) for gold in one.question.gold}
        for way in (WHOLE, SEARCHED):
            async with await open_agent(
                f"list-{number}", providers=_Nobody(), tools=ManyTools(one.tools), index=index,
                book=book, target=TARGETS[0], store=MemoryStore(), settings=way.settings,
            ) as agent:  # fmt: skip
                preview = await agent.preview(one.question.query)
                assert isinstance(preview, Preview)
                body = preview.turn.request()
            listed = {tool["function"]["name"]: tool for tool in body.get("tools", ())}
            tokens = sum(counter.count(canonical_bytes(tool).decode()) for tool in listed.values())
            rows[way.name].append((len(wanted), len(wanted & listed.keys()), tokens))
        wanted_before += len(wanted)
        before += await found_before(one, wanted, index)
    sizes = sorted(len(one.tools) for one in asked)
    return {
        "questions": len(asked),
        "tools a list, mean and most": [sum(sizes) / len(sizes), sizes[-1]],
        "lists beyond the limit": sum(size > MAX_WHOLE_POOL for size in sizes),
        "needed tools, gate before": before / wanted_before,
        "ways": {
            name: {
                "needed tools": sum(there for _, there, _ in counts) / sum(n for n, _, _ in counts),
                "tokens of the list, mean": sum(t for _, _, t in counts) / len(counts),
            }
            for name, counts in rows.items()
        },
    }


async def found_before(one: Asked, wanted: set[str], index: Index) -> int:
    """How many needed tools passed the gate as it was."""
    tools = [offer(tool) for tool in one.tools]
    documents = [tool_document(tool) for tool in tools]
    query = split_question(one.question.query)
    corpus = await index.load(documents)
    scores = await corpus.score([part.text for part in query.parts])
    choice = judge_items(documents, scores, query, SearchSettings(gate=False))
    if not choice.items:
        return 0
    fits = measure_fits(documents, scores, query)
    places = [document.id for document in documents]
    taken = [places.index(item.item) for item in choice.items]
    evidence = weigh_evidence(documents, taken, fits, scores, query)
    sure = any((item.score or 0) >= SearchSettings().include_score for item in choice.items)
    if not sure and evidence.found < NEEDED + SCARCE * max(0.0, log(CROWD / len(documents))):
        return 0
    names = {tool.id: tool.definition.name for tool in tools}
    return len(wanted & {names[item.item] for item in choice.items})


class _Nobody:
    """Nothing is sent."""

    async def provider(self, target: object) -> Any:
        raise AssertionError(target)


# -- sessions --------------------------------------------------------------------------------------


def draw_sessions(asked: Sequence[Asked]) -> list[tuple[list[Question], list[Tool]]]:
    """Questions and the tools of all their lists, as many as a pool may have."""
    order = list(asked)
    random.Random(SEED).shuffle(order)
    sessions = []
    for _ in range(SESSIONS):
        questions: list[Question] = []
        tools: dict[str, Tool] = {}
        while order and len(questions) < TURNS:
            one = order.pop()
            joined = tools | {tool.name: tool for tool in one.tools}
            if len(joined) <= MAX_WHOLE_POOL:
                tools = joined
                questions.append(one.question)
        sessions.append((questions, list(tools.values())))
    return sessions


async def play_sessions(asked: Sequence[Asked], targets: Sequence[str], index: Index) -> list[Any]:
    results = []
    for target in targets:
        outcomes: dict[str, list[Outcome]] = {}
        for number, (questions, tools) in enumerate(draw_sessions(asked), start=1):
            for way in (WHOLE, SEARCHED, UNSEARCHED):
                outcome = await play(target, way, f"session {number}", questions, tools, index)
                outcomes.setdefault(way.name, []).append(outcome)
        results.append({"target": target} | {"ways": _sum_ways(outcomes)})
        _show_session(results[-1])
    return results


def _sum_ways(outcomes: dict[str, list[Outcome]]) -> dict[str, Any]:
    costs = {name: sum(outcome.cost for outcome in rows) for name, rows in outcomes.items()}
    base = costs.get(SEARCHED.name) or 1.0
    return {
        name: {
            "callable": sum(o.callable for o in rows) / sum(o.wanted for o in rows),
            "breaks": sum(o.breaks for o in rows),
            "requests": sum(len(o.rows) for o in rows),
            "input": sum(o.total("input") for o in rows),
            "cached": sum(o.total("cached") for o in rows),
            "cost": round(costs[name], 6),
            "to searched": round(costs[name] / base, 3),
            "most tools": max(o.most_tools for o in rows),
        }
        for name, rows in outcomes.items()
    }


def _show_session(row: dict[str, Any]) -> None:
    print(f"\n{row['target']}: {SESSIONS} sessions of {TURNS} questions")
    for name, figures in row["ways"].items():
        print(f"{name:<26}{figures['callable']:>8.1%} callable{figures['breaks']:>4} breaks"
              f"{figures['requests']:>6} requests  ${figures['cost']:.4f}"
              f"  {figures['to searched']:.2f}x", flush=True)  # fmt: skip


# -- limits ----------------------------------------------------------------------------------------


def draw_pool(data: ToolSet, size: int, draw: random.Random) -> tuple[list[Question], list[Tool]]:
    """As many turns for every size; of a pool at most half is what they need."""
    questions: list[Question] = []
    tools: dict[str, Tool] = {}
    for question in draw.sample(data.queries, len(data.queries)):
        own = {
            exposed_name(tool.server, tool.name): tool
            for tool in data.tools
            if tool.name in question.gold and tool.server in question.gold_servers[tool.name]
        }
        if len(questions) < TURNS and len(tools | own) <= size // 2:
            tools |= own
            questions.append(question)
    rest = [t for t in data.tools if exposed_name(t.server, t.name) not in tools]
    pool = [*tools.values(), *draw.sample(rest, size - len(tools))]
    return list(islice(cycle(questions), TURNS)), pool


async def play_limits(path: Path, index: Index) -> list[dict[str, Any]]:
    """What pools of a size cost, whole and searched."""
    data = read_tools(path)
    rows = []
    for target in LIMIT_TARGETS:
        counter = load_book().counter(load_book().find(target))
        draw = random.Random(SEED)
        for size in SIZES:
            outcomes: dict[str, list[Outcome]] = {}
            tokens = []
            for number in range(DRAWS):
                questions, pool = draw_pool(data, size, draw)
                definitions = [offer(tool).definition for tool in pool]
                tokens.append(sum(counter.count(canonical_bytes(d).decode()) for d in definitions))
                for way in (EVERY, SEARCHED):
                    outcome = await play(target, way, f"{size}.{number}", questions, pool, index)
                    outcomes.setdefault(way.name, []).append(outcome)
            row: dict[str, Any] = {"target": target, "tools": size, "tokens": sum(tokens) // DRAWS}
            rows.append(row | {"ways": _sum_ways(outcomes)})
            whole, searched = rows[-1]["ways"][EVERY.name], rows[-1]["ways"][SEARCHED.name]
            print(f"{target:<28}{size:>4} tools{row['tokens']:>8,} tokens: whole "
                  f"{whole['callable']:.1%} ${whole['cost']:.4f} ({whole['to searched']:.2f}x), "
                  f"searched {searched['callable']:.1%} ${searched['cost']:.4f}, "
                  f"{searched['breaks']} breaks", flush=True)  # fmt: skip
    return rows


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    folder = options.data / "toolsel"
    asked = read_bfcl(folder / "bfcl.json")
    few = asked[:: max(1, len(asked) // options.lists)] if options.lists else asked
    with TemporaryDirectory() as place:
        index = open_index(path=Path(place) / "index.sqlite", fetch=True)
        try:
            limits = await play_limits(folder / "livemcpbench.json", index)
            sessions = await play_sessions(asked, options.target or TARGETS, index)
            lists = await ask_lists(few, index)
        finally:
            index.close()
    print(f"\n{lists['questions']:,} questions of BFCL with their own lists; needed tools that can "
          f"be called: {lists['needed tools, gate before']:.1%} before")  # fmt: skip
    for name, figures in lists["ways"].items():
        print(f"{name:<26}{figures['needed tools']:>8.1%}"
              f"{figures['tokens of the list, mean']:>9.0f} tokens a list")  # fmt: skip
    return {"limits": limits, "sessions": sessions, "lists": lists}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with toolsel/")
    parser.add_argument("--target", action="append", help="play these only")
    parser.add_argument("--lists", type=int, default=0, help="about so many of BFCL's lists")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    options = parser.parse_args()
    if not (options.data / "toolsel" / "bfcl.json").is_file():
        parser.error(f"there is no toolsel/bfcl.json in {options.data}")
    packages = ("lamina", "openai", "anthropic", "onnxruntime", "numpy")
    versions = {name: version(name) for name in packages}
    versions |= {"Python": platform.python_version(), "embeddings": MiniLM().name}
    print("  ".join(f"{name} {number}" for name, number in versions.items()))
    figures = {"versions": versions} | anyio.run(partial(measure, options))
    if options.json:
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
