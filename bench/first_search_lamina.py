"""Lamina's rows of the benchmark of first searches. Run by bench/first_search.py, each task in a
process of its own:

    python bench/first_search_lamina.py index|first|share VAULT KEPT QUESTIONS

QUESTIONS is a file of JSON: a list of [kind, question]. `index` makes KEPT/full.sqlite once.
"""

import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import anyio
import numpy
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_file import ChunkData, ChunkFile
from lamina.adapters.embed.index.chunk_table import digest_text, find_missing_texts, unpack_vectors
from lamina.adapters.embed.index.corpus import PreparedDocuments
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.core.ports import Progress
from lamina.core.selection.rough_meaning import WordVectors
from lamina.core.values.note import Note, NoteSearchResult
from lamina.engine.sources.note_search import WorkspaceSearch

TOP = 10
FULL = "full.sqlite"


def open_folder(vault: Path, kept: Path) -> FolderWorkspace:
    return FolderWorkspace(vault, cache=kept / "catalogue.sqlite")


async def index(vault: Path, kept: Path, _: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The complete index, which the others are compared with."""
    start, cpu = time.perf_counter(), time.process_time()
    folder = open_folder(vault, kept)
    full = SqliteIndex(kept / FULL, MiniLM())
    ready = await WorkspaceSearch(folder, full, patience=None).prepare()
    passages = sum(full.stats().chunks.values())
    full.close()
    await folder.aclose()
    return {
        "notes": ready.searched,
        "passages": passages,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


async def first(vault: Path, kept: Path, questions: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A process that finds nothing indexed: its first answer, the next ones, and one after an
    edit."""
    folder = open_folder(vault, kept)
    fresh = SqliteIndex(kept / "index.sqlite", MiniLM())
    search = WorkspaceSearch(folder, fresh)
    result = await search.search(questions[0][1], top=TOP)
    print("found", flush=True)
    cpu = time.process_time()
    tiers = [result.tier.words if result.tier else ""]
    times: list[float] = []
    for _, question in questions[1:4]:
        start = time.perf_counter()
        result = await search.search(question, top=TOP)
        times.append(time.perf_counter() - start)
        tiers.append(result.tier.words if result.tier else "")
    fresh.close()
    await folder.aclose()
    return {"cpu_seconds": cpu, "next_seconds": times, "tiers": tiers}


class KnownVectors:
    """The embedder with the vectors of an index that is complete: the same ones, at once."""

    def __init__(self, path: Path, questions: Mapping[str, NDArray[numpy.float32]]) -> None:
        self._file = ChunkFile(path)
        self._real = MiniLM()
        self._questions = dict(questions)

    @property
    def name(self) -> str:
        return self._real.name

    async def embed(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> NDArray[numpy.float32]:
        digests = [digest_text(text) for text in texts]
        known = self._file.fetch(self.name, digests)
        if all(digest in known for digest in digests):
            return unpack_vectors([known[digest].vector for digest in digests])
        return await self._real.embed(texts, progress)

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        return await self._real.fluency(texts)

    async def word_vectors(self) -> WordVectors:
        return await self._real.word_vectors()


class ForgetfulFile(ChunkFile):
    """Keeps words and no vectors."""

    def keep(self, maker: str, chunks: Mapping[bytes, ChunkData], *, later: bool = False) -> None:
        if not maker:
            super().keep(maker, chunks, later=later)


class ForgetfulIndex(SqliteIndex):
    """An index in which every question is the first one."""

    def __init__(self, path: Path, embedder: KnownVectors) -> None:
        super().__init__(path, embedder)
        self._file = ForgetfulFile(path)

    def begin_with(self, prepared: PreparedDocuments) -> None:
        """Begins every question with the words of these documents."""
        missing = find_missing_texts(prepared, vectors=True).digests
        self._recent = [replace(prepared, missing_digests=missing)]

    def _remember(self, prepared: PreparedDocuments) -> None:
        pass


def passages_of(result: NoteSearchResult, notes: Mapping[str, Note]) -> set[str]:
    """The passages that hits are joined from: by note, or by text where notes repeat others."""
    texts: set[str] = set()
    for hit in result.hits:
        lines = hit.text.split("\n")
        for passage in notes[hit.path].passages:
            if passage.part is None and hit.start <= passage.start and passage.end <= hit.end:
                own = lines[passage.start - hit.start : passage.end - hit.start + 1]
                texts.add(" ".join(" ".join(own).split()))
    return texts


async def share(vault: Path, kept: Path, questions: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """How much of what the complete index finds is found with nothing indexed, question by
    question."""
    folder = open_folder(vault, kept)
    full = SqliteIndex(kept / FULL, MiniLM())
    whole = WorkspaceSearch(folder, full, patience=None)
    notes = {note.path: note for note in (await folder.catalogue()).notes}
    shutil.rmtree(kept / "share", ignore_errors=True)
    (kept / "share").mkdir()
    fresh = ForgetfulIndex(kept / "share" / "index.sqlite", KnownVectors(kept / FULL, {}))
    # Words alone are known of every note; how long that takes is measured elsewhere.
    words_index = SqliteIndex(kept / "share" / "index.sqlite", None)
    words = WorkspaceSearch(folder, words_index)
    await words.prepare()
    fresh.begin_with(words_index._recent[0])
    search = WorkspaceSearch(folder, fresh, patience=3600.0)
    rows: list[dict[str, Any]] = []
    for number, (kind, question) in enumerate(questions):
        wanted = passages_of(await whole.search(question, top=TOP), notes)
        start = time.process_time()
        result = await search.search(question, top=TOP)
        cpu = time.process_time() - start
        by_words = await words.search(question, top=TOP)
        assert result.tier is not None
        if wanted:
            rows.append(
                {
                    "kind": kind,
                    "share": len(wanted & passages_of(result, notes)) / len(wanted),
                    "by words": len(wanted & passages_of(by_words, notes)) / len(wanted),
                    "compared": result.tier.compared,
                    "cpu": cpu,
                }
            )
        if not number % 20:
            print(number, rows[-1:], file=sys.stderr, flush=True)
    await folder.aclose()
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {
        "questions": len(rows),
        "share": mean(row["share"] for row in rows),
        "shares": {
            kind: mean(row["share"] for row in rows if row["kind"] == kind) for kind in kinds
        },
        "by_words": {
            kind: mean(row["by words"] for row in rows if row["kind"] == kind) for kind in kinds
        },
        "compared": mean(row["compared"] for row in rows),
        "guess_cpu_seconds": mean(row["cpu"] for row in rows),
    }


TASKS = {"index": index, "first": first, "share": share}


def main() -> int:
    task, vault, kept, questions = sys.argv[1:]
    asked = [(kind, text) for kind, text in json.loads(Path(questions).read_text("utf-8"))]
    figures = anyio.run(partial(TASKS[task], Path(vault), Path(kept), asked))
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["load"] = os.getloadavg()[0]
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
