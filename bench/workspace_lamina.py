"""Lamina's row of the workspace benchmark. Run by bench/workspace.py, each task in a process of its
own:

    python bench/workspace_lamina.py catalogue|refresh|search|embed NOTES KEPT NUMBER

NOTES is the folder of notes, KEPT where what is known of them is kept, NUMBER how many generated
notes there are. What is cold and what is warm is a matter of what was left in KEPT.
"""

import json
import resource
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import numpy
from numpy.typing import NDArray

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.catalogue import NoteCatalogue
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.folder_watcher import FolderWatcher
from lamina.core.ports import Embedder, Progress
from lamina.engine.sources.note_search import WorkspaceSearch
from workspace_notes import questions

AGAIN = 5
# A word that no note has.
NEW_WORD = "zyzzyvax"
VAULT_QUESTION = "How is a running stitch made?"


def since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3


def catalogue(notes: Path, kept: Path, number: int) -> dict[str, Any]:
    """From nothing in memory to all notes."""
    start = time.perf_counter()
    notes_catalogue = NoteCatalogue(Root(notes), kept / "catalogue.sqlite")
    report = notes_catalogue.refresh()
    took = since(start)
    notes_catalogue.close()
    assert not notes_catalogue.take_warnings()
    assert len(report.notes) == number, len(report.notes)
    return {
        "catalogue_ms": took,
        "passages": sum(len(note.passages) for note in report.notes),
        "file_mb": (kept / "catalogue.sqlite").stat().st_size / 1e6,
    }


def refresh(notes: Path, kept: Path, number: int) -> dict[str, Any]:
    """Looking whether something changed, and then one edit; by a walk, and watched."""
    root = Root(notes)
    figures: dict[str, Any] = {}
    for way, watcher in (("walked", None), ("watched", FolderWatcher(root.path))):
        notes_catalogue = NoteCatalogue(
            root, kept / "catalogue.sqlite", watcher=watcher, max_walked=0
        )
        first = notes_catalogue.refresh()
        # What was young is settled, and what is to be watched is.
        notes_catalogue.refresh()
        times = []
        for _ in range(AGAIN):
            start = time.perf_counter()
            assert notes_catalogue.refresh() is first
            times.append(since(start))
        figures[f"{way}_ms"] = median(times)
        path = notes / first.notes[number // 2].path
        before = path.read_bytes()
        path.write_bytes(before + b"\nEdited.\n")
        start = time.perf_counter()
        second = notes_catalogue.refresh()
        figures[f"{way}_edit_ms"] = since(start)
        assert sum(a is not b for a, b in zip(first.notes, second.notes, strict=True)) == 1
        path.write_bytes(before)
        notes_catalogue.close()
        assert not notes_catalogue.take_warnings()
    return figures


async def search(notes: Path, kept: Path, number: int) -> dict[str, Any]:
    """A first question, more of them, and one about what was only just written; by words alone."""
    folder = FolderWorkspace(notes, cache=kept / "catalogue.sqlite")
    index = SqliteIndex(kept / "index.sqlite", None)
    search = WorkspaceSearch(folder, index)
    first, *rest = questions(number)

    async def ask(question: str) -> list[str]:
        hits = await search.search(question)
        assert hits.searched == number, hits.warnings
        return [hit.path for hit in hits.hits]

    start = time.perf_counter()
    hits = [first[1] in await ask(first[0])]
    took = since(start)
    print("found", flush=True)
    times = []
    for question, path in rest:
        start = time.perf_counter()
        hits.append(path in await ask(question))
        times.append(since(start))
    note_path = notes / rest[0][1]
    before = note_path.read_bytes()
    note_path.write_bytes(before + f"\n{NEW_WORD}\n".encode())
    start = time.perf_counter()
    is_seen = await ask(NEW_WORD) == [rest[0][1]]
    seconds = since(start)
    note_path.write_bytes(before)
    await folder.aclose()
    index.close()
    assert is_seen
    return {
        "search_ms": took,
        "again_ms": median(times),
        "edit_ms": seconds,
        "found": sum(hits),
        "asked": len(hits),
    }


class CountingEmbedder:
    """Counts what it is given that is no question."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self.counted = 0

    @property
    def name(self) -> str:
        return self._real.name

    async def embed(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> NDArray[numpy.float32]:
        self.counted += len([text for text in texts if text != VAULT_QUESTION])
        return await self._real.embed(texts, progress)


async def embed(notes: Path, kept: Path, number: int) -> dict[str, Any]:
    """A real vault with embeddings: how many passages are embedded, before and after an edit."""
    from lamina.adapters.embed.minilm import MiniLM

    folder = FolderWorkspace(notes, cache=kept / "catalogue.sqlite")
    embedder = CountingEmbedder(MiniLM())
    index = SqliteIndex(kept / "index.sqlite", embedder)
    search = WorkspaceSearch(folder, index, patience=None)
    start = time.perf_counter()
    hits = await search.search(VAULT_QUESTION)
    took = since(start)
    print("found", flush=True)
    first = await folder.catalogue()
    count, embedder.counted = embedder.counted, 0
    start = time.perf_counter()
    await search.search(VAULT_QUESTION)
    again = since(start)
    # The longest note, and a line at its end: all but its last passages are as they were.
    longest = max(first.notes, key=lambda note: len(note.passages))
    before = (notes / longest.path).read_bytes()
    (notes / longest.path).write_bytes(before.rstrip() + b" And one more sentence.\n")
    start = time.perf_counter()
    await search.search(VAULT_QUESTION)
    seconds = since(start)
    (notes / longest.path).write_bytes(before)
    await folder.aclose()
    index.close()
    return {
        "notes": len(first.notes),
        "unreadable": len(first.unreadable),
        "passages": len({passage.digest for note in first.notes for passage in note.passages}),
        "embedded": count,
        "search_ms": took,
        "again_ms": again,
        "edited_passages": len(longest.passages),
        "embedded_after_edit": embedder.counted,
        "edit_ms": seconds,
        "hits": [f"{hit.path}#{hit.anchor}" for hit in hits.hits[:3]],
        "warnings": list(hits.warnings),
    }


def main() -> int:
    task, notes, kept, number = sys.argv[1:]
    arguments = (Path(notes), Path(kept), int(number))
    plain = {"catalogue": catalogue, "refresh": refresh}
    tasks = {"search": search, "embed": embed}
    figures = (
        plain[task](*arguments) if task in plain else anyio.run(partial(tasks[task], *arguments))
    )
    # With the second process that helps to read many notes, if there was one.
    parts = {"peak_mb": resource.RUSAGE_SELF, "helper_mb": resource.RUSAGE_CHILDREN}
    figures |= {name: resource.getrusage(who).ru_maxrss / 1024 for name, who in parts.items()}
    figures["peak_mb"] += figures["helper_mb"]
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
