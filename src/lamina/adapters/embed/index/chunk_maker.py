"""Computes missing terms and vectors in batches; if time is short, texts that look most like the
question come first.

Laws: every batch is stored before the next begins, and its texts are requested only when it begins;
terms of many texts, which take almost no time, are written after the load. A text that fails
affects no other, and leaves nothing that could be mistaken for a vector. A text whose digest
differs from the requested one is refused. Texts with known terms are not requested while only terms
are needed. If time is short, work proceeds in rounds, each with better guesses based on the
previous results, until rounds find nothing better or the limit of texts or time is reached.
Embedded texts are stored, and not embedded again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import anyio
import anyio.to_thread
import numpy
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_file import ChunkData, ChunkFile
from lamina.adapters.embed.index.chunk_table import (
    ChunkTable,
    MissingTexts,
    digest_text,
    pack_vectors,
)
from lamina.core.ports import Embedder, KnownTerms, Progress, ReadTexts
from lamina.core.selection.lexicon import pack_texts
from lamina.core.selection.rough_meaning import CandidateOrder
from lamina.core.selection.scores import Indices, Matrix
from lamina.errors import ModelMissing

# Texts embedded between two writes: 0.2 seconds on a slow machine.
BATCH = 64
# The same if only words are indexed, which is faster.
WORDS_BATCH = 2048
# With at least this many texts in a load, their terms are written after the answer.
MANY_WORDS = 1024
# The maker of rows with terms but no vector.
WORDS_ALONE = ""
# The share of the time after which embedding that will not finish in time is abandoned.
HOPELESS = 0.2
NO_VECTOR = "the embedder gave no vector"
OTHER_LENGTH = "its vector is of another length than the others"


class ChunkMaker:
    """The work of one load, and its outcome. `turn` is locked for one batch at a time; `read_texts`
    reads texts that are not in memory; embedding stops after `patience` seconds, or sooner if it
    would not finish in time. Texts with digests in `among` come first, and only they are waited
    for. `progress` receives the number of processed texts, `comparing` the number of those that
    look most like a question."""

    def __init__(
        self,
        embedder: Embedder | None,
        file: ChunkFile,
        turn: anyio.Lock,
        progress: Progress | None,
        read_texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
        comparing: Progress | None = None,
    ) -> None:
        # The number of processed texts, and of texts received in place of requested ones.
        self.made_count = 0
        self.refused_count = 0
        # Texts that could not be embedded: their beginnings, and the reasons.
        self.failures: dict[bytes, tuple[str, str]] = {}
        # The reason why the embedder is missing.
        self.missing_reason = ""
        # Texts skipped for lack of time: later loads embed them.
        self.late_count = 0
        self._patience = patience
        self._among = among
        self._embedder = embedder
        self._maker = embedder.name if embedder else WORDS_ALONE
        self._file = file
        self._turn = turn
        self._progress = progress
        self._comparing = comparing
        self._read_texts = read_texts
        self._at_hand: Mapping[bytes, str] = {}
        # If a whole batch could not be embedded, the texts are not the cause: those in the next
        # batches are not tried one by one until some can be embedded.
        self._tries_singly = True
        self._takes_many_words = False

    async def complete(self, table: ChunkTable, missing: MissingTexts) -> None:
        """Fill the table with the terms and vectors of the missing texts."""
        self._at_hand = missing.at_hand
        waiting = missing.digests
        if self._read_texts is None:
            waiting = tuple(digest for digest in waiting if digest in missing.at_hand)
        goal = len(waiting)
        if (among := self._among) is not None:
            waiting = tuple(sorted(waiting, key=lambda digest: digest not in among))
            goal = sum(digest in among for digest in waiting)
        self._takes_many_words = len(waiting) >= MANY_WORDS
        total, start = len(waiting), 0
        start_time = anyio.current_time()
        while start < len(waiting):
            has_embedder = self._embedder is not None
            if has_embedder and start and self._is_too_long(start_time, start, goal):
                # For the rest, only words are indexed, which takes seconds.
                self.late_count = max(0, goal - start)
                self._embedder = None
                waiting = tuple(digest for digest in waiting[start:] if table.row(digest) < 0)
                start = 0
                continue
            batch = waiting[start : start + (BATCH if has_embedder else WORDS_BATCH)]
            done = total - len(waiting) + start
            async with self._turn:
                await self._make(table, batch, done, total)
            start += len(batch)
            if has_embedder and self._embedder is None:
                # The embedder is missing after all: texts with terms are complete.
                waiting = tuple(digest for digest in waiting[start:] if table.row(digest) < 0)
                start = 0
            self._report(total - len(waiting) + start, total)
        if total:
            self._report(total, total)

    async def take_words(self, table: ChunkTable, missing: MissingTexts) -> None:
        """Add the terms of unknown texts to the table, and leave vectors for later. This is too
        fast to report progress."""
        self._at_hand = missing.at_hand
        embedder, self._embedder = self._embedder, None
        progress, self._progress = self._progress, None
        try:
            waiting = tuple(
                digest
                for digest in missing.digests
                if table.row(digest) < 0 and (self._read_texts or digest in missing.at_hand)
            )
            self._takes_many_words = len(waiting) >= MANY_WORDS
            for start in range(0, len(waiting), WORDS_BATCH):
                async with self._turn:
                    batch = waiting[start : start + WORDS_BATCH]
                    await self._make(table, batch, start, len(waiting))
        finally:
            self._embedder, self._progress = embedder, progress

    async def embed_some(
        self, table: ChunkTable, digests: Sequence[bytes], deadline: float, done: int, total: int
    ) -> bool:
        """Embed texts until `deadline`, at least one batch; return whether there was time for all.
        `done` of `total` are reported as already done."""
        progress, self._progress = self._progress, self._comparing
        try:
            for start in range(0, len(digests), BATCH):
                if (start or done) and anyio.current_time() > deadline:
                    return False
                async with self._turn:
                    await self._make(table, digests[start : start + BATCH], done + start, total)
                if self._embedder is None:
                    return False
            return True
        finally:
            self._progress = progress

    def end_comparison(self, total: int) -> None:
        """Report that embedding for a question has ended, however much was done."""
        if self._comparing is not None:
            self._comparing(total, total)

    def _is_too_long(self, start_time: float, done: int, goal: int) -> bool:
        """Decide whether to leave the rest for later, because it is not needed now or would take
        too long."""
        if self._patience is None:
            return False
        elapsed = anyio.current_time() - start_time
        if elapsed > self._patience or done >= goal:
            return True
        return elapsed > HOPELESS * self._patience and elapsed / done * goal > self._patience

    async def _make(self, table: ChunkTable, batch: Sequence[bytes], done: int, total: int) -> None:
        """Process a batch and store the result, reusing rows that another process has just
        added."""
        self._report(done, total)
        rows: dict[bytes, ChunkData] = {}
        if self._embedder is not None:
            rows = await anyio.to_thread.run_sync(self._file.fetch, self._maker, batch)
        # Rows with terms in an outdated format still have a vector.
        full_rows = {digest: row for digest, row in rows.items() if row.terms is not None}
        unknown_digests = [digest for digest in batch if digest not in full_rows]
        terms: Mapping[bytes, bytes] = {}
        if self._embedder is None and isinstance(self._read_texts, KnownTerms):
            terms = self._read_texts.take_terms(unknown_digests)
        texts = await self._find_texts([d for d in unknown_digests if d not in terms])
        vectors = {digest: rows[digest].vector for digest in texts if digest in rows}
        vectors |= await self._embed(
            {digest: text for digest, text in texts.items() if digest not in rows}, done, total
        )
        await anyio.to_thread.run_sync(self._keep, table, full_rows, texts, vectors, terms)

    async def _find_texts(self, digests: Sequence[bytes]) -> dict[bytes, str]:
        """Return texts that are in memory, and those that can be requested."""
        texts = {digest: self._at_hand[digest] for digest in digests if digest in self._at_hand}
        others = [digest for digest in digests if digest not in texts]
        if self._read_texts is None or not others:
            return texts
        answers = await self._read_texts(others)
        for digest in others:
            if (text := answers.get(digest)) is None:
                continue
            if digest_text(text) == digest:
                texts[digest] = text
            else:
                self.refused_count += 1
        return texts

    async def _embed(self, texts: Mapping[bytes, str], done: int, total: int) -> dict[bytes, bytes]:
        digests = {text: digest for digest, text in texts.items() if text.strip()}
        if self._embedder is None or not digests:
            return {}
        try:
            vectors, failures = await embed_texts(
                self._embedder,
                tuple(digests),
                lambda made_count, _: self._report(done + made_count, total),
                singly=self._tries_singly,
            )
        except ModelMissing as error:
            self.missing_reason = str(error)
            self._embedder = None
            return {}
        self._tries_singly = bool(vectors)
        for text, why in failures.items():
            self.failures[digests[text]] = (quote_beginning(text), why)
        return {digests[text]: vector for text, vector in vectors.items()}

    def _keep(
        self,
        table: ChunkTable,
        full_rows: Mapping[bytes, ChunkData],
        texts: Mapping[bytes, str],
        vectors: Mapping[bytes, bytes],
        terms: Mapping[bytes, bytes],
    ) -> None:
        """Pack terms, store new rows, and add everything to the table. Texts with known `terms`
        have no vector yet."""
        settled_rows: dict[bytes, ChunkData] = {}
        bare_rows = {
            digest: ChunkData(b"", packed)
            for digest, packed in terms.items()
            if table.row(digest) < 0
        }
        packs = pack_texts(list(texts.values()))
        for (digest, text), packed in zip(texts.items(), packs, strict=True):
            vector = vectors.get(digest, b"")
            # Blank texts have no vector, and are stored as such.
            if vector or (self._embedder is not None and not text.strip()):
                settled_rows[digest] = ChunkData(vector, packed)
            elif table.row(digest) < 0:
                bare_rows[digest] = ChunkData(b"", packed)
        for maker, rows in ((self._maker, settled_rows), (WORDS_ALONE, bare_rows)):
            if rows:
                # Many terms: recomputing them takes less time than writing them.
                is_later = maker == WORDS_ALONE and self._takes_many_words
                self._file.keep(maker, rows, later=is_later)
        table.put(bare_rows, settled=False)
        unfit = table.put({**full_rows, **settled_rows}, settled=True)
        for digest in unfit:
            self.failures[digest] = (quote_beginning(texts.get(digest, digest.hex())), OTHER_LENGTH)
        self.made_count += len((settled_rows | bare_rows).keys() - self.failures.keys())

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


async def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    progress: Progress | None = None,
    *,
    singly: bool = True,
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return vectors in stored format, and the reasons why some texts have none. Texts that fail
    together are retried in halves until the culprits are found, unless `singly` is false.

    Raises:
        ModelMissing: the model is missing.
    """
    try:
        packed_vectors = pack_vectors(await embedder.embed(texts, progress), len(texts))
    except ModelMissing:
        raise
    except Exception as error:  # noqa: BLE001 - the texts can still be found by their words
        why = f"{type(error).__name__}: {error}"
        if len(texts) == 1 or not singly:
            return {}, dict.fromkeys(texts, why)
        middle = len(texts) // 2
        vectors, failures = await embed_texts(embedder, texts[:middle])
        more_vectors, more_failures = await embed_texts(embedder, texts[middle:])
        return vectors | more_vectors, failures | more_failures
    pairs = list(zip(texts, packed_vectors, strict=True))
    return (
        {text: vector for text, vector in pairs if vector is not None},
        {text: NO_VECTOR for text, vector in pairs if vector is None},
    )


