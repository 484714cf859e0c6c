"""Embeds an index's missing texts in the background.

Laws: texts are embedded one at a time, on one thread, for at most a fixed share of the time; loads
take precedence. Filling may be stopped at any moment and keeps its results. If several fillers want
to fill an index, in this process or others, one works and the others wait until it is done.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.adapters.embed.index.chunk_file import ChunkData, ChunkFile
from lamina.adapters.embed.index.chunk_maker import embed_texts
from lamina.adapters.embed.index.chunk_table import digest_text
from lamina.adapters.files.locks import lock_file
from lamina.core.ports import Embedder, Progress, ReadTexts
from lamina.core.selection.lexicon import pack_texts
from lamina.errors import ModelMissing

# The share of time spent working: on two cores this leaves three quarters of the machine free.
SHARE = 0.5
# Texts embedded between two writes.
BATCH = 16
# Seconds between checks whether another filler is done.
POLL_S = 2.0
LOCK = "{}.filling"


class IndexFiller:
    """A background filler for one index. `turn` is locked for one text at a time."""

    def __init__(
        self, embedder: Embedder, file: ChunkFile, turn: anyio.Lock, *, share: float = SHARE
    ) -> None:
        self._embedder = embedder
        self._file = file
        self._turn = turn
        self._share = share

    async def fill(
        self, digests: Sequence[bytes], read_texts: ReadTexts, progress: Progress | None, limit: int
    ) -> int:
        """Embed up to `limit` texts that are not embedded yet, in the given order; return how many.
        `progress` receives the number of embedded texts and the total."""
        async with _only_one(self._file.path):
            name = self._embedder.name
            known = await anyio.to_thread.run_sync(self._file.find_known, name, digests)
            unknown = [digest for digest in dict.fromkeys(digests) if digest not in known]
            total, made_count = len(known) + len(unknown), 0
            missing = unknown[:limit]
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                try:
                    made_count += await self._fill_batch(await read_texts(batch), {*batch})
                except ModelMissing:
                    return made_count
                if progress is not None:
                    progress(min(total, len(known) + made_count), total)
            return made_count

    async def _fill_batch(self, texts: Mapping[bytes, str], wanted: set[bytes]) -> int:
        made: dict[bytes, tuple[str, bytes]] = {}
        try:
            for digest, text in texts.items():
                if digest not in wanted or digest_text(text) != digest:
                    continue
                start_time = anyio.current_time()
                vectors: dict[str, bytes] = {}
                if text.strip():
                    async with self._turn:
                        vectors, _ = await embed_texts(self._embedder, [text])
                # A blank text is stored without a vector.
                if text in vectors or not text.strip():
                    made[digest] = (text, vectors.get(text, b""))
                busy_s = anyio.current_time() - start_time
                await anyio.sleep(busy_s * (1 / self._share - 1))
        finally:
            if made:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._keep, made)
        return len(made)

    def _keep(self, made: Mapping[bytes, tuple[str, bytes]]) -> None:
        packed = pack_texts([text for text, _ in made.values()])
        self._file.keep(
            self._embedder.name,
            {
                digest: ChunkData(vector, terms)
                for (digest, (_, vector)), terms in zip(made.items(), packed, strict=True)
            },
        )


@asynccontextmanager
async def _only_one(path: Path) -> AsyncIterator[None]:
    """Wait until no other filler is working on the index at `path`; a process that ends releases
    it."""
    with ExitStack() as stack:
        # On a read-only disk, results stay in memory; without locks, two processes may do the same
        # work.
        with suppress(OSError):
            handle = os.open(LOCK.format(path), os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, handle)
            # Nothing signals that another process is done.
            while not lock_file(handle):  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
        yield
