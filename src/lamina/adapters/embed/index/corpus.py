"""Scores questions against documents that are ready to be searched, and caches question vectors.

Laws: once everything is embedded, scores depend only on the documents and the question, not on what
else is indexed, or whether a vector is new or read from disk. A question is not embedded again
while it is cached.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio.to_thread
import numpy
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_maker import describe_failures, embed_texts, quote_beginning
from lamina.adapters.embed.index.chunk_table import (
    Arrangement,
    count_row_uses,
    digest_text,
    find_missing_texts,
    refresh_rows,
    unpack_vectors,
)
from lamina.core.ports import Embedder, FluentEmbedder
from lamina.core.selection.expansion import SimilarityGraph
from lamina.core.selection.lexicon import Lexicon
from lamina.core.selection.scores import FLUENT, UNREAD, Matrix, Scores, is_foreign
from lamina.core.values.note import SearchTier
from lamina.core.values.selection import Document
from lamina.errors import ModelMissing

# Returns vectors by text, and the reasons why some texts have none.
QuestionVectors = tuple[Mapping[str, Matrix], Mapping[str, str]]
EmbedQuestions = Callable[[Sequence[str]], Awaitable[QuestionVectors]]
# How well an embedder supports the texts' languages: see `FluentEmbedder`.
MeasureFluency = Callable[[Sequence[str]], Awaitable[Sequence[float]]]

# This many vectors fit into a processor's cache.
CACHED = 512
NOTHING = numpy.float32(0)
BY_MEANING = SearchTier(by="meaning")


class LoadCounts(Struct, frozen=True, kw_only=True):
    """Counts of the distinct texts in a corpus: new, already known, failed, and missing (neither
    stored nor supplied). There was no time for the `late` ones: for now they are found by their
    words."""

    new: int = 0
    reused: int = 0
    failed: int = 0
    missing: int = 0
    late: int = 0


class PreparedDocuments(Arrangement, frozen=True, kw_only=True):
    """The immutable part shared by corpora of the same documents. The table may also contain other
    texts, and so may the lexicon, which has a chunk for each row."""

    lexicon: Lexicon
    # The texts still to be processed, and the number without a row.
    missing_digests: tuple[bytes, ...] = ()
    missing: int = 0
    # Graphs requested so far, by threshold and top.
    graphs: dict[tuple[float, int], SimilarityGraph] = field(default_factory=dict)


def prepare_documents(arrangement: Arrangement, *, embeds: bool) -> PreparedDocuments:
    """Return the prepared documents once everything available is in the table."""
    arrangement = refresh_rows(arrangement)
    table = arrangement.table
    missing_digests = find_missing_texts(arrangement, vectors=embeds).digests
    return PreparedDocuments(
        documents=arrangement.documents,
        layout=arrangement.layout,
        table=table,
        columns=arrangement.columns,
        texts=arrangement.texts,
        lexicon=Lexicon(table.postings, count_row_uses(arrangement.columns, len(table))),
        missing_digests=missing_digests,
        missing=sum(table.row(digest) < 0 for digest in missing_digests),
    )


# Finds similar documents, by threshold and top.
FindGraph = Callable[[PreparedDocuments, float, int], Awaitable[SimilarityGraph]]


class IndexedCorpus:
    """A corpus as of one load of an index. `embed_questions` embeds questions; it is None without
    an embedder. If `only` some rows of the table were compared with a question, the others are
    found only by their words, and rank after them."""

    def __init__(
        self,
        prepared: PreparedDocuments,
        embed_questions: EmbedQuestions | None,
        find_graph: FindGraph | None = None,
        *,
        lexical: str = "",
        failures: Sequence[str] = (),
        warnings: Sequence[str] = (),
        counts: LoadCounts | None = None,
        measure_fluency: MeasureFluency | None = None,
        tier: SearchTier = BY_MEANING,
        only: NDArray[numpy.bool_] | None = None,
    ) -> None:
        self.counts = counts or LoadCounts()
        self._tier = tier
        # The rows that can be found, if not all can.
        self._only = only
        self.warnings = tuple(warnings)
        self._prepared = prepared
        self._embed_questions = embed_questions
        self._measure_fluency = measure_fluency
        self._find_graph = find_graph
        self._lexical = lexical
        self._failures = tuple(failures)
        self._failed_questions: tuple[str, ...] = ()
        # The embedder could not read any of the question.
        self._is_unread = False

    @property
    def documents(self) -> Sequence[Document]:
        return self._prepared.documents

    @property
    def lexical(self) -> str:
        return self._lexical

    @property
    def tier(self) -> SearchTier:
        is_by_words = self._lexical or self._is_unread
        return replace(self._tier, by="words", compared=0) if is_by_words else self._tier

    @property
    def late(self) -> int:
        return self.counts.late

    @property
    def failed(self) -> Sequence[str]:
        return self._failures + self._failed_questions

    async def graph(self, threshold: float, top: int) -> SimilarityGraph:
        """Return the similarity graph of the documents; empty without vectors."""
        if self._find_graph is None or self._prepared.table.vectors is None:
            return {}
        return await self._find_graph(self._prepared, threshold, top)

    async def score(self, parts: Sequence[str]) -> Scores:
        """Score each chunk against each part. If questions cannot be embedded, `lexical` or
        `failed` says so afterwards."""
        by_part: dict[str, Matrix] = {}
        fluency: dict[str, float] = {}
        has_vectors = self._prepared.table.vectors is not None
        if self._embed_questions is not None and not self._lexical and has_vectors:
            questions = [part for part in dict.fromkeys(parts) if part.strip()]
            try:
                fluency = await self._fluency_of(questions)
                readable = [
                    part for part in questions if self._reads(part, fluency.get(part, FLUENT))
                ]
                self._is_unread = bool(questions) and not readable
                by_part = await self._vectors_of(readable, self._embed_questions)
            except ModelMissing as error:
                self._lexical = str(error)
                by_part, fluency = {}, {}
        # Milliseconds per part for 100,000 chunks: too long to block other tasks.
        scores = await anyio.to_thread.run_sync(self._score, tuple(parts), by_part)
        if not fluency:
            return scores
        known = numpy.array([fluency.get(part, FLUENT) for part in parts])
        return Scores(
            lexical=scores.lexical, cosine=scores.cosine, layout=scores.layout, fluency=known
        )

    def _reads(self, part: str, fluency: float) -> bool:
        """Decide whether a part's vector counts. In a language that the encoder barely supports it
        says little, but without a shared word there is nothing better; in a script that it cannot
        read, it is noise."""
        if fluency >= UNREAD:
            return True
        return not is_foreign(part, fluency) and not self._prepared.lexicon.has(part)

    async def _fluency_of(self, questions: Sequence[str]) -> dict[str, float]:
        if self._measure_fluency is None:
            return {}
        return dict(zip(questions, await self._measure_fluency(questions), strict=True))

    async def _vectors_of(
        self, questions: Sequence[str], embed: EmbedQuestions
    ) -> dict[str, Matrix]:
        table, vectors = self._prepared.table, self._prepared.table.vectors
        if vectors is None:
            return {}
        # A chunk used as a question need not be embedded again.
        rows = table.find([digest_text(part) for part in questions]).tolist()
        pairs = zip(questions, rows, strict=True)
        has_vector = table.is_embedded
        by_part = {part: vectors[row] for part, row in pairs if row >= 0 and has_vector[row]}
        new_vectors, failures = await embed([part for part in questions if part not in by_part])
        self._failed_questions = describe_failures(
            (quote_beginning(text), why) for text, why in failures.items()
        )
        return by_part | dict(new_vectors)

    def _score(self, parts: tuple[str, ...], by_part: Mapping[str, Matrix]) -> Scores:
        prepared = self._prepared
        lexical = numpy.zeros((len(parts), len(prepared.columns)), numpy.float32)
        # Row -1 indexes the last element, which is empty.
        for row, part in enumerate(parts):
            words = prepared.lexicon.score(part)
            if self._only is not None and not self._lexical and not self._is_unread:
                words[~self._only] = NOTHING
            lexical[row] = numpy.append(words, NOTHING)[prepared.columns]
        vectors = prepared.table.vectors
        if not by_part or vectors is None:
            return Scores(lexical=lexical, layout=prepared.layout)
        cosine = numpy.full(lexical.shape, numpy.nan, numpy.float32)
        asked_rows = [row for row, part in enumerate(parts) if part in by_part]
        alike = _multiply(vectors, [by_part[parts[row]] for row in asked_rows])
        numpy.clip(alike, -1.0, 1.0, out=alike)
        cosine[asked_rows] = alike[:, prepared.columns]
        return Scores(lexical=lexical, cosine=cosine, layout=prepared.layout)


def _multiply(vectors: Matrix, questions: Sequence[Matrix]) -> Matrix:
    """Return the cosine of each question with each vector. Rows are multiplied one by one: a matrix
    product sums in an order that depends on neighbouring rows, and its threads wait for each other
    on a busy machine. The last element is for chunks without a vector."""
    alike = numpy.full((len(questions), len(vectors) + 1), numpy.nan, numpy.float32)
    # Once read from memory, a block is used for all questions.
    for start in range(0, len(vectors), CACHED):
        block = slice(start, min(start + CACHED, len(vectors)))
        for row, question in enumerate(questions):
            numpy.vecdot(vectors[block], question, out=alike[row, block])
    return alike


REMEMBERED_QUESTIONS = 512


class RememberedQuestions:
    """A cache of the latest questions' vectors."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()

    def clear(self) -> None:
        self._vectors.clear()

    async def embed(self, texts: Sequence[str]) -> QuestionVectors:
        """Return the vectors of questions; cache the latest ones."""
        new = [text for text in texts if text not in self._vectors]
        failures: dict[str, str] = {}
        new_vectors: dict[str, bytes] = {}
        if new and self._embedder is not None:
            new_vectors, failures = await embed_texts(self._embedder, new)
        for text, vector in new_vectors.items():
            self._vectors[text] = unpack_vectors([vector])[0]
        vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
        for text in vectors:
            self._vectors.move_to_end(text)
        while len(self._vectors) > REMEMBERED_QUESTIONS:
            self._vectors.popitem(last=False)
        return vectors, failures

    async def reads_any(self, parts: Sequence[str]) -> bool:
        """Check whether the embedder can read any of a question, as far as it can tell."""
        parts = [part for part in parts if part.strip()]
        if not isinstance(self._embedder, FluentEmbedder) or not parts:
            return True
        try:
            fluency = await self._embedder.fluency(parts)
        except ModelMissing:
            # A missing model is detected and reported on embedding.
            return True
        return not all(map(is_foreign, parts, fluency))
