"""Documents that are ready to be searched.

Law: scores depend on the documents and the question alone, not on what else is indexed, nor on
whether a vector was just made or read again.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio.to_thread
import numpy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.embed.index_making import describe_failed
from lamina.embed.index_shelf import Shelf
from lamina.errors import ModelMissing
from lamina.selection.expanding import Graph
from lamina.selection.lexical import Lexicon
from lamina.selection.scoring import Layout, Matrix, Scores, lay_out
from lamina.values.selection import Document

# Texts to vectors, by text; and why some have none.
Asked = tuple[Mapping[str, Matrix], Mapping[str, str]]
Ask = Callable[[Sequence[str]], Awaitable[Asked]]

# So many vectors at a time stay in a processor's cache.
CACHED = 512
# What is new, or there for nobody, is at most one row in so many: otherwise a shelf begins anew.
SMALL_SHARE = 8


class Counts(Struct, frozen=True, kw_only=True):
    """Of the different texts of a corpus: how many were made for it, known before, or failed."""

    new: int = 0
    reused: int = 0
    failed: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """What corpora of the same documents share; nobody changes it."""

    documents: tuple[Document, ...]
    layout: Layout
    # May hold texts besides those of the documents; so may the lexicon, a chunk for each row.
    shelf: Shelf
    lexicon: Lexicon
    # The row of the shelf for each chunk of the documents, in order; and how many rows those are.
    columns: NDArray[numpy.int64]
    texts: int
    # The texts of which something is still to be made.
    lacking: tuple[str, ...]
    # Those that were asked for, by their threshold and top.
    graphs: dict[tuple[float, int], Graph] = {}


def grow(texts: Mapping[str, None], remembered: Iterable[Standing]) -> tuple[Shelf, Lexicon] | None:
    """A shelf for these texts that has grown from one that holds most of them, with the lexicon of
    that one; None if there is no such."""
    for standing in remembered:
        # Rows that are still to be made belong to those who hold the corpus.
        if standing.lacking or not len(standing.shelf):
            continue
        few = len(standing.shelf) // SMALL_SHARE
        new = [text for text in texts if text not in standing.shelf.rows]
        idle = len(standing.shelf) + len(new) - len(texts)
        if len(new) + standing.lexicon.recent <= few and idle <= few:
            return standing.shelf.grown(new), standing.lexicon
    return None


def stand(
    documents: tuple[Document, ...], shelf: Shelf, lexicon: Lexicon | None, embeds: bool
) -> Standing:
    """Documents of which all terms are known. `lexicon` is that of the shelf before it grew."""
    rows = shelf.rows
    columns = numpy.array([rows[chunk] for each in documents for chunk in each.chunks], numpy.int64)
    times = numpy.bincount(columns, minlength=len(shelf))
    known = 0 if lexicon is None else len(lexicon)
    packed = [terms or b"" for terms in shelf.terms[known:]]
    return Standing(
        documents=documents,
        layout=lay_out(documents),
        shelf=shelf,
        lexicon=lexicon.grown(packed, times) if lexicon else Lexicon(packed, times),
        columns=columns,
        texts=int(numpy.count_nonzero(times)),
        lacking=tuple(shelf.lacking(vectors=embeds)),
    )


def mended(before: Standing, shelf: Shelf, embeds: bool) -> Standing:
    """The same documents, of which more is known now."""
    lacking = tuple(shelf.lacking(vectors=embeds))
    return replace(before, shelf=shelf, lacking=lacking, graphs={})


# Which documents are alike, by threshold and top.
Relate = Callable[[Standing, float, int], Awaitable[Graph]]


class IndexedCorpus:
    """A corpus of an index, as one load of it found it. `ask` gives vectors of questions; it is
    None where there is no embedder."""

    def __init__(
        self,
        standing: Standing,
        ask: Ask | None,
        relate: Relate | None = None,
        *,
        lexical: str = "",
        failed: Sequence[str] = (),
        warnings: Sequence[str] = (),
        counts: Counts | None = None,
    ) -> None:
        self.counts = counts or Counts()
        self.warnings = tuple(warnings)
        self._standing = standing
        self._ask = ask
        self._relate = relate
        self._lexical = lexical
        self._failed = tuple(failed)
        self._unanswered: tuple[str, ...] = ()

    @property
    def documents(self) -> Sequence[Document]:
        return self._standing.documents

    @property
    def lexical(self) -> str:
        return self._lexical

    @property
    def failed(self) -> Sequence[str]:
        return self._failed + self._unanswered

    async def graph(self, threshold: float, top: int) -> Graph:
        """Which documents are like which; none where there are no vectors."""
        if self._relate is None or self._standing.shelf.vectors is None:
            return {}
        return await self._relate(self._standing, threshold, top)

    async def score(self, parts: Sequence[str]) -> Scores:
        """How well each chunk fits each part. If it turns out that questions cannot be embedded,
        `lexical` or `failed` say so afterwards."""
        shelf = self._standing.shelf
        found: dict[str, Matrix] = {}
        if self._ask is not None and not self._lexical and shelf.vectors is not None:
            asked = [part for part in dict.fromkeys(parts) if part.strip()]
            # Whoever searches from a chunk need not have it embedded once more.
            found = {part: shelf.vectors[shelf.rows[part]] for part in asked if part in shelf}
            try:
                made, failed = await self._ask([part for part in asked if part not in found])
            except ModelMissing as error:
                self._lexical = str(error)
                found = {}
            else:
                found |= made
                self._unanswered = describe_failed(failed)
        # Some milliseconds for each part of 100,000 chunks: too long to hold the others up.
        return await anyio.to_thread.run_sync(self._score, tuple(parts), found)

    def _score(self, parts: tuple[str, ...], found: Mapping[str, Matrix]) -> Scores:
        standing = self._standing
        lexical = numpy.zeros((len(parts), len(standing.columns)), numpy.float32)
        for row, part in enumerate(parts):
            lexical[row] = standing.lexicon.score(part)[standing.columns]
        vectors = standing.shelf.vectors
        if not found or vectors is None:
            return Scores(lexical=lexical, layout=standing.layout)
        cosine = numpy.full(lexical.shape, numpy.nan, numpy.float32)
        asked = [row for row, part in enumerate(parts) if part in found]
        alike = _multiply(vectors, [found[parts[row]] for row in asked])
        numpy.clip(alike, -1.0, 1.0, out=alike)
        cosine[asked] = alike[:, standing.columns]
        return Scores(lexical=lexical, cosine=cosine, layout=standing.layout)


def _multiply(vectors: Matrix, asked: Sequence[Matrix]) -> Matrix:
    """The cosine of each question with each vector. Row by row: a product of matrices adds up in
    another order for other neighbours, and its threads wait for each other where others work."""
    alike = numpy.empty((len(asked), len(vectors)), numpy.float32)
    # What is read from memory once serves all questions.
    for start in range(0, len(vectors), CACHED):
        block = slice(start, start + CACHED)
        for row, question in enumerate(asked):
            numpy.vecdot(vectors[block], question, out=alike[row, block])
    return alike
