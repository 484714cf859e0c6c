"""Provides the search index: chunks' terms and vectors, kept across sessions.

Laws: a chunk is identified by its text, so nothing is embedded twice, an edited item is embedded
again, and all sessions and processes share results. Results are stored in batches, so interrupted
work resumes where it stopped. A text that cannot be embedded is found by its words, reported, and
retried.
"""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import numpy
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.embed.index.chunk_file import ChunkFile, IndexStats
from lamina.adapters.embed.index.chunk_maker import (
    ROUND,
    WORDS_ALONE,
    ChunkMaker,
    Comparison,
    describe_failures,
)
from lamina.adapters.embed.index.chunk_table import (
    Arrangement,
    MissingTexts,
    arrange_documents,
    find_missing_texts,
    refresh_rows,
)
from lamina.adapters.embed.index.corpus import (
    IndexedCorpus,
    LoadCounts,
    PreparedDocuments,
    RememberedQuestions,
    prepare_documents,
)
from lamina.adapters.embed.index.filler import IndexFiller
from lamina.adapters.embed.index.similarity_graph import find_graph
from lamina.core.ports import Embedder, FluentEmbedder, Progress, ReadTexts, WordEmbedder
from lamina.core.selection.expansion import SimilarityGraph
from lamina.core.selection.lexicon import Postings
from lamina.core.selection.rough_meaning import (
    CandidateOrder,
    ChunkSketches,
    WordVectors,
    sketch_chunks,
)
from lamina.core.selection.scores import Matrix
from lamina.core.values.note import SearchTier
from lamina.core.values.selection import Document
from lamina.errors import ModelMissing

# The number of chunks cached for the next turn. Passages with vectors take some 2.2 kB each, so 1.1
# GB; without vectors a third of that. A workspace of 100,000 notes (300,000 passages) fits, with
# room for half as much again. Corpora that share memory are counted once.
REMEMBERED_CHUNKS = 500_000
# The maximum number of cached corpora; and the number kept whatever their size, so that a large
# workspace is not reread because a few tools were searched in between.
REMEMBERED, IN_USE = 8, 3
# While more than this share is not embedded yet, everything is searched by words: otherwise chunks
# that happen to have a vector would rank first.
MOSTLY_EMBEDDED = 0.1
# The share of a question's patience reserved for embedding, however long indexing words took.
EMBEDDING_SHARE = 0.5
# Texts filled in before priorities are rechecked.
FILLED_AT_ONCE = 512
NO_WORDS = WordVectors(hashes=numpy.zeros(0, numpy.uint32), rows=numpy.zeros((0, 1), numpy.float32))
SWITCHED_OFF = "embeddings are switched off"
REFUSED = (
    "{count:,} of the texts that the index was given are others than it asked for; they are not "
    "taken, and asked for again"
)


class _Question(Struct, frozen=True, kw_only=True):
    """The question of a load, its time limit and its deadline."""

    parts: tuple[str, ...]
    patience: float
    deadline: float
    among: Collection[bytes] | None
    # The embedder cannot read its script, so only words are searched.
    is_foreign: bool = False

    def is_hasty(self, missing: MissingTexts) -> bool:
        """Check whether too much is missing to embed all of it at once."""
        if self.deadline == inf or len(missing.digests) <= ROUND:
            return False
        among = self.among
        return among is None or sum(digest in among for digest in missing.digests) > ROUND