def describe_failures(failures: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Describe the texts that could not be embedded, by their beginnings, with the reasons."""
    return tuple(f"{beginning} cannot be embedded: {why}" for beginning, why in failures)


def quote_beginning(text: str) -> str:
    """Return a text's beginning on one line."""
    line = " ".join(text[:200].split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")


# The maximum number of chunks compared with a question, including those already embedded, and the
# maximum per round. Lower limits miss more of a complete index's results: `bench/first_search.py`.
MAX_COMPARED = 768
ROUND = 128
# Stop after this many consecutive rounds with no new chunk among the best.
QUIET_ROUNDS, BEST = 3, 10


class Comparison:
    """The comparison of one question with a table's chunks. `digests` identify the texts of its
    rows, of which `rows` may be found; `questions` has a vector for each part."""

    def __init__(
        self,
        table: ChunkTable,
        digests: Sequence[bytes],
        order: CandidateOrder,
        questions: Matrix,
        rows: Indices,
    ) -> None:
        self._table = table
        self._digests = digests
        self._order = order
        self._questions = questions
        unsettled = rows[~table.is_settled[rows]]
        # If there are few enough, all are embedded, most promising first.
        self._takes_all = len(unsettled) <= MAX_COMPARED
        self._rows = unsettled if self._takes_all else rows
        # The rows tried, whether or not they could be embedded.
        self.is_compared: NDArray[numpy.bool_] = numpy.zeros(len(digests), bool)

    @property
    def count(self) -> int:
        return int(self.is_compared.sum())

    async def run(self, maker: ChunkMaker, deadline: float) -> None:
        """Embed until `deadline`, at least one batch."""
        total = min(MAX_COMPARED, len(self._rows))
        try:
            await self._run(maker, deadline, total)
        finally:
            maker.end_comparison(total)

    async def _run(self, maker: ChunkMaker, deadline: float, total: int) -> None:
        bar, quiet_rounds = -numpy.inf, 0
        while (quiet_rounds < QUIET_ROUNDS or self._takes_all) and self.count < MAX_COMPARED:
            some = await anyio.to_thread.run_sync(self._choose)
            if not len(some):
                return
            missing = [
                self._digests[row] for row in some.tolist() if not self._table.is_settled[row]
            ]
            is_in_time = await maker.embed_some(self._table, missing, deadline, self.count, total)
            if not is_in_time:
                self.is_compared[some[self._table.is_settled[some]]] = True
                return
            self.is_compared[some] = True
            new_bar = await anyio.to_thread.run_sync(self._learn)
            quiet_rounds = quiet_rounds + 1 if new_bar <= bar else 0
            bar = max(bar, new_bar)

    def _choose(self) -> Indices:
        left = self._rows[~self.is_compared[self._rows]]
        return self._order.best(left, min(ROUND, MAX_COMPARED - self.count))

    def _learn(self) -> float:
        """Update the guesses from the embedded chunks; return the score of the last of the best."""
        vectors = self._table.vectors
        if vectors is None:
            return -numpy.inf
        rows = numpy.flatnonzero(self.is_compared & self._table.is_embedded)
        cosine = self._questions @ vectors[rows].T
        fits = self._order.learn(rows, cosine)
        if len(fits) < BEST:
            return -numpy.inf
        return float(numpy.partition(fits, -BEST)[-BEST])
