"""An index that knows how alike things are because a test says so."""

from collections.abc import Collection, Mapping, Sequence

import anyio
import numpy

from lamina.core.ports import Progress, ReadTexts
from lamina.core.selection.expansion import SimilarityGraph
from lamina.core.selection.scores import Scores
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

Likeness = Mapping[str, Mapping[str, float]]


class IndexFake:
    """`alike` maps a word to items and their cosine to any text that holds the word; a chunk's own
    text may be such a text. Whatever is not said is 0. A test sets `fails` to what goes wrong, and
    `lexical`, `failed` and `warnings` to what a corpus says of itself."""

    def __init__(self, alike: Likeness | None = None) -> None:
        self.alike = dict(alike or {})
        self.fails: Exception | None = None
        self.lexical = ""
        self.failed: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        # What was loaded, as ids, and what was asked.
        self.loaded: list[list[str]] = []
        self.asked: list[list[str]] = []
        self.graphs: list[tuple[float, int]] = []

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> "CorpusFake":
        await anyio.lowlevel.checkpoint()
        if self.fails is not None:
            raise self.fails
        self.loaded.append([document.id for document in documents])
        return CorpusFake(self, documents)


class CorpusFake:
    late = 0

    def __init__(self, index: IndexFake, documents: Sequence[Document]) -> None:
        self._index = index
        self.documents = documents
        self.lexical = index.lexical
        self.failed = index.failed
        self.warnings = index.warnings

    async def graph(self, threshold: float, top: int) -> SimilarityGraph:
        """Who is like whom by the chunks that `alike` has words of."""
        await anyio.lowlevel.checkpoint()
        self._index.graphs.append((threshold, top))
        found: dict[ItemId, tuple[tuple[ItemId, float], ...]] = {}
        for document in self.documents:
            said = [
                likeness
                for word, likeness in self._index.alike.items()
                if any(word in chunk for chunk in document.chunks)
            ]
            best = {
                other.id: max((likeness.get(other.id, 0.0) for likeness in said), default=0.0)
                for other in self.documents
                if other.id != document.id
            }
            order = sorted(best, key=lambda item: -best[item])[:top]
            found[document.id] = tuple(
                (item, best[item]) for item in order if best[item] >= threshold
            )
        return found

    async def score(self, parts: Sequence[str]) -> Scores:
        await anyio.lowlevel.checkpoint()
        self._index.asked.append(list(parts))
        owners = [document.id for document in self.documents for _ in document.chunks]
        cosine = numpy.zeros((len(parts), len(owners)), numpy.float32)
        for row, part in enumerate(parts):
            said = [mapping for word, mapping in self._index.alike.items() if word in part]
            for column, owner in enumerate(owners):
                known = [likeness[owner] for likeness in said if owner in likeness]
                cosine[row, column] = max(known, default=0.0)
        if self.lexical:
            return Scores(lexical=cosine)
        return Scores(lexical=numpy.zeros_like(cosine), cosine=cosine)
