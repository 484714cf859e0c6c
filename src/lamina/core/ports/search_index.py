"""Protocols for searching by meaning and by words."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lamina.core.values.note import SearchTier
from lamina.core.values.selection import Document

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from lamina.core.selection.expansion import SimilarityGraph
    from lamina.core.selection.rough_meaning import WordVectors
    from lamina.core.selection.scores import Scores

    Vectors = NDArray[numpy.float32]

# Called with the number of finished chunks and the total.
Progress = Callable[[int, int], None]
# Returns texts by their digests; some may be missing.
ReadTexts = Callable[[Sequence[bytes]], Awaitable[Mapping[bytes, str]]]


@runtime_checkable
class KnownTerms(Protocol):
    """Optional for the reader passed to an index: supplies precomputed terms of some texts."""

    def take_terms(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return terms as packed by `selection.packed_terms`, by the digests of their texts; some
        may be missing, and each is returned once."""
        ...


class Embedder(Protocol):
    """Converts texts to vectors, on this machine and without a network."""

    @property
    def name(self) -> str:
        """The model and its format: vectors of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> "Vectors":
        """Return a row of length 1 for each text.

        Raises:
            ModelMissing: the model or its runtime is not on this machine.
        """
        ...


@runtime_checkable
class FluentEmbedder(Embedder, Protocol):
    """An embedder that can measure how well it supports the language of texts."""

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the number of letters per token for each text: about four in a language it was
        made for, two or three in another with the same letters, and one in a script it cannot
        read."""
        ...


@runtime_checkable
class WordEmbedder(Embedder, Protocol):
    """An embedder with approximate vectors for single words."""

    async def word_vectors(self) -> "WordVectors":
        """Return a vector for each supported word.

        Raises:
            ModelMissing: as `embed`.
        """
        ...


class Corpus(Protocol):
    """Documents prepared for search."""

    @property
    def documents(self) -> Sequence[Document]:
        """The documents that can be found."""
        ...

    @property
    def lexical(self) -> str:
        """The reason why there are no vectors; empty if there are."""
        ...

    @property
    def late(self) -> int:
        """The number of texts searched by words only for now, because there was no time to embed
        them."""
        ...

    @property
    def failed(self) -> Sequence[str]:
        """Texts that could not be embedded, with reasons; they are searched by words, and embedding
        is tried again."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Problems with storing the index, each reported once; nothing is lost."""
        ...

    async def score(self, parts: Sequence[str]) -> "Scores":
        """Return how well each chunk matches each part of a query."""
        ...

    async def graph(self, threshold: float, top: int) -> "SimilarityGraph":
        """Return the graph of similar documents: for each, up to `top` others with a similarity of
        at least `threshold`. Built once and stored; empty if there are no vectors."""
        ...


class Index(Protocol):
    """Stores vectors and terms of chunks across sessions: nothing is embedded twice."""

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> Corpus:
        """Return the documents, ready to be searched; new ones are embedded first. `texts` returns
        the texts of documents that have only digests and are not indexed yet; texts it does not
        return are not found, and requested again. Embedding stops after `patience` seconds, or
        sooner if it would not finish by then: the rest is searched by words, and the next load
        continues with it. Texts `among` these digests come first, and only these are waited for."""
        ...


@runtime_checkable
class GradualCorpus(Corpus, Protocol):
    """A corpus that can be searched by meaning before it is complete."""

    @property
    def tier(self) -> SearchTier:
        """Return how it is searched, and how much of it is indexed; after a question was scored,
        how that was done."""
        ...


@runtime_checkable
class StoredIndex(Index, Protocol):
    """An index on disk, which may defer part of its writing until after a load."""

    async def write(self) -> tuple[int, Sequence[str]]:
        """Write what is pending; returns the number of texts that could not be written to disk, and
        problems since the last load."""
        ...


@runtime_checkable
class GradualIndex(Index, Protocol):
    """An index that can be searched by meaning before it is complete."""

    async def load_for(
        self,
        parts: Sequence[str],
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
        comparing: Progress | None = None,
    ) -> GradualCorpus:
        """Like `load`, for one question: if more is missing than can be embedded in time, the texts
        most similar to its parts are embedded, and only embedded ones are found. `patience`
        includes the time for words, but half of it is always for embedding. Only texts `among`
        these digests count. `progress` is called if all missing texts are embedded, `comparing`
        otherwise: with a maximum total, since it may end sooner."""
        ...

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = 512,
    ) -> int:
        """Embed up to `most` of the texts that are not embedded yet, in this order, in the
        background; returns their number. If cancelled, it keeps what was embedded."""
        ...
