"""Whether questions that find nothing bring nothing, and what that costs those that need tools.

    python bench/gate.py --data FOLDER [--json FILE]

FOLDER holds `toolsel/*.json` (see `selection.py`) and `toolsel/bfcl_irrelevance.json`: questions,
each with a few tools of its own, none of which helps. Twenty lines of small talk are asked over the
tools of every set. `needed` is the share of needed tools among what is offered by default, without
the gate and with it.

The two numbers of the rule in `core/selection/chosen_items.py` (WORD, NEEDED) are fitted here once
for each set, on the other sets and on lines of small talk that are not reported: what a set loses
by the numbers of the others is the honest figure. Small pools of tools do not meet the gate, for
they are offered whole (`small_pools.py`); what it would do to them is shown by irrelevant questions
with a few tools each, and by the questions of BFCL with the few candidates that it gives to each of
them.
"""

import argparse
import json
import platform
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import msgspec
import numpy
from msgspec import Struct

from gate_talk import FITTED_ON, REPORTED
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.core.ports import Progress
from lamina.core.selection import chosen_items as gate
from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import measure_fits
from lamina.core.values.selection import Document, SearchSettings
from selection_ways import Tool, ToolSet, documents_of
from versions import version

OPEN, USUAL = SearchSettings(gate=False), SearchSettings()
WORDS = (0.1, 0.15, 0.2, 0.25, 0.3)
NEEDS = tuple(round(0.24 + 0.01 * step, 2) for step in range(20))
# What a fit may lose of needed tools on each set it is fitted on, in points.
MAY_LOSE = 0.3


class Case(Struct, frozen=True, kw_only=True):
    """A question to a pool: what is offered and found without the gate and with it as it ships,
    and the evidence by what a word may be worth."""

    size: int
    open_count: int
    open_recall: float
    count: int
    recall: float
    sure: bool
    evidence: dict[float, float]

    def passes(self, word: float, needed: float) -> bool:
        return self.sure or self.evidence[word] >= needed


class Pool(Struct, frozen=True, kw_only=True):
    """Candidates with the names that gold tools go by, and questions with their gold."""

    documents: Sequence[Document]
    names: Sequence[str]
    questions: Sequence[tuple[str, frozenset[str]]]


class RememberingMiniLM(MiniLM):
    """Questions come up in several pools, and are embedded once."""

    def __init__(self) -> None:
        super().__init__(fetch=True)
        self._vectors: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, await super().embed(new, progress), strict=True)
        return numpy.array([self._vectors[text] for text in texts])


async def ask(index: SqliteIndex, pool: Pool) -> list[Case]:
    documents = list(pool.documents)
    names = {document.id: name for document, name in zip(documents, pool.names, strict=True)}
    places = {document.id: place for place, document in enumerate(documents)}
    corpus = await index.load(documents)
    cases = []
    for text, gold in pool.questions:
        query = split_question(text)
        scores = await corpus.score([part.text for part in query.parts])
        fits = measure_fits(documents, scores, query) if documents and query.parts else None
        chosen = choose_items(documents, scores, query, OPEN, fits=fits)
        kept = choose_items(documents, scores, query, USUAL, fits=fits)
        evidence = dict.fromkeys(WORDS, 0.0)
        if fits and chosen:
            shipped = gate.WORD
            for gate.WORD in WORDS:
                taken = [places[item.item] for item in chosen]
                weighed = gate.weigh_evidence(documents, taken, fits, scores, query)
                evidence[gate.WORD] = weighed.found
            gate.WORD = shipped
        share = [
            len(gold & {names[item.item] for item in items}) / max(1, len(gold))
            for items in (chosen, kept)
        ]
        cases.append(
            Case(
                size=len(documents),
                open_count=len(chosen),
                open_recall=share[0],
                count=len(kept),
                recall=share[1],
                sure=any((item.score or 0) >= OPEN.include_score for item in chosen),
                evidence=evidence,
            )
        )
    return cases


def pool_of(data: ToolSet, questions: Iterable[tuple[str, Iterable[str]]]) -> Pool:
    return Pool(
        documents=documents_of(data),
        names=[tool.name for tool in data.tools],
        questions=[(text, frozenset(gold)) for text, gold in questions],
    )


def few_tools(tools: Iterable[dict[str, Any]]) -> ToolSet:
    return ToolSet(tools=tuple(msgspec.convert(tool, Tool) for tool in tools), queries=())


async def gather(files: dict[str, Any]) -> dict[str, dict[str, list[Case]]]:
    """All cases: by set its questions and small talk; irrelevant questions; BFCL's few."""
    sets: dict[str, list[Case]] = {}
    fitted: dict[str, list[Case]] = {}
    talk: dict[str, list[Case]] = {}
    few: list[Case] = []
    irrelevant: list[Case] = []
    with tempfile.TemporaryDirectory() as place:
        index = SqliteIndex(Path(place) / "index.db", RememberingMiniLM())
        for name, raw in files.items():
            if "tools" not in raw:
                for question in raw["queries"]:
                    data = few_tools(question["tools"])
                    irrelevant += await ask(index, pool_of(data, [(question["query"], ())]))
                continue
            data = msgspec.convert(raw, ToolSet)
            asked = [(q.query, q.gold) for q in data.queries if q.gold]
            sets[name] = await ask(index, pool_of(data, asked))
            fitted[name] = await ask(index, pool_of(data, [(t, ()) for t in FITTED_ON]))
            talk[name] = await ask(index, pool_of(data, [(t, ()) for t in REPORTED]))
            by_name = {tool["name"]: tool for tool in reversed(raw["tools"])}
            for question in raw["queries"]:
                if question["gold"] and (own := question.get("candidates")):
                    data = few_tools(by_name[tool] for tool in own)
                    few += await ask(index, pool_of(data, [(question["query"], question["gold"])]))
        index.close()
    return {
        "sets": sets, "fitted": fitted, "talk": talk,
        "few": {"few": few, "irrelevant": irrelevant},
    }  # fmt: skip