class SqliteIndex:
    """An `Index` in a separate file. Without an embedder, or if it cannot be loaded, chunks are
    found by their words alone."""

    def __init__(
        self,
        path: Path,
        embedder: Embedder | None,
        *,
        off: str = SWITCHED_OFF,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file = ChunkFile(path, now)
        self._embedder = embedder
        self._off = off
        # One batch at a time: two sessions do not both embed the same text, and a short load waits
        # for one batch of a long one, not for all of it.
        self._turn = anyio.Lock()
        self._recent: list[PreparedDocuments] = []
        self._questions = RememberedQuestions(embedder)
        # The guessed meanings of chunks, with the terms they are based on.
        self._sketches: tuple[Postings, ChunkSketches] | None = None

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> IndexedCorpus:
        """Return the documents, ready to be searched. New texts are embedded first, for as long as
        `patience` allows, starting with the digests in `among`; `texts` reads those for which the
        documents contain only digests. `progress` is called only if there is work to do."""
        maker = ChunkMaker(self._embedder, self._file, self._turn, progress, texts, patience, among)
        return await self._load(tuple(documents), maker, among, None)

    async def load_for(
        self,
        parts: Sequence[str],
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
        comparing: Progress | None = None,
    ) -> IndexedCorpus:
        """Return the documents, ready for a single question: see `GradualIndex`."""
        if self._embedder is None:
            # Indexing words takes almost no time.
            progress = None
        maker = ChunkMaker(
            self._embedder, self._file, self._turn, progress, texts, patience, among, comparing
        )
        patience = inf if patience is None else patience
        deadline = anyio.current_time() + patience
        question = _Question(parts=tuple(parts), patience=patience, deadline=deadline, among=among)
        return await self._load(tuple(documents), maker, among, question)

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = FILLED_AT_ONCE,
    ) -> int:
        """Embed some missing texts in the background: see `GradualIndex`."""
        if self._embedder is None:
            return 0
        filler = IndexFiller(self._embedder, self._file, self._turn)
        return await filler.fill(digests, texts, progress, most)

    async def write(self) -> tuple[int, Sequence[str]]:
        """Write pending rows; return how many the disk refused, and the reasons: see
        `StoredIndex`."""
        count = await anyio.to_thread.run_sync(self._file.write)
        return count, self._file.notes()

    def stats(self) -> IndexStats:
        """Return counts of the file's content. Blocks on the disk, like `clear`."""
        return self._file.stats()

    def clear(self) -> bool:
        """Delete everything; return False if the file could not be emptied (`notes` has the
        reason)."""
        self._recent.clear()
        self._questions.clear()
        self._sketches = None
        return self._file.clear()

    def notes(self) -> tuple[str, ...]:
        """Return problems with the file since the last call or load."""
        return self._file.notes()

    def close(self) -> None:
        """Close the file; the next load reopens it."""
        self._file.close()

    def _find(self, documents: tuple[Document, ...]) -> PreparedDocuments | None:
        """Find a previous load of the same documents. Identical objects are found at once;
        comparing 100,000 documents takes some milliseconds."""
        for prepared in self._recent:
            if prepared.documents is documents:
                return prepared
        for prepared in self._recent:
            if prepared.documents == documents:
                return replace(prepared, documents=documents)
        return None

    async def _load(
        self,
        documents: tuple[Document, ...],
        maker: ChunkMaker,
        among: Collection[bytes] | None,
        question: "_Question | None",
    ) -> IndexedCorpus:
        prepared, comparison = self._find(documents), None
        if question is not None and not await self._questions.reads_any(question.parts):
            question = replace(question, is_foreign=True)
        if prepared is None or prepared.missing_digests:
            try:
                prepared, comparison = await self._prepare(documents, prepared, maker, question)
            finally:
                self._file.write_later()
        self._remember(prepared)
        goal = prepared.texts if among is None else len(among)
        by_words = question is not None and question.is_foreign
        return self._corpus(prepared, maker, goal, among, comparison, by_words=by_words)

    async def _prepare(
        self,
        documents: tuple[Document, ...],
        before: PreparedDocuments | None,
        maker: ChunkMaker,
        question: "_Question | None",
    ) -> tuple[PreparedDocuments, Comparison | None]:
        others = tuple(self._recent) if before is None else (before,)
        arrangement, missing = await anyio.to_thread.run_sync(self._collect, documents, others)
        comparison: Comparison | None = None
        if question is not None and self._embedder is not None and question.is_hasty(missing):
            await maker.take_words(arrangement.table, missing)
            if not question.is_foreign:
                comparison = await self._compare(arrangement, question, maker)
        else:
            await maker.complete(arrangement.table, missing)
        if before is not None and not arrangement.table.has_changed:
            return before, comparison
        return await self._made_ready(arrangement), comparison

    async def _made_ready(self, arrangement: Arrangement) -> PreparedDocuments:
        embeds = self._embedder is not None
        return await anyio.to_thread.run_sync(lambda: prepare_documents(arrangement, embeds=embeds))

    async def _compare(
        self, arrangement: Arrangement, question: "_Question", maker: ChunkMaker
    ) -> Comparison | None:
        """Embed the chunks that look most like a question; return None if questions cannot be
        embedded."""
        prepared = await self._made_ready(arrangement)
        parts = tuple(part for part in question.parts if part.strip())
        try:
            vectors, _ = await self._questions.embed(parts)
            words = NO_WORDS
            if isinstance(self._embedder, WordEmbedder):
                words = await self._embedder.word_vectors()
        except ModelMissing as error:
            maker.missing_reason = str(error)
            return None
        known_parts = tuple(part for part in parts if part in vectors)
        if not known_parts:
            return None
        matrix = numpy.stack([vectors[part] for part in known_parts])
        comparison = await anyio.to_thread.run_sync(
            self._plan_comparison, prepared, known_parts, matrix, words, question.among
        )
        least_deadline = anyio.current_time() + EMBEDDING_SHARE * question.patience
        await comparison.run(maker, max(question.deadline, least_deadline))
        return comparison

    def _plan_comparison(
        self,
        prepared: PreparedDocuments,
        parts: tuple[str, ...],
        vectors: Matrix,
        words: WordVectors,
        among: Collection[bytes] | None,
    ) -> Comparison:
        table, columns = prepared.table, prepared.columns
        postings = table.postings
        if self._sketches is None or self._sketches[0] is not postings:
            self._sketches = (postings, sketch_chunks(postings, words))
        held = numpy.flatnonzero(columns >= 0)[::-1]
        documents = numpy.zeros(len(table), numpy.int64)
        documents[columns[held]] = prepared.layout.owner[held]
        rows = columns[held] if among is None else table.find(among)
        lexical = numpy.stack([prepared.lexicon.score(part) for part in parts])
        order = CandidateOrder(parts, lexical, self._sketches[1], documents)
        return Comparison(table, table.digests(), order, vectors, numpy.unique(rows[rows >= 0]))

    def _collect(
        self, documents: tuple[Document, ...], others: tuple[PreparedDocuments, ...]
    ) -> tuple[Arrangement, MissingTexts]:
        """Collect the known data about the chunks, from memory or disk, and find what is
        missing."""
        self._file.begin()
        embeds = self._embedder is not None
        arrangement = arrange_documents(documents, others)
        table = arrangement.table
        missing = find_missing_texts(arrangement, vectors=embeds)
        if not missing.digests:
            return arrangement, missing
        if self._embedder is not None:
            name = self._embedder.name
            self._file.fetch_batches(name, missing.digests, partial(table.put, settled=True))
        unknown_digests = [digest for digest in missing.digests if table.row(digest) < 0]
        self._file.fetch_batches(WORDS_ALONE, unknown_digests, partial(table.put, settled=False))
        if not table.has_changed:
            return arrangement, missing
        arrangement = refresh_rows(arrangement)
        return arrangement, find_missing_texts(arrangement, vectors=embeds)

    def _corpus(
        self,
        prepared: PreparedDocuments,
        maker: ChunkMaker,
        goal: int,
        among: Collection[bytes] | None,
        comparison: Comparison | None,
        *,
        by_words: bool,
    ) -> IndexedCorpus:
        late, only = maker.late_count, None
        if comparison is not None or by_words:
            late = (
                sum(digest in among for digest in prepared.missing_digests)
                if among
                else len(prepared.missing_digests)
            )
            if comparison is not None and late > MOSTLY_EMBEDDED * goal:
                only = prepared.table.is_settled | comparison.is_compared
        lexical = maker.missing_reason or ("" if self._embedder else self._off)
        failures = describe_failures(maker.failures.values())
        if not lexical and maker.failures and prepared.table.vectors is None:
            _, why = next(iter(maker.failures.values()))
            lexical = f"no text could be embedded: {why}"
        if not lexical and not by_words and only is None and late > MOSTLY_EMBEDDED * goal:
            lexical = f"{late:,} of {goal:,} passages are not embedded yet"
        warnings = self._file.notes()
        if maker.refused_count:
            warnings += (REFUSED.format(count=maker.refused_count),)
        way: Literal["words", "candidates", "meaning"] = "words" if by_words else "meaning"
        if late and comparison:
            way = "candidates"
        return IndexedCorpus(
            prepared,
            self._questions.embed if self._embedder else None,
            self._find_graph if self._embedder else None,
            lexical=lexical,
            failures=failures,
            warnings=warnings,
            counts=LoadCounts(
                new=maker.made_count,
                reused=max(0, prepared.texts - maker.made_count - len(maker.failures)),
                failed=len(maker.failures),
                missing=prepared.missing,
                late=late,
            ),
            tier=SearchTier(
                by=way,
                passages=goal,
                indexed=max(0, goal - late) if self._embedder else 0,
                compared=comparison.count if comparison else 0,
            ),
            only=only,
            measure_fluency=(
                self._embedder.fluency if isinstance(self._embedder, FluentEmbedder) else None
            ),
        )

    def _remember(self, prepared: PreparedDocuments) -> None:
        """Cache documents for the next turn, latest first, and drop those over the limit."""
        if self._recent and self._recent[0] is prepared:
            return
        others = (
            documents for documents in self._recent if documents.documents != prepared.documents
        )
        recent: list[PreparedDocuments] = []
        chunks = 0
        memories: set[int] = set()
        for other in (prepared, *others):
            chunks += 0 if other.table.memory in memories else len(other.table)
            memories.add(other.table.memory)
            if len(recent) < IN_USE or (chunks <= REMEMBERED_CHUNKS and len(recent) < REMEMBERED):
                recent.append(other)
        self._recent = recent

    async def _find_graph(
        self, prepared: PreparedDocuments, threshold: float, top: int
    ) -> SimilarityGraph:
        """Return the document graph: cached, stored, or newly built."""
        if (threshold, top) not in prepared.graphs:
            maker = self._embedder.name if self._embedder else ""
            graph = await anyio.to_thread.run_sync(
                find_graph, self._file, maker, prepared, threshold, top
            )
            prepared.graphs[threshold, top] = graph
        return prepared.graphs[threshold, top]
