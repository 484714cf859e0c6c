"""How fast chunks are indexed and found, next to sentence-transformers with the same weights.

    python bench/index.py [--json FILE] [--peer-python PATH] [--sizes 100 10000 100000]
                          [--chunks 600] [--rounds 3]

Every task runs in a process of its own, Lamina and the peer in turns, and counts with the median of
its rounds. Chunks are 500 characters of Python's own manual.

cold start: from starting a process until the first result over 100 chunks that nobody has seen.
            *again*: Lamina's next process, which finds them in its index; the peer keeps nothing.
indexing:   real chunks through the network (`embed`) and into the index with words and disk
            (`index`). For larger numbers of chunks that is extrapolated: the time of a chunk is the
            network's, as measured on the real ones, and the index's own, as measured at that size.
query:      from a question to the ten chunks that fit best: question embedded, cosines, and in
            Lamina words too. The vectors of the chunks searched are drawn, not embedded.
memory:     the most that a process had, everything included.

The peer is another process, so it may live in another environment (--peer-python); it comes with
pip install -c constraints.txt '.[bench-embed]'.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from statistics import mean, median
from typing import Any

import anyio
import numpy

from index_peer import unpack
from lamina.adapters.embed.minilm import MINILM, pull_embedding
from versions import version

HERE = Path(__file__).parent
LAMINA, PEER = "Lamina", "sentence-transformers"
SCRIPTS = {LAMINA: HERE / "index_lamina.py", PEER: HERE / "index_peer.py"}
LENGTH = 500
COLD = 100
SIZES = (100, 10_000, 100_000)
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
QUESTIONS = (
    "How do I define a class with a metaclass?",
    "What happens when an exception is raised inside a finally clause?",
    "Which operator binds more tightly, and or or?",
    "How are default argument values evaluated?",
    "What is the difference between is and ==?",
    "How does a generator receive values?",
    "When is __del__ called?",
    "How can I format a number with thousands separators?",
    "What does the with statement do?",
    "How are names resolved in nested functions?",
    "How do I unpack a dictionary into keyword arguments?",
    "Can a module be imported relative to its package?",
    "What are coroutines?",
    "How is a slice assigned to?",
    "How does pattern matching bind names?",
    "What is a weak reference?",
    "How do string literals escape characters?",
    "Are integers unlimited in size?",
    "How do I step through code in the debugger?",
    "What does the nonlocal statement do?",
)

Figures = dict[str, float]


def make_chunks(number: int) -> list[str]:
    """Different chunks of Python's manual, marked as such if it is too short for so many."""
    manual = re.sub(r"[ \t]+", " ", "\n".join(topics[name] for name in sorted(topics)))
    pieces = [manual[at : at + LENGTH] for at in range(0, len(manual) - LENGTH, LENGTH)]
    if number > len(pieces):
        raise SystemExit(f"Python's manual has {len(pieces):,} chunks, not {number:,}")
    # From all over it, not its beginning alone.
    return [pieces[n * len(pieces) // number] for n in range(number)]


class Runs:
    """Runs tasks, and keeps what they said."""

    def __init__(self, pythons: dict[str, str], work: Path) -> None:
        self._pythons = pythons
        self._work = work
        self.figures: dict[str, dict[str, list[Figures]]] = {LAMINA: {}, PEER: {}}

    def run(self, row: str, task: str, size: int) -> dict[str, Any]:
        command = [self._pythons[row], str(SCRIPTS[row]), task, str(self._work), str(size)]
        start = time.perf_counter()
        with (
            tempfile.TemporaryFile("w+") as problems,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=problems,
                text=True,
                env={**os.environ, **OFFLINE},
            ) as process,
        ):
            assert process.stdout
            first = process.stdout.readline()
            until = (time.perf_counter() - start) * 1e3
            rest = process.stdout.read()
            if process.wait():
                problems.seek(0)
                code = process.returncode
                raise SystemExit(f"{row}, {task} {size}: ended with {code}\n{problems.read()}")
        figures: dict[str, Any] = json.loads((first + rest).splitlines()[-1])
        if first.startswith("found"):
            figures["first_result_ms"] = until
        self.figures[row].setdefault(f"{task} {size}", []).append(figures)
        return figures

    def median(self, row: str, task: str, size: int, figure: str) -> float:
        return median(run[figure] for run in self.figures[row][f"{task} {size}"])


def measure(runs: Runs, work: Path, sizes: Sequence[int], chunks: int, rounds: int) -> None:
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for file in work.glob("*.sqlite*"):
            file.unlink()
        runs.run(LAMINA, "cold", COLD)
        runs.run(PEER, "cold", COLD)
        runs.run(LAMINA, "again", COLD)
        runs.run(LAMINA, "index", chunks)
        runs.run(PEER, "index", chunks)
        for size in sizes:
            runs.run(LAMINA, "search", size)
            runs.run(PEER, "search", size)


def summarise(runs: Runs, work: Path, sizes: Sequence[int], chunks: int) -> dict[str, Any]:
    """The medians, by row and size."""
    ours, theirs = (numpy.load(work / f"{name}.npy") for name in ("lamina", "peer"))
    embed = runs.median(LAMINA, "index", chunks, "embed_ms")
    peer_embed = min(runs.median(PEER, "index", chunks, f"embed_{batch}_ms") for batch in (32, 4))
    return {
        "likeness of vectors": float(mean((ours * theirs).sum(axis=1))),
        "cold start ms": {
            LAMINA: runs.median(LAMINA, "cold", COLD, "first_result_ms"),
            f"{LAMINA}, again": runs.median(LAMINA, "again", COLD, "first_result_ms"),
            PEER: runs.median(PEER, "cold", COLD, "first_result_ms"),
        },
        "cold start MB": {row: runs.median(row, "cold", COLD, "peak_mb") for row in (LAMINA, PEER)},
        "real chunks, ms each": {
            f"{LAMINA}, embed": embed,
            f"{LAMINA}, index": runs.median(LAMINA, "index", chunks, "index_ms"),
            f"{PEER}, batch 32": runs.median(PEER, "index", chunks, "embed_32_ms"),
            f"{PEER}, batch 4": runs.median(PEER, "index", chunks, "embed_4_ms"),
        },
        "question embedded, ms": {
            row: runs.median(row, "index", chunks, "question_ms") for row in (LAMINA, PEER)
        },
        "real chunks, MB": {
            row: runs.median(row, "index", chunks, "peak_mb") for row in (LAMINA, PEER)
        },
        "sizes": [
            {
                "chunks": size,
                "ms per chunk": {
                    LAMINA: embed + runs.median(LAMINA, "search", size, "besides_ms"),
                    PEER: peer_embed,
                },
                "of which not the network": runs.median(LAMINA, "search", size, "besides_ms"),
                "query ms": {
                    row: runs.median(row, "search", size, "query_ms") for row in (LAMINA, PEER)
                },
                "MB": {row: runs.median(row, "search", size, "peak_mb") for row in (LAMINA, PEER)},
                "opened again ms": runs.median(LAMINA, "search", size, "open_ms"),
                "file MB": runs.median(LAMINA, "search", size, "file_mb"),
            }
            for size in sizes
        ],
    }


def show(medians: dict[str, Any], chunks: int) -> None:
    print(f"\nMean cosine of the vectors of both: {medians['likeness of vectors']:.4f}")
    for title in (
        "cold start ms",
        "cold start MB",
        "real chunks, ms each",
        "question embedded, ms",
        "real chunks, MB",
    ):
        print(f"\n{title}" + (f" ({chunks} of them)" if title.startswith("real") else ""))
        for row, value in medians[title].items():
            print(f"  {row:<34}{value:>10,.1f}")
    print("\nBy number of chunks (indexing extrapolated, vectors searched are synthetic)")
    print(f"{'chunks':>9}  {'row':<24}{'index ms/chunk':>15}{'query ms':>10}{'peak MB':>9}")
    for size in medians["sizes"]:
        for row in (LAMINA, PEER):
            print(
                f"{size['chunks']:>9,}  {row:<24}{size['ms per chunk'][row]:>15.2f}"
                f"{size['query ms'][row]:>10.2f}{size['MB'][row]:>9.0f}"
            )
        print(
            f"{'':>11}of Lamina's, {size['of which not the network']:.2f} ms per chunk are words "
            f"and disk; the file has {size['file MB']:.1f} MB and opens in "
            f"{size['opened again ms']:,.0f} ms"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python with the peer")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--chunks", type=int, default=600, help="how many are really embedded")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    folder = anyio.run(pull_embedding)
    with tempfile.TemporaryDirectory(prefix="bench-index-") as name:
        work = Path(name)
        texts = {"chunks": make_chunks(max(args.chunks, COLD)), "questions": QUESTIONS}
        (work / "texts.json").write_text(json.dumps(texts), "utf-8")
        wheel = MINILM.wheel
        unpack(work / "peer", *(wheel.path_of(file).resolve() for file in wheel.files))
        runs = Runs({LAMINA: sys.executable, PEER: args.peer_python}, work)
        peer = runs.run(PEER, "versions", 0)
        versions = {
            "Python": platform.python_version(),
            "processor threads": os.cpu_count(),
            **{name: version(name) for name in ("lamina", "onnxruntime", "tokenizers", "numpy")},
            **{name: figure for name, figure in peer.items() if name != "peak_mb"},
            "weights": f"{folder.name} {MINILM.weights.sha256[:12]}",
        }
        print(", ".join(f"{name} {value}" for name, value in versions.items()), flush=True)
        waiting = [os.getloadavg()[0]]
        measure(runs, work, args.sizes, args.chunks, args.rounds)
        waiting.append(os.getloadavg()[0])
        medians = summarise(runs, work, args.sizes, args.chunks)
    show(medians, args.chunks)
    # Milliseconds of a machine that does something else, too, are worth little.
    print(f"\nLoad of the machine before and after: {waiting[0]:.1f}, {waiting[1]:.1f}")
    if args.json:
        record = {"versions": versions, "load": waiting, "medians": medians, "runs": runs.figures}
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