def lost(cases: Sequence[Case], word: float, needed: float) -> float:
    """Points of needed tools that a rule takes away."""
    gone = [case.open_recall * (not case.passes(word, needed)) for case in cases]
    return 100 * float(numpy.mean(gone))


def offered(cases: Sequence[Case], word: float, needed: float) -> float:
    """Tools a line."""
    return float(numpy.mean([case.open_count * case.passes(word, needed) for case in cases]))


def fit(sets: Sequence[Sequence[Case]], talk: Sequence[Sequence[Case]]) -> tuple[float, float]:
    """What a word is worth and what is needed: least small talk, then fewest tools lost, then least
    needed, of all that lose little on each set."""
    rules = [
        (sum(offered(lines, word, needed) for lines in talk), sum(losses), needed, word)
        for word, needed in product(WORDS, NEEDS)
        if max(losses := [lost(cases, word, needed) for cases in sets]) <= MAY_LOSE
    ]
    _, _, needed, word = min(rules)
    return word, needed


def report(gathered: dict[str, dict[str, list[Case]]]) -> dict[str, Any]:
    sets, talk, fitted = gathered["sets"], gathered["talk"], gathered["fitted"]
    few, irrelevant = gathered["few"]["few"], gathered["few"]["irrelevant"]
    rows = {}
    for name, cases in sets.items():
        others = [other for other in sets if other != name]
        word, needed = fit([sets[o] for o in others], [fitted[o] for o in others])
        rows[name] = {
            "tools": cases[0].size,
            "questions": len(cases),
            "needed, no gate": 100 * float(numpy.mean([case.open_recall for case in cases])),
            "needed": 100 * float(numpy.mean([case.recall for case in cases])),
            "talk, no gate": float(numpy.mean([case.open_count for case in talk[name]])),
            "talk": float(numpy.mean([case.count for case in talk[name]])),
            "by the others": {
                "WORD": word,
                "NEEDED": needed,
                "lost": lost(cases, word, needed),
                "talk": offered(talk[name], word, needed),
            },
        }
    shares = [100 * float(numpy.mean([case.open_count > 0 for case in irrelevant]))]
    shares.append(100 * float(numpy.mean([case.count > 0 for case in irrelevant])))
    everything = fit(list(sets.values()), list(fitted.values()))
    return {
        "shipped": {"WORD": gate.WORD, "NEEDED": gate.NEEDED},
        "fitted on all": {"WORD": everything[0], "NEEDED": everything[1]},
        "sets": rows,
        "irrelevant": {
            "questions": len(irrelevant),
            "no gate": shares[0],
            "offered": shares[1],
        },
        "few": {
            "questions": len(few),
            "tools": float(numpy.mean([case.size for case in few])),
            "needed, no gate": 100 * float(numpy.mean([case.open_recall for case in few])),
            "needed": 100 * float(numpy.mean([case.recall for case in few])),
        },
    }


def show(figures: dict[str, Any]) -> None:
    print("shipped: " + ", ".join(f"{name} {v}" for name, v in figures["shipped"].items()))
    print(f"fitted on all sets: {figures['fitted on all']}\n")
    print(
        f"{'':<16}{'tools':>6}{'needed':>8}{'gated':>8}{'talk':>7}{'gated':>7}   by the other sets"
    )
    for name, row in figures["sets"].items():
        rule = row["by the others"]
        print(f"{name:<16}{row['tools']:>6}{row['needed, no gate']:>8.2f}{row['needed']:>8.2f}"
              f"{row['talk, no gate']:>7.2f}{row['talk']:>7.2f}   "
              f"word {rule['WORD']}, needed {rule['NEEDED']}: {rule['lost']:.2f} points lost, "
              f"{rule['talk']:.2f} tools a line of small talk")  # fmt: skip
    row = figures["irrelevant"]
    print(f"\n{row['questions']} irrelevant questions: something is offered to "
          f"{row['no gate']:.1f}% without the gate, {row['offered']:.1f}% with it")  # fmt: skip
    row = figures["few"]
    print(f"{row['questions']:,} questions to {row['tools']:.1f} tools each, some of which are "
          f"needed: {row['needed, no gate']:.1f}% of them offered without the gate, "
          f"{row['needed']:.1f}% with it")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with toolsel/*.json")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    options = parser.parse_args()
    folder = options.data / "toolsel"
    if not (folder / "bfcl_irrelevance.json").is_file():
        parser.error(f"no bfcl_irrelevance.json in {folder}")
    versions = {name: version(name) for name in ("lamina", "numpy", "onnxruntime")}
    versions |= {"Python": platform.python_version(), "embeddings": MiniLM().name}
    print("  ".join(f"{name} {number}" for name, number in versions.items()))
    files = {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))}
    figures = report(anyio.run(partial(gather, files)))
    show(figures)
    if options.json:
        text = json.dumps({"versions": versions} | figures, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
