"""The one index: what is known of chunks, from one session to the next.

Laws: a chunk is known by its text, so nothing is embedded twice, an edited item is made anew and
all sessions and processes share. What was made is kept at once, batch by batch: whoever stops does
not begin anew. What cannot be embedded is found by its words, said, and tried again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.embed.index_corpus import Asked, Counts, IndexedCorpus, Standing, grow, mended, stand
from lamina.embed.index_file import ChunkFile, Stats
from lamina.embed.index_graph import find_graph
from lamina.embed.index_making import WORDS_ALONE, Making, describe_failed, embed_texts, find_made
from lamina.embed.index_shelf import Shelf, unpack_vectors
from lamina.ports import Embedder, Progress
from lamina.selection.expanding import Graph
from lamina.selection.lexical import Lexicon
from lamina.selection.scoring import Matrix
from lamina.values.selection import Document

# Corpora are remembered for the next turn while they come to so many chunks (1.5 kB each).
REMEMBERED_CHUNKS = 200_000
REMEMBERED_QUESTIONS = 512
SWITCHED_OFF = "embeddings are switched off"


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
        self._remembered: OrderedDict[tuple[Document, ...], Standing] = OrderedDict()
        self._questions: OrderedDict[str, Matrix] = OrderedDict()

    async def load(
        self, documents: Sequence[Document], progress: Progress | None = None
    ) -> IndexedCorpus:
        """The documents, ready to be searched; what is new of them is embedded first. `progress`
        is told only if there is something to make."""
        wanted = tuple(documents)
        making = Making(self._embedder, self._file, self._turn, progress)
        standing = self._remembered.get(wanted)
        if standing is None or standing.lacking:
            standing = await self._stand(wanted, standing, making)
        self._remember(standing)
        return self._corpus(standing, making)

    def stats(self) -> Stats:
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

    async def _stand(
        self, documents: tuple[Document, ...], before: Standing | None, making: Making
    ) -> Standing:
        await anyio.to_thread.run_sync(self._file.begin)
        embeds = self._embedder is not None
        if before is not None:
            made = await making.complete(before.shelf, embeds, shared=True)
            if made is before.shelf:
                return before
            return await anyio.to_thread.run_sync(mended, before, made, embeds)
        remembered = tuple(reversed(self._remembered.values()))
        shelf, lexicon = await anyio.to_thread.run_sync(self._collect, documents, remembered)
        made = await making.complete(shelf, embeds, shared=False)
        return await anyio.to_thread.run_sync(stand, documents, made, lexicon, embeds)

    def _collect(
        self, documents: tuple[Document, ...], remembered: tuple[Standing, ...]
    ) -> tuple[Shelf, Lexicon | None]:
        """What is known of the chunks, in memory or on the disk; with the lexicon of the shelf that
        this one grew from."""
        texts = dict.fromkeys(chunk for document in documents for chunk in document.chunks)
        shelf, lexicon = grow(texts, remembered) or (Shelf(texts), None)
        embeds = self._embedder is not None
        for standing in remembered:
            if not shelf.lacking(vectors=embeds):
                return shelf, lexicon
            shelf.take_over(standing.shelf)
        if self._embedder is not None:
            shelf.put(find_made(self._file, self._embedder.name, shelf.lacking(vectors=True)))
        shelf.put(find_made(self._file, WORDS_ALONE, shelf.lacking(vectors=False)))
        return shelf, lexicon

    def _corpus(self, standing: Standing, making: Making) -> IndexedCorpus:
        lexical = making.missing or ("" if self._embedder else self._off)
        failed = describe_failed(making.failed)
        if not lexical and making.failed and not standing.shelf.embedded.any():
            lexical = f"no text could be embedded: {next(iter(making.failed.values()))}"
        made = len(making.made)
        return IndexedCorpus(
            standing,
            self._ask if self._embedder else None,
            self._relate if self._embedder else None,
            lexical=lexical,
            failed=failed,
            warnings=self._file.notes(),
            counts=Counts(
                new=made,
                reused=standing.texts - made - len(making.failed),
                failed=len(making.failed),
            ),
        )

    def _remember(self, standing: Standing) -> None:
        self._remembered.pop(standing.documents, None)
        self._remembered[standing.documents] = standing
        chunks = 0
        for documents, each in reversed(tuple(self._remembered.items())):
            chunks += len(each.shelf)
            if chunks > REMEMBERED_CHUNKS and each is not standing:
                del self._remembered[documents]

    async def _ask(self, texts: Sequence[str]) -> Asked:
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

    async def _relate(self, standing: Standing, threshold: float, top: int) -> Graph:
        """The graph of documents: remembered, kept, or built now and then kept."""
        if (threshold, top) not in standing.graphs:
            maker = self._embedder.name if self._embedder else ""
            graph = await anyio.to_thread.run_sync(
                find_graph, self._file, maker, standing, threshold, top
            )
            standing.graphs[threshold, top] = graph
        return standing.graphs[threshold, top]
