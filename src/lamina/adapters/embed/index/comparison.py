"""Embeds what looks most like a question where there is no time for all.

Laws: it goes in rounds, each of which guesses better by what the one before found out. It ends when
rounds find nothing better, when it had its number or its time. Whatever is embedded is kept, and
not embedded again.
"""

from collections.abc import Sequence

import anyio
import anyio.to_thread
import numpy
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_maker import ChunkMaker
from lamina.adapters.embed.index.chunk_table import ChunkTable
from lamina.core.selection.rough_meaning import CandidateOrder
from lamina.core.selection.scores import Indices, Matrix

# How many chunks are compared with a question at most, those that were embedded before included,
# and how many a round takes. With fewer, less of what a complete index finds is found:
# `bench/first_search.py`.
MOST_COMPARED = 768
ROUND = 128
# After so many rounds in a row that bring nothing new to the best ones, enough was seen.
QUIET_ROUNDS, BEST = 3, 10


class Comparison:
    """One question with the chunks of a table. `digests` are the texts of its rows, of which
    `rows` may be found; `questions` has a vector for each part."""

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
        # What is few enough is embedded whole, the most promising first.
        self._takes_all = len(unsettled) <= MOST_COMPARED
        self._rows = unsettled if self._takes_all else rows
        # The rows that were tried, whether or not they could be embedded.
        self.is_compared: NDArray[numpy.bool_] = numpy.zeros(len(digests), bool)

    @property
    def count(self) -> int:
        return int(self.is_compared.sum())

    async def run(self, maker: ChunkMaker, deadline: float) -> None:
        """Embeds until `deadline`, and one batch in any case."""
        total = min(MOST_COMPARED, len(self._rows))
        try:
            await self._run(maker, deadline, total)
        finally:
            maker.end_comparison(total)

    async def _run(self, maker: ChunkMaker, deadline: float, total: int) -> None:
        bar, quiet_rounds = -numpy.inf, 0
        while (quiet_rounds < QUIET_ROUNDS or self._takes_all) and self.count < MOST_COMPARED:
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
        return self._order.best(left, min(ROUND, MOST_COMPARED - self.count))

    def _learn(self) -> float:
        """Guesses anew with what is embedded; returns the fit of the last of the best."""
        vectors = self._table.vectors
        if vectors is None:
            return -numpy.inf
        rows = numpy.flatnonzero(self.is_compared & self._table.is_embedded)
        cosine = self._questions @ vectors[rows].T
        fits = self._order.learn(rows, cosine)
        if len(fits) < BEST:
            return -numpy.inf
        return float(numpy.partition(fits, -BEST)[-BEST])
