"""Documents that are ready to be searched.

Law: scores depend on the documents and the question alone, not on what else is indexed, nor on
whether a vector was just made or read again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio.to_thread
import numpy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.embed.index_making import describe_failed
from lamina.embed.index_shelf import Shelf
from lamina.errors import ModelMissing
from lamina.selection.lexical import Lexicon
from lamina.selection.scoring import Matrix, Scores
from lamina.values.selection import Document

# Texts to vectors, by text; and why some have none.
Asked = tuple[Mapping[str, Matrix], Mapping[str, str]]
Ask = Callable[[Sequence[str]], Awaitable[Asked]]


class Counts(Struct, frozen=True, kw_only=True):
    """Of the different texts of a corpus: how many were made for it, known before, or failed."""

    new: int = 0
    reused: int = 0
    failed: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """What corpora of the same documents share; nobody changes it."""

    documents: tuple[Document, ...]
    shelf: Shelf
    lexicon: Lexicon
    # The row of the shelf for each chunk of the documents, in order.
    columns: NDArray[numpy.int64]
    # The texts of which something is still to be made.
    lacking: tuple[str, ...]


def stand(
    documents: tuple[Document, ...], shelf: Shelf, before: Standing | None, embeds: bool
) -> Standing:
    """Documents of which all terms are known. What stood before gives its lexicon."""
    lacking = tuple(shelf.lacking(vectors=embeds))
    if before is not None:
        return replace(before, shelf=shelf, lacking=lacking)
    chunks = [shelf.rows[chunk] for document in documents for chunk in document.chunks]
    return Standing(
        documents=documents,
        shelf=shelf,
        lexicon=Lexicon([shelf.terms[row] or b"" for row in chunks]),
        columns=numpy.array(chunks, numpy.int64),
        lacking=lacking,
    )


class IndexedCorpus:
    """A corpus of an index, as one load of it found it. `ask` gives vectors of questions; it is
    None where there is no embedder."""

    def __init__(
        self,
        standing: Standing,
        ask: Ask | None,
        *,
        lexical: str = "",
        failed: Sequence[str] = (),
        warnings: Sequence[str] = (),
        counts: Counts | None = None,
    ) -> None:
        self.counts = counts or Counts()
        self.warnings = tuple(warnings)
        self._standing = standing
        self._ask = ask
        self._lexical = lexical
        self._failed = tuple(failed)
        self._unanswered: tuple[str, ...] = ()

    @property
    def documents(self) -> Sequence[Document]:
        return self._standing.documents

    @property
    def lexical(self) -> str:
        return self._lexical

    @property
    def failed(self) -> Sequence[str]:
        return self._failed + self._unanswered

    async def score(self, parts: Sequence[str]) -> Scores:
        """How well each chunk fits each part. If it turns out that questions cannot be embedded,
        `lexical` or `failed` say so afterwards."""
        shelf = self._standing.shelf
        found: dict[str, Matrix] = {}
        if self._ask is not None and not self._lexical and shelf.vectors is not None:
            asked = [part for part in dict.fromkeys(parts) if part.strip()]
            # Whoever searches from a chunk need not have it embedded once more.
            found = {part: shelf.vectors[shelf.rows[part]] for part in asked if part in shelf}
            try:
                made, failed = await self._ask([part for part in asked if part not in found])
            except ModelMissing as error:
                self._lexical = str(error)
                found = {}
            else:
                found |= made
                self._unanswered = describe_failed(failed)
        # Some milliseconds for each part of 100,000 chunks: too long to hold the others up.
        return await anyio.to_thread.run_sync(self._score, tuple(parts), found)

    def _score(self, parts: tuple[str, ...], found: Mapping[str, Matrix]) -> Scores:
        standing = self._standing
        lexical = numpy.zeros((len(parts), len(standing.columns)), numpy.float32)
        for row, part in enumerate(parts):
            lexical[row] = standing.lexicon.score(part)
        vectors = standing.shelf.vectors
        if not found or vectors is None:
            return Scores(lexical=lexical)
        cosine = numpy.full(lexical.shape, numpy.nan, numpy.float32)
        asked = [row for row, part in enumerate(parts) if part in found]
        matrix = numpy.stack([found[parts[row]] for row in asked])
        cosine[asked] = (vectors @ matrix.T).T[:, standing.columns]
        numpy.clip(cosine, -1.0, 1.0, out=cosine)
        return Scores(lexical=lexical, cosine=cosine)
