"""Search by meaning and by words, as Protocols."""

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

# Called with how many chunks are done, and the total.
Progress = Callable[[int, int], None]
# Texts by their digests; some may be missing.
ReadTexts = Callable[[Sequence[bytes]], Awaitable[Mapping[bytes, str]]]


@runtime_checkable
class KnownTerms(Protocol):
    """An optional extra of the reader of texts passed to an index: it knows the terms of some texts
    in advance."""

    def take_terms(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return terms as `selection.packed_terms` packs them, by the digests of their texts; some
        may be missing, and each is returned once."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors, on this machine and without a network."""

    @property
    def name(self) -> str:
        """The model and its form: vectors of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> "Vectors":
        """Return a row of length 1 for each text.

        Raises:
            ModelMissing: the model or its runtime is not on this machine.
        """
        ...


@runtime_checkable
class FluentEmbedder(Embedder, Protocol):
    """An embedder that can tell how well it knows the language of texts."""

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        """Return how many letters one token covers, in each text: about four in a language that it
        was made for, two or three in one with the same letters, and one in a script that it cannot
        read."""
        ...


@runtime_checkable
class WordEmbedder(Embedder, Protocol):
    """An embedder that roughly knows the meaning of single words."""

    async def word_vectors(self) -> "WordVectors":
        """Return a vector for each word it knows.

        Raises:
            ModelMissing: as `embed`.
        """
        ...


class Corpus(Protocol):
    """Documents that are ready to be searched."""

    @property
    def documents(self) -> Sequence[Document]:
        """The documents that can be found."""
        ...

    @property
    def lexical(self) -> str:
        """Why there are no vectors; empty if there are."""
        ...

    @property
    def late(self) -> int:
        """How many texts are found by their words for now, because there was no time to embed
        them."""
        ...

    @property
    def failed(self) -> Sequence[str]:
        """What could not be embedded, and why; it is found by its words, and tried again."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Problems with storing what is known, each reported once; nothing is lost."""
        ...

    async def score(self, parts: Sequence[str]) -> "Scores":
        """Return how well each chunk matches each part of a query."""
        ...

    async def graph(self, threshold: float, top: int) -> "SimilarityGraph":
        """Return which documents are similar: for each, up to `top` others with a similarity of at
        least `threshold`. Built once and stored; empty where there are no vectors."""
        ...


class Index(Protocol):
    """Keeps what is known about chunks from one session to the next: nothing is embedded twice."""

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> Corpus:
        """Return the documents, ready to be searched; new ones are embedded first. `texts` returns
        those of documents that only have digests, where nothing is known about them yet; texts it
        does not return are not found, and requested again. Embedding stops after `patience`
        seconds, or sooner if it would not finish by then: the rest is found by its words, and the
        next load continues with it. Texts `among` these digests come first, and only these are
        waited for."""
        ...


@runtime_checkable
class GradualCorpus(Corpus, Protocol):
    """A corpus that need not be complete to be searched by meaning."""

    @property
    def tier(self) -> SearchTier:
        """Return how it is searched, and how much of it is indexed; after a question was scored,
        how that was done."""
        ...


@runtime_checkable
class StoredIndex(Index, Protocol):
    """An index on disk, which may write some of what it knows after a load."""

    async def write(self) -> tuple[int, Sequence[str]]:
        """Write what is pending; returns how many texts the disk refused, and problems since the
        last load."""
        ...


@runtime_checkable
class GradualIndex(Index, Protocol):
    """An index that answers by meaning before it is complete."""

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
        """Like `load`, for one question: where more is missing than can be embedded in time, the
        texts most similar to its parts are embedded, and only embedded ones are found. `patience`
        includes the time for words, but half of it is for embedding in any case. Only texts `among`
        these digests count. `progress` is called where all missing texts are embedded, and
        otherwise `comparing`: with a maximum total, since it may end sooner."""
        ...

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = 512,
    ) -> int:
        """Embed up to `most` of the texts that are not embedded yet, in this order, in the
        background; returns how many. Cancelled, it keeps what it made."""
        ...
