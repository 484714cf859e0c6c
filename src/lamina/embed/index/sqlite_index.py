"""The one index: what is known of chunks, from one session to the next.

Laws: a chunk is known by its text, so nothing is embedded twice, an edited item is made anew and
all sessions and processes share. What was made is kept at once, batch by batch: whoever stops does
not begin anew. What cannot be embedded is found by its words, said, and tried again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
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
from lamina.ports import Embedder, Progress, ReadTexts
from lamina.selection.expansion import SimilarityGraph
from lamina.selection.scores import Matrix
from lamina.values.selection import Document

# Corpora are remembered for the next turn while they come to so many chunks: of passages with
# vectors some 2.2 kB each, so 1.1 GB; without vectors a third of it. A workspace of 100,000 notes
# (300,000 passages) fits, and half as much beside it. What shares its memory is counted once.
REMEMBERED_CHUNKS = 500_000
# Not more than so many of them; and so many whatever their size: a large workspace is not read anew
# because a few tools were searched in between.
REMEMBERED, IN_USE = 8, 3
REMEMBERED_QUESTIONS = 512
# While more than this share waits to be embedded, all are found by their words: else what happens
# to have a vector would stand in front of what has none.
MOSTLY_EMBEDDED = 0.1
SWITCHED_OFF = "embeddings are switched off"
REFUSED = (
    "{count:,} of the texts that the index was given are others than it asked for; they are not "
    "taken, and asked for again"
)


class SqliteIndex:
    """An `Index` in a file of its own. Without an embedder, or while it cannot be loaded, chunks
    are found by their words alone."""

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
        # One batch at a time: two sessions that want the same do not both make it, and a short
        # load waits for one batch of a long one, not for all of it.
        self._turn = anyio.Lock()
        self._remembered: list[PreparedDocuments] = []
        self._questions: OrderedDict[str, Matrix] = OrderedDict()

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> IndexedCorpus:
        """The documents, ready to be searched; what is new of them is embedded first, for as long
        as `patience` says and those `among` these digests first, and `texts` asked for what they
        hold only digests of. `progress` is told only if there is something to make."""
        wanted = tuple(documents)
        making = ChunkMaker(
            self._embedder, self._file, self._turn, progress, texts, patience, among
        )
        standing = self._find(wanted)
        if standing is None or standing.lacking:
            standing = await self._stand(wanted, standing, making)
        self._remember(standing)
        return self._corpus(standing, making, standing.texts if among is None else len(among))

    def stats(self) -> IndexStats:
        """What the file holds; waits for the disk, as `clear` does."""
        return self._file.stats()

    def clear(self) -> bool:
        """Forgets everything; False if the file could not be emptied, and `notes` says why."""
        self._remembered.clear()
        self._questions.clear()
        return self._file.clear()

    def notes(self) -> tuple[str, ...]:
        """What went wrong with the file since this, or a load, last told."""
        return self._file.notes()

    def close(self) -> None:
        """Closes the file; whoever loads again opens it again."""
        self._file.close()

    def _find(self, documents: tuple[Document, ...]) -> PreparedDocuments | None:
        """The same documents as they were loaded before. Those that are the very same are found at
        once; to compare them all takes some milliseconds for 100,000 of them."""
        for standing in self._remembered:
            if standing.documents is documents:
                return standing
        for standing in self._remembered:
            if standing.documents == documents:
                return replace(standing, documents=documents)
        return None

    async def _stand(
        self, documents: tuple[Document, ...], before: PreparedDocuments | None, making: ChunkMaker
    ) -> PreparedDocuments:
        others = tuple(self._remembered) if before is None else (before,)
        arranged, lacking = await anyio.to_thread.run_sync(self._collect, documents, others)
        await making.complete(arranged.shelf, lacking)
        if before is not None and not arranged.shelf.changed:
            return before
        embeds = self._embedder is not None
        return await anyio.to_thread.run_sync(lambda: prepare_documents(arranged, embeds=embeds))

    def _collect(
        self, documents: tuple[Document, ...], others: tuple[PreparedDocuments, ...]
    ) -> tuple[Arrangement, MissingTexts]:
        """What is known of the chunks, in memory or on the disk; and what is not."""
        self._file.begin()
        embeds = self._embedder is not None
        arranged = arrange_documents(documents, others)
        shelf = arranged.shelf
        lacking = find_missing_texts(arranged, vectors=embeds)
        if not lacking.digests:
            return arranged, lacking
        if self._embedder is not None:
            name = self._embedder.name
            self._file.fetch_each(name, lacking.digests, lambda made: shelf.put(made, settled=True))
        unknown = [digest for digest in lacking.digests if shelf.row(digest) < 0]
        self._file.fetch_each(WORDS_ALONE, unknown, lambda made: shelf.put(made, settled=False))
        arranged = refresh_rows(arranged)
        return arranged, find_missing_texts(arranged, vectors=embeds)

    def _corpus(
        self, standing: PreparedDocuments, making: ChunkMaker, wanted: int
    ) -> IndexedCorpus:
        lexical = making.missing or ("" if self._embedder else self._off)
        failed = describe_failures(making.failed.values())
        if not lexical and making.failed and standing.shelf.vectors is None:
            _, why = next(iter(making.failed.values()))
            lexical = f"no text could be embedded: {why}"
        if not lexical and making.late > MOSTLY_EMBEDDED * wanted:
            lexical = f"{making.late:,} of {wanted:,} passages are not embedded yet"
        warnings = self._file.notes()
        if making.refused:
            warnings += (REFUSED.format(count=making.refused),)
        return IndexedCorpus(
            standing,
            self._ask if self._embedder else None,
            self._relate if self._embedder else None,
            lexical=lexical,
            failed=failed,
            warnings=warnings,
            counts=LoadCounts(
                new=making.made,
                reused=standing.texts - making.made - len(making.failed),
                failed=len(making.failed),
                missing=standing.missing,
                late=making.late,
            ),
        )

    def _remember(self, standing: PreparedDocuments) -> None:
        """Keeps it for the next turn, the last one first, and lets go of what is too much."""
        if self._remembered and self._remembered[0] is standing:
            return
        others = (
            documents for documents in self._remembered if documents.documents != standing.documents
        )
        kept: list[PreparedDocuments] = []
        chunks = 0
        held: set[int] = set()
        for other in (standing, *others):
            chunks += 0 if other.shelf.memory in held else len(other.shelf)
            held.add(other.shelf.memory)
            if len(kept) < IN_USE or (chunks <= REMEMBERED_CHUNKS and len(kept) < REMEMBERED):
                kept.append(other)
        self._remembered = kept

    async def _ask(self, texts: Sequence[str]) -> QuestionVectors:
        """The vectors of questions; those of the last ones are remembered."""
        new = [text for text in texts if text not in self._questions]
        failed: dict[str, str] = {}
        made: dict[str, bytes] = {}
        if new and self._embedder is not None:
            made, failed = await embed_texts(self._embedder, new)
        for text, vector in made.items():
            self._questions[text] = unpack_vectors([vector])[0]
        found = {text: self._questions[text] for text in texts if text in self._questions}
        for text in found:
            self._questions.move_to_end(text)
        while len(self._questions) > REMEMBERED_QUESTIONS:
            self._questions.popitem(last=False)
        return found, failed

    async def _relate(
        self, standing: PreparedDocuments, threshold: float, top: int
    ) -> SimilarityGraph:
        """The graph of documents: remembered, kept, or built now and then kept."""
        if (threshold, top) not in standing.graphs:
            maker = self._embedder.name if self._embedder else ""
            graph = await anyio.to_thread.run_sync(
                find_graph, self._file, maker, standing, threshold, top
            )
            standing.graphs[threshold, top] = graph
        return standing.graphs[threshold, top]
