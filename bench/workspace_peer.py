"""The peer's row of the workspace benchmark: the straightforward way, with bm25s. Run by
bench/workspace.py in a process of its own:

    python bench/workspace_peer.py search NOTES KEPT NUMBER

Every start reads all notes, cuts them into passages at blank lines and indexes them; nothing is
kept. It does not look at the folder again: an edit is seen by doing all of it anew.
"""

import json
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from workspace_notes import questions

# As long as Lamina's.
LONGEST_PASSAGE = 700
TOP = 8


def cut(text: str) -> list[str]:
    """Paragraphs, together while they are short."""
    passages: list[str] = []
    for paragraph in text.split("\n\n"):
        if passages and len(passages[-1]) + len(paragraph) < LONGEST_PASSAGE:
            passages[-1] += "\n\n" + paragraph
        elif paragraph.strip():
            passages.append(paragraph)
    return passages


class Searcher:
    """All notes of a folder, indexed."""

    def __init__(self, folder: Path) -> None:
        import bm25s
        import Stemmer

        self._stemmer = Stemmer.Stemmer("english")
        self._tokenize = bm25s.tokenize
        self._paths: list[str] = []
        texts: list[str] = []
        for path in sorted(folder.rglob("*.md")):
            title = path.stem
            for passage in cut(path.read_text("utf-8")):
                self._paths.append(path.relative_to(folder).as_posix())
                texts.append(f"{title}\n{passage}")
        self._retriever = bm25s.BM25()
        self._retriever.index(self._tokens(texts), show_progress=False)

    def ask(self, question: str) -> list[str]:
        hits, _ = self._retriever.retrieve(self._tokens([question]), k=TOP, show_progress=False)
        return [self._paths[int(place)] for place in hits[0]]

    def _tokens(self, texts: list[str]) -> Any:
        return self._tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


def search(notes: Path, number: int) -> dict[str, Any]:
    first, *rest = questions(number)
    start = time.perf_counter()
    searcher = Searcher(notes)
    hits = [first[1] in searcher.ask(first[0])]
    took = (time.perf_counter() - start) * 1e3
    print("found", flush=True)
    times = []
    for question, path in rest:
        start = time.perf_counter()
        hits.append(path in searcher.ask(question))
        times.append((time.perf_counter() - start) * 1e3)
    del searcher
    start = time.perf_counter()
    Searcher(notes).ask(rest[0][0])
    seconds = (time.perf_counter() - start) * 1e3
    return {
        "search_ms": took,
        "again_ms": median(times),
        "edit_ms": seconds,
        "found": sum(hits),
        "asked": len(hits),
    }


def main() -> int:
    _, notes, _, number = sys.argv[1:]
    figures = search(Path(notes), int(number))
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
