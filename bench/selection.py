"""How many of the tools that a question needs are found: words, vectors, and Lamina.

    python bench/selection.py --data FOLDER [--json FILE]

FOLDER holds `toolsel/*.json` as `{tools: [{name, description, server?, server_description?,
params?}], queries: [{query, gold: [name]}]}`; every such file is tried. A tool counts as found by
its name, also if another server has one of the same name. `all-gold-in-10`: the share of questions
all of whose tools are among the first ten. Questions without tools are left out.
"""

import argparse
import json
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import numpy

from selection_ways import (
    Found,
    Ranking,
    ToolSet,
    find_by_lamina,
    rank_by_vectors,
    rank_by_words,
)
from versions import version

FIGURES = ("recall@5", "recall@10", "all-gold-in-10")
LAMINA = "Lamina"
Figures = dict[str, float]


def figures_of(data: ToolSet, rankings: Sequence[Ranking]) -> list[tuple[float, float, float]]:
    """The three figures of each question."""
    rows = []
    for question, ranking in zip(data.queries, rankings, strict=True):
        names = list(dict.fromkeys(data.tools[place].name for place in ranking))
        gold = set(question.gold)
        five, ten = gold & set(names[:5]), gold & set(names[:10])
        rows.append((len(five) / len(gold), len(ten) / len(gold), float(ten == gold)))
    return rows


def mean(rows: Sequence[tuple[float, float, float]]) -> Figures:
    means = numpy.mean(rows, axis=0) * 100
    return {name: round(float(value), 2) for name, value in zip(FIGURES, means, strict=True)}


def with_servers(data: ToolSet, results: Sequence[Found]) -> Figures | None:
    """The same where a tool has to be the one on the right server."""
    if not any(question.gold_servers for question in data.queries):
        return None
    rows = []
    for question, result in zip(data.queries, results, strict=True):
        pairs = [(data.tools[at].server, data.tools[at].name) for at in result.ranking[:10]]
        hits = [
            [any((server, name) in pairs[:most] for server in question.gold_servers.get(name, ()))
             for name in question.gold]
            for most in (5, 10)
        ]  # fmt: skip
        rows.append((float(numpy.mean(hits[0])), float(numpy.mean(hits[1])), float(all(hits[1]))))
    return mean(rows)


