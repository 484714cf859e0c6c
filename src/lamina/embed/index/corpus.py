"""Documents that are ready to be searched.

Law: once all is embedded, scores depend on the documents and the question alone, not on what else
is indexed, nor on whether a vector was just made or read again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio.to_thread
import numpy
from msgspec import Struct, field

from lamina.embed.index.arrangement import (
    Arrangement,
    count_row_uses,
    digest_text,
    find_missing_texts,
    refresh_rows,
)
from lamina.embed.index.chunk_maker import describe_failures, quote_beginning
from lamina.errors import ModelMissing
from lamina.selection.expansion import SimilarityGraph
from lamina.selection.lexicon import Lexicon
from lamina.selection.scores import Matrix, Scores
from lamina.values.selection import Document

# Texts to vectors, by text; and why some have none.
QuestionVectors = tuple[Mapping[str, Matrix], Mapping[str, str]]
EmbedQuestions = Callable[[Sequence[str]], Awaitable[QuestionVectors]]

# So many vectors at a time stay in a processor's cache.
CACHED = 512
NOTHING = numpy.float32(0)


class LoadCounts(Struct, frozen=True, kw_only=True):
    """Of the different texts of a corpus: how many were made for it, known before, or failed; and
    how many are missing, as nothing is known of them and nobody gave them. For the `late` ones
    there was no time: they are found by their words for now."""

    new: int = 0
    reused: int = 0
    failed: int = 0
    missing: int = 0
    late: int = 0


class PreparedDocuments(Arrangement, frozen=True, kw_only=True):
    """What corpora of the same documents share; nobody changes it. The shelf may hold texts besides
    those of the documents; so may the lexicon, a chunk for each row."""

    lexicon: Lexicon
    # The texts of which something is still to be made, and how many of these have no row.
    lacking: tuple[bytes, ...] = ()
    missing: int = 0
    # Those that were asked for, by their threshold and top.
    graphs: dict[tuple[float, int], SimilarityGraph] = field(default_factory=dict)


def prepare_documents(arranged: Arrangement, *, embeds: bool) -> PreparedDocuments:
    """Documents of which all is on the shelf that can be."""
    arranged = refresh_rows(arranged)
    shelf = arranged.shelf
    lacking = find_missing_texts(arranged, vectors=embeds).digests
    return PreparedDocuments(
        documents=arranged.documents,
        layout=arranged.layout,
        shelf=shelf,
        columns=arranged.columns,
        texts=arranged.texts,
        lexicon=Lexicon(shelf.postings, count_row_uses(arranged.columns, len(shelf))),
        lacking=lacking,
        missing=sum(shelf.row(digest) < 0 for digest in lacking),
    )


# Which documents are alike, by threshold and top.
FindGraph = Callable[[PreparedDocuments, float, int], Awaitable[SimilarityGraph]]


class IndexedCorpus:
    """A corpus of an index, as one load of it found it. `ask` gives vectors of questions; it is
    None where there is no embedder."""

    def __init__(
        self,
        standing: PreparedDocuments,
        ask: EmbedQuestions | None,
        relate: FindGraph | None = None,
        *,
        lexical: str = "",
        failed: Sequence[str] = (),
        warnings: Sequence[str] = (),
        counts: LoadCounts | None = None,
    ) -> None:
        self.counts = counts or LoadCounts()
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
    def late(self) -> int:
        return self.counts.late

    @property
    def failed(self) -> Sequence[str]:
        return self._failed + self._unanswered

    async def graph(self, threshold: float, top: int) -> SimilarityGraph:
        """Which documents are like which; none where there are no vectors."""
        if self._relate is None or self._standing.shelf.vectors is None:
            return {}
        return await self._relate(self._standing, threshold, top)

    async def score(self, parts: Sequence[str]) -> Scores:
        """How well each chunk fits each part. If it turns out that questions cannot be embedded,
        `lexical` or `failed` say so afterwards."""
        shelf = self._standing.shelf
        found: dict[str, Matrix] = {}
        vectors = shelf.vectors
        if self._ask is not None and not self._lexical and vectors is not None:
            asked = [part for part in dict.fromkeys(parts) if part.strip()]
            # Whoever searches from a chunk need not have it embedded once more.
            rows = shelf.find([digest_text(part) for part in asked]).tolist()
            pairs = zip(asked, rows, strict=True)
            found = {part: vectors[row] for part, row in pairs if row >= 0 and shelf.embedded[row]}
            try:
                made, failed = await self._ask([part for part in asked if part not in found])
            except ModelMissing as error:
                self._lexical = str(error)
                found = {}
            else:
                found |= made
                self._unanswered = describe_failures(
                    (quote_beginning(text), why) for text, why in failed.items()
                )
        # Some milliseconds for each part of 100,000 chunks: too long to hold the others up.
        return await anyio.to_thread.run_sync(self._score, tuple(parts), found)

    def _score(self, parts: tuple[str, ...], found: Mapping[str, Matrix]) -> Scores:
        standing = self._standing
        lexical = numpy.zeros((len(parts), len(standing.columns)), numpy.float32)
        # What has no row (-1) finds the last place, where nothing is.
        for row, part in enumerate(parts):
            lexical[row] = numpy.append(standing.lexicon.score(part), NOTHING)[standing.columns]
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
    another order for other neighbours, and its threads wait for each other where others work. In
    the last place stands what has no vector."""
    alike = numpy.full((len(asked), len(vectors) + 1), numpy.nan, numpy.float32)
    # What is read from memory once serves all questions.
    for start in range(0, len(vectors), CACHED):
        block = slice(start, min(start + CACHED, len(vectors)))
        for row, question in enumerate(asked):
            numpy.vecdot(vectors[block], question, out=alike[row, block])
    return alike
