"""Lamina's row of the index benchmark. Run by bench/index.py, each task in a process of its own:

python bench/index_lamina.py cold|again|index|search WORK SIZE
"""

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import numpy
from numpy.typing import NDArray

from lamina.adapters.embed.index.corpus import IndexedCorpus
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.core.ports import Progress
from lamina.core.values.item import note_id
from lamina.core.values.selection import Document

Vectors = NDArray[numpy.float32]


def documents(chunks: Sequence[str]) -> list[Document]:
    return [Document(note_id(f"{n}.md"), (chunk,)) for n, chunk in enumerate(chunks)]


def best(scores: Any, top: int = 10) -> list[int]:
    """The chunks that fit best, by their fused scores."""
    lexical, cosine = scores.lexical[0], scores.cosine[0]
    fit = 0.7 * cosine + 0.3 * lexical / max(float(lexical.max()), 1e-9)
    top = min(top, len(fit))
    top_places = numpy.argpartition(-fit, top - 1)[:top]
    return [int(n) for n in top_places[numpy.argsort(-fit[top_places])]]


async def ask(corpus: IndexedCorpus, questions: Sequence[str]) -> float:
    """Median milliseconds from a question to what fits it best."""
    times = []
    for question in questions:
        start = time.perf_counter()
        best(await corpus.score([question]))
        times.append((time.perf_counter() - start) * 1e3)
    return median(times)


async def cold(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    """From nothing to a first result; `again` finds the chunks where `cold` left them."""
    index = SqliteIndex(work / "cold.sqlite", MiniLM())
    corpus = await index.load(documents(texts["chunks"][:size]))
    places = best(await corpus.score([texts["questions"][0]]))
    print("found", places[0], flush=True)
    return {"made": corpus.counts.new}


async def index(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    """Real chunks, with the embedder alone and then into an index."""
    embedder, chunks = MiniLM(), texts["chunks"][:size]
    await embedder.embed(chunks[:8])
    start = time.perf_counter()
    vectors = await embedder.embed(chunks)
    embed_seconds = time.perf_counter() - start
    numpy.save(work / "lamina.npy", vectors)
    start = time.perf_counter()
    corpus = await SqliteIndex(work / "index.sqlite", embedder).load(documents(chunks))
    index_seconds = time.perf_counter() - start
    assert corpus.counts.new == len({*chunks}), corpus.counts
    times = []
    for question in texts["questions"]:
        start = time.perf_counter()
        await embedder.embed([question])
        times.append((time.perf_counter() - start) * 1e3)
    return {
        "embed_ms": embed_seconds * 1e3 / size,
        "index_ms": index_seconds * 1e3 / size,
        "question_ms": median(times),
    }


class SyntheticChunks:
    """An embedder that knows real questions, and draws the vectors of chunks."""

    name = "synthetic"

    def __init__(self, real: MiniLM, questions: Sequence[str]) -> None:
        self._real = real
        self._questions = {*questions}
        self._random = numpy.random.default_rng(7)

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        if self._questions.issuperset(texts):
            return await self._real.embed(texts, progress)
        rows = self._random.standard_normal((len(texts), 384), dtype=numpy.float32)
        vectors: Vectors = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
        return vectors


async def search(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    """Chunks with synthetic vectors: what an index costs besides the network, and a question."""
    real, questions, chunks = MiniLM(), texts["questions"], texts["chunks"]
    await real.embed(questions[:1])
    many = documents([f"{n} {chunks[n % len(chunks)]}" for n in range(size)])
    path = work / f"search-{size}.sqlite"
    embedder = SyntheticChunks(real, questions)
    start = time.perf_counter()
    first = SqliteIndex(path, embedder)
    await first.load(many)
    first.close()
    build_seconds = time.perf_counter() - start
    del first
    start = time.perf_counter()
    corpus = await SqliteIndex(path, embedder).load(many)
    open_seconds = time.perf_counter() - start
    assert corpus.counts.new == 0, corpus.counts
    await ask(corpus, questions[:2])
    return {
        "besides_ms": build_seconds * 1e3 / size,
        "open_ms": open_seconds * 1e3,
        "query_ms": await ask(corpus, questions[2:]),
        "file_mb": path.stat().st_size / 1e6,
    }


TASKS = {"cold": cold, "again": cold, "index": index, "search": search}


def main() -> int:
    task, folder, size = sys.argv[1:]
    work = Path(folder)
    texts = json.loads((work / "texts.json").read_text("utf-8"))
    figures = anyio.run(TASKS[task], work, texts, int(size))
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
