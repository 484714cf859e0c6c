"""Making what is missing of texts: terms and vectors, batch by batch.

Laws: every batch is kept before the next begins. A text that fails takes no other with it, and
nothing is kept of it that could be taken for a vector.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import anyio
import anyio.to_thread

from lamina.embed.index_file import ChunkFile, Made
from lamina.embed.index_shelf import Shelf, pack_vectors
from lamina.errors import ModelMissing
from lamina.ports import Embedder, Progress
from lamina.selection.lexical import pack_terms

# So many texts are made between two writes; two tenths of a second on a slow machine.
BATCH = 64
# Who made rows that have terms and no vector.
WORDS_ALONE = ""
NO_VECTOR = "the embedder gave no vector"


class Making:
    """One load's share of the work, and what came of it. `turn` is held for one batch at a time."""

    def __init__(
        self,
        embedder: Embedder | None,
        file: ChunkFile,
        turn: anyio.Lock,
        progress: Progress | None,
    ) -> None:
        self.made: set[str] = set()
        # Texts that could not be embedded, and why.
        self.failed: dict[str, str] = {}
        # Why there is no embedder after all.
        self.missing = ""
        self._embedder = embedder
        self._maker = embedder.name if embedder else WORDS_ALONE
        self._file = file
        self._turn = turn
        self._progress = progress
        # Once nothing of a batch could be embedded, it is not the texts: those of the next batches
        # are not tried one by one, until some can.
        self._singly = True

    async def complete(self, shelf: Shelf, embeds: bool, *, shared: bool) -> Shelf:
        """The shelf with what could be made of what it lacks; a copy of it, if it is shared and
        something could."""
        waiting = shelf.lacking(vectors=embeds)
        done, total = 0, len(waiting)
        while done < total:
            batch = waiting[done : done + BATCH]
            there = self._embedder is not None
            async with self._turn:
                made = await self._make(shelf, batch, done, total)
            if shared and made:
                shelf, shared = shelf.copy(), False
            shelf.put(made)
            done += len(batch)
            if there and self._embedder is None:
                # It is not there after all: what has its terms has all it can have.
                left = [text for text in waiting[done:] if shelf.terms_of(text) is None]
                waiting, done = waiting[: total - len(left)] + left, total - len(left)
            self._report(done, total)
        for text in self.made:
            if self._embedder is not None and text.strip() and not shelf.is_embedded(text):
                self.failed.setdefault(text, "its vector is of another length than the others")
        self.made -= self.failed.keys()
        return shelf

    async def _make(
        self, shelf: Shelf, batch: Sequence[str], done: int, total: int
    ) -> dict[str, Made]:
        """What could be made of a batch, kept already; with what another made meanwhile."""
        self._report(done, total)
        known: dict[str, Made] = {}
        if self._embedder is not None:
            known = await anyio.to_thread.run_sync(find_made, self._file, self._maker, batch)
        vectors = {text: each.vector for text, each in known.items() if each.vector}
        vectors |= await self._embed(
            [text for text in batch if text not in vectors and not shelf.is_embedded(text)],
            done,
            total,
        )
        return await anyio.to_thread.run_sync(self._keep, shelf, batch, known, vectors)

    async def _embed(self, texts: Sequence[str], done: int, total: int) -> dict[str, bytes]:
        texts = [text for text in texts if text.strip()]
        if self._embedder is None or not texts:
            return {}
        try:
            vectors, failed = await embed_texts(
                self._embedder,
                texts,
                lambda made, _: self._report(done + made, total),
                singly=self._singly,
            )
        except ModelMissing as error:
            self.missing = str(error)
            self._embedder = None
            return {}
        self._singly = bool(vectors)
        self.failed |= failed
        return vectors

    def _keep(
        self,
        shelf: Shelf,
        batch: Sequence[str],
        known: dict[str, Made],
        vectors: dict[str, bytes],
    ) -> dict[str, Made]:
        """Packs the terms that are unknown, and keeps what is new."""
        made: dict[str, Made] = {}
        for text in batch:
            terms = shelf.terms_of(text)
            if terms is None and text in known:
                terms = known[text].terms
            each = Made(vectors.get(text, b""), pack_terms(text) if terms is None else terms)
            if each.vector or shelf.terms_of(text) is None:
                made[text] = each
        new = {text: each for text, each in made.items() if known.get(text) != each}
        self.made |= new.keys()
        embedded = {text: each for text, each in new.items() if each.vector}
        for maker, rows in (
            (self._maker, embedded.keys()),
            (WORDS_ALONE, new.keys() - embedded.keys()),
        ):
            if rows:
                self._file.keep(maker, {digest_text(text): new[text] for text in rows})
        return made

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
    """Vectors as they are kept, and why some texts have none. What fails together is tried in
    halves, down to the texts that are to blame; unless not `singly`.

    Raises:
        ModelMissing: there is no model, whatever the texts.
    """
    try:
        packed = pack_vectors(await embedder.embed(texts, progress), len(texts))
    except ModelMissing:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the texts are found by their words
        why = f"{type(error).__name__}: {error}"
        if len(texts) == 1 or not singly:
            return {}, dict.fromkeys(texts, why)
        middle = len(texts) // 2
        vectors, failed = await embed_texts(embedder, texts[:middle])
        more_vectors, more_failed = await embed_texts(embedder, texts[middle:])
        return vectors | more_vectors, failed | more_failed
    pairs = list(zip(texts, packed, strict=True))
    return (
        {text: vector for text, vector in pairs if vector is not None},
        {text: NO_VECTOR for text, vector in pairs if vector is None},
    )


def find_made(file: ChunkFile, maker: str, texts: Iterable[str]) -> dict[str, Made]:
    """What the file has of texts."""
    digests = {digest_text(text): text for text in texts}
    return {digests[key]: made for key, made in file.fetch(maker, digests).items()}


def digest_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def describe_failed(failed: Mapping[str, str]) -> tuple[str, ...]:
    """What could not be embedded, each text by its beginning, and why."""
    return tuple(f"{_shown(text)} cannot be embedded: {why}" for text, why in failed.items())


def _shown(text: str) -> str:
    line = " ".join(text[:200].split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")
