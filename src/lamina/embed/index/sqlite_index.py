"""The index: what is known of chunks, from one session to the next.

Laws: a chunk is known by its text, so nothing is embedded twice, an edited item is embedded anew,
and all sessions and processes share. Results are stored batch by batch, so work that is interrupted
continues where it stopped. What cannot be embedded is found by its words, reported, and tried
again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from lamina.embed.index.arrangement import (
    Arrangement,
    MissingTexts,
    arrange_documents,
    find_missing_texts,
    refresh_rows,
)
from lamina.embed.index.chunk_file import ChunkFile, IndexStats
from lamina.embed.index.chunk_maker import WORDS_ALONE, ChunkMaker, describe_failures, embed_texts
from lamina.embed.index.chunk_table import unpack_vectors
from lamina.embed.index.corpus import (
    IndexedCorpus,
    LoadCounts,
    PreparedDocuments,
    QuestionVectors,
    prepare_documents,
)
from lamina.embed.index.similarity_graph import find_graph
from lamina.ports import Embedder, FluentEmbedder, Progress, ReadTexts
from lamina.selection.expansion import SimilarityGraph
from lamina.selection.scores import Matrix
from lamina.values.selection import Document

# How many chunks are remembered for the next turn. Passages with vectors take some 2.2 kB each, so
# 1.1 GB; without vectors a third of that. A workspace of 100,000 notes (300,000 passages) fits, and
# half as much beside it. Corpora that share their memory are counted once.
REMEMBERED_CHUNKS = 500_000
# How many corpora are remembered at most; and how many whatever their size: a large workspace is
# not read anew because a few tools were searched in between.
REMEMBERED, IN_USE = 8, 3
REMEMBERED_QUESTIONS = 512
# While more than this share is not embedded yet, everything is found by its words: otherwise what
# happens to have a vector would come before what has none.
MOSTLY_EMBEDDED = 0.1
SWITCHED_OFF = "embeddings are switched off"
REFUSED = (
    "{count:,} of the texts that the index was given are others than it asked for; they are not "
    "taken, and asked for again"
)


class SqliteIndex:
    """An `Index` in a file of its own. Without an embedder, or if it cannot be loaded, chunks are
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
        self._questions: OrderedDict[str, Matrix] = OrderedDict()

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> IndexedCorpus:
        """The documents, ready to be searched. What is new in them is embedded first, for as long
        as `patience` allows and beginning with the digests in `among`; `texts` is asked for what
        they hold only digests of. `progress` is called only if there is something to do."""
        documents = tuple(documents)
        maker = ChunkMaker(self._embedder, self._file, self._turn, progress, texts, patience, among)
        prepared = self._find(documents)
        if prepared is None or prepared.missing_digests:
            try:
                prepared = await self._prepare(documents, prepared, maker)
            finally:
                self._file.write_later()
        self._remember(prepared)
        return self._corpus(prepared, maker, prepared.texts if among is None else len(among))

    def stats(self) -> IndexStats:
        """What the file holds. Waits for the disk, as `clear` does."""
        return self._file.stats()

    def clear(self) -> bool:
        """Forgets everything; False if the file could not be emptied, for which `notes` has the
        reason."""
        self._recent.clear()
        self._questions.clear()
        return self._file.clear()

    def notes(self) -> tuple[str, ...]:
        """What went wrong with the file since the last call or load."""
        return self._file.notes()

    def close(self) -> None:
        """Closes the file; the next load opens it again."""
        self._file.close()

    def _find(self, documents: tuple[Document, ...]) -> PreparedDocuments | None:
        """The same documents as loaded before. Identical objects are found at once; comparing takes
        some milliseconds for 100,000 documents."""
        for prepared in self._recent:
            if prepared.documents is documents:
                return prepared
        for prepared in self._recent:
            if prepared.documents == documents:
                return replace(prepared, documents=documents)
        return None

    async def _prepare(
        self, documents: tuple[Document, ...], before: PreparedDocuments | None, maker: ChunkMaker
    ) -> PreparedDocuments:
        others = tuple(self._recent) if before is None else (before,)
        arrangement, missing = await anyio.to_thread.run_sync(self._collect, documents, others)
        await maker.complete(arrangement.table, missing)
        if before is not None and not arrangement.table.has_changed:
            return before
        embeds = self._embedder is not None
        return await anyio.to_thread.run_sync(lambda: prepare_documents(arrangement, embeds=embeds))

    def _collect(
        self, documents: tuple[Document, ...], others: tuple[PreparedDocuments, ...]
    ) -> tuple[Arrangement, MissingTexts]:
        """What is known of the chunks, in memory or on disk, and what is missing."""
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
        arrangement = refresh_rows(arrangement)
        return arrangement, find_missing_texts(arrangement, vectors=embeds)

    def _corpus(self, prepared: PreparedDocuments, maker: ChunkMaker, goal: int) -> IndexedCorpus:
        lexical = maker.missing_reason or ("" if self._embedder else self._off)
        failures = describe_failures(maker.failures.values())
        if not lexical and maker.failures and prepared.table.vectors is None:
            _, why = next(iter(maker.failures.values()))
            lexical = f"no text could be embedded: {why}"
        if not lexical and maker.late_count > MOSTLY_EMBEDDED * goal:
            lexical = f"{maker.late_count:,} of {goal:,} passages are not embedded yet"
        warnings = self._file.notes()
        if maker.refused_count:
            warnings += (REFUSED.format(count=maker.refused_count),)
        return IndexedCorpus(
            prepared,
            self._embed_questions if self._embedder else None,
            self._find_graph if self._embedder else None,
            lexical=lexical,
            failures=failures,
            warnings=warnings,
            counts=LoadCounts(
                new=maker.made_count,
                reused=prepared.texts - maker.made_count - len(maker.failures),
                failed=len(maker.failures),
                missing=prepared.missing,
                late=maker.late_count,
            ),
            measure_fluency=(
                self._embedder.fluency if isinstance(self._embedder, FluentEmbedder) else None
            ),
        )

    def _remember(self, prepared: PreparedDocuments) -> None:
        """Keeps documents for the next turn, the latest first, and drops what is too much."""
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

    async def _embed_questions(self, texts: Sequence[str]) -> QuestionVectors:
        """The vectors of questions; the latest ones are remembered."""
        new = [text for text in texts if text not in self._questions]
        failures: dict[str, str] = {}
        new_vectors: dict[str, bytes] = {}
        if new and self._embedder is not None:
            new_vectors, failures = await embed_texts(self._embedder, new)
        for text, vector in new_vectors.items():
            self._questions[text] = unpack_vectors([vector])[0]
        vectors = {text: self._questions[text] for text in texts if text in self._questions}
        for text in vectors:
            self._questions.move_to_end(text)
        while len(self._questions) > REMEMBERED_QUESTIONS:
            self._questions.popitem(last=False)
        return vectors, failures

    async def _find_graph(
        self, prepared: PreparedDocuments, threshold: float, top: int
    ) -> SimilarityGraph:
        """The graph of documents: remembered, stored, or built now."""
        if (threshold, top) not in prepared.graphs:
            maker = self._embedder.name if self._embedder else ""
            graph = await anyio.to_thread.run_sync(
                find_graph, self._file, maker, prepared, threshold, top
            )
            prepared.graphs[threshold, top] = graph
        return prepared.graphs[threshold, top]