def about_choice(data: ToolSet, results: Sequence[Found]) -> dict[str, Any]:
    """What `select` takes, and the cosines of what is needed and of what is not."""
    needs, foreign = [], []
    choices, of_ten, recall, recall_ten = [], [], [], []
    for question, result in zip(data.queries, results, strict=True):
        names = [tool.name for tool in data.tools]
        gold = set(question.gold)
        best = dict.fromkeys(gold, -1.0)
        for place, score in result.scores.items():
            if names[place] in gold:
                best[names[place]] = max(best[names[place]], score)
            else:
                foreign.append(score)
        needs += list(best.values())
        choices.append(len(result.taken))
        of_ten.append(len(result.taken_of_ten))
        recall.append(len(gold & {names[at] for at in result.taken}) / len(gold))
        recall_ten.append(len(gold & {names[at] for at in result.taken_of_ten}) / len(gold))
    return {
        "taken": round(float(numpy.mean(choices)), 2),
        "recall": round(100 * float(numpy.mean(recall)), 2),
        "taken of ten": round(float(numpy.mean(of_ten)), 2),
        "recall of ten": round(100 * float(numpy.mean(recall_ten)), 2),
        "cosines needed": _percentiles(needs),
        "cosines of others": _percentiles(foreign),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    marks = (1, 2, 5, 10, 25, 50, 75, 90, 99)
    return {
        f"p{mark}": round(float(value), 3)
        for mark, value in zip(marks, numpy.percentile(values, marks), strict=True)
    }


def read_set(path: Path) -> ToolSet:
    data = msgspec.json.decode(path.read_bytes(), type=ToolSet)
    queries = tuple(question for question in data.queries if question.gold)
    return msgspec.structs.replace(data, queries=queries)


async def measure(path: Path) -> dict[str, Any]:
    data = read_set(path)
    results = await find_by_lamina(data)
    ways: dict[str, Sequence[Ranking]] = {
        "BM25": rank_by_words(data),
        "BM25, names in words": rank_by_words(data, in_words=True),
        "embeddings": await rank_by_vectors(data),
        LAMINA: [hit.ranking for hit in results],
    }
    rows = {name: figures_of(data, rankings) for name, rankings in ways.items()}
    result: dict[str, Any] = {
        "set": path.stem,
        "tools": len(data.tools),
        "queries": len(data.queries),
        "ways": {name: mean(row) for name, row in rows.items()},
        "halves": {name: [mean(row[0::2]), mean(row[1::2])] for name, row in rows.items()},
        "choice": about_choice(data, results),
    }
    if by_server := with_servers(data, results):
        result["with the right server"] = by_server
    return result


def ratios(results: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Lamina over each other way, by the mean over the sets."""
    means = mean_of_sets(results)
    return {
        name: {figure: round(means[LAMINA][figure] / value[figure], 3) for figure in FIGURES}
        for name, value in means.items()
        if name != LAMINA
    }


def mean_of_sets(results: Sequence[dict[str, Any]]) -> dict[str, Figures]:
    return {
        name: {
            figure: round(float(numpy.mean([r["ways"][name][figure] for r in results])), 2)
            for figure in FIGURES
        }
        for name in results[0]["ways"]
    }


def behind(results: Sequence[dict[str, Any]]) -> list[str]:
    """Where Lamina is behind another way."""
    return [
        f"{result['set']}: {figure} {result['ways'][LAMINA][figure]} < {name} {figures[figure]}"
        for result in results
        for name, figures in result["ways"].items()
        for figure in FIGURES
        if result["ways"][LAMINA][figure] < figures[figure]
    ]


def show(results: Sequence[dict[str, Any]]) -> None:
    for result in results:
        print(f"\n{result['set']}: {result['tools']:,} tools, {result['queries']:,} questions")
        _table(result["ways"])
        if "with the right server" in result:
            _table({"Lamina, server too": result["with the right server"]}, head=False)
        choice = result["choice"]
        print(
            f"  chosen by default: {choice['taken']} tools, recall {choice['recall']}; "
            f"with room for ten: {choice['taken of ten']}, recall {choice['recall of ten']}"
        )
        for name in ("cosines needed", "cosines of others"):
            text = "  ".join(f"{mark} {value:.2f}" for mark, value in choice[name].items())
            print(f"  {name}: {text}")
    print("\nmean of the sets")
    _table(mean_of_sets(results))
    print("Lamina over")
    for name, ratio in ratios(results).items():
        print(f"  {name:<24}" + "".join(f"{ratio[figure]:>16.3f}" for figure in FIGURES))
    print("\nbehind: " + ("; ".join(behind(results)) or "nowhere"))


def _table(ways: dict[str, Figures], *, head: bool = True) -> None:
    if head:
        print(f"  {'':<24}" + "".join(f"{name:>16}" for name in FIGURES))
    for name, figures in ways.items():
        print(f"  {name:<24}" + "".join(f"{figures[figure]:>16.2f}" for figure in FIGURES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with toolsel/*.json")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    options = parser.parse_args()
    paths = sorted((options.data / "toolsel").glob("*.json"))
    # Irrelevant questions bring their own tools: see `gate.py`.
    paths = [path for path in paths if "irrelevance" not in path.stem]
    if not paths:
        parser.error(f"no toolsel/*.json in {options.data}")
    versions = {
        name: version(name) for name in ("lamina", "bm25s", "PyStemmer", "numpy", "onnxruntime")
    }
    versions["Python"] = platform.python_version()
    print("  ".join(f"{name} {number}" for name, number in versions.items()))
    results = [anyio.run(partial(measure, path)) for path in paths]
    show(results)
    if options.json:
        report = {
            "versions": versions,
            "sets": results,
            "mean": mean_of_sets(results),
            "ratios": ratios(results),
            "behind": behind(results),
        }
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
