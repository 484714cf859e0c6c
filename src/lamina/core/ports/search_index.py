"""What finds things by meaning and by words, as Protocols."""

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

# Called with how many chunks are done, of how many.
Progress = Callable[[int, int], None]
# Texts by their digests; some may be missing.
ReadTexts = Callable[[Sequence[bytes]], Awaitable[Mapping[bytes, str]]]


@runtime_checkable
class KnownTerms(Protocol):
    """What the reader of texts that an index is given may be, too: one that knows the terms of some
    texts before anybody asks for these."""

    def take_terms(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Terms as `selection.packed_terms` packs them, by the digests of their texts; some may be
        missing, and each is given once."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors, on this machine and without a network."""

    @property
    def name(self) -> str:
        """Which model in which form: vectors of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> "Vectors":
        """A row of length 1 for each text.

        Raises:
            ModelMissing: the model or its runtime is not on this machine.
        """
        ...


@runtime_checkable
class FluentEmbedder(Embedder, Protocol):
    """An embedder that can tell how well it knows the language of texts."""

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        """How many letters one token stands for, in each text: four or so in a language that it was
        made for, two or three in one with the same letters, and one in a script that it cannot
        read."""
        ...


@runtime_checkable
class WordEmbedder(Embedder, Protocol):
    """An embedder that knows roughly what words mean by themselves."""

    async def word_vectors(self) -> "WordVectors":
        """A vector for each word it knows.

        Raises:
            ModelMissing: as `embed`.
        """
        ...


class Corpus(Protocol):
    """Documents that are ready to be searched."""

    @property
    def documents(self) -> Sequence[Document]:
        """What can be found."""
        ...

    @property
    def lexical(self) -> str:
        """Why there are no vectors; empty if there are."""
        ...

    @property
    def late(self) -> int:
        """How many texts are found by their words for now, as there was no time to embed them."""
        ...

    @property
    def failed(self) -> Sequence[str]:
        """What could not be embedded, and why; it is found by its words, and tried again."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What went wrong with keeping what is known, each reported once; nothing is lost."""
        ...

    async def score(self, parts: Sequence[str]) -> "Scores":
        """How well each chunk fits each part of a query."""
        ...

    async def graph(self, threshold: float, top: int) -> "SimilarityGraph":
        """Which documents are like which: of each, up to `top` others that are at least as alike as
        `threshold`. Built once and kept; empty where there are no vectors."""
        ...


class Index(Protocol):
    """Keeps what is known of chunks from one session to the next: nothing is embedded twice."""

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> Corpus:
        """The documents, ready to be searched; what is new of them is embedded first. `texts` gives
        those of documents that hold digests only, where nothing is known of them yet; what it does
        not give is found by nothing, and asked for again. Embedding stops after `patience` seconds,
        or sooner if it would not be done by then: what is left is found by its words, and the next
        load goes on with it. Texts `among` these digests come first, and are all that is waited
        for."""
        ...


@runtime_checkable
class GradualCorpus(Corpus, Protocol):
    """A corpus that need not be complete to be searched by meaning."""

    @property
    def tier(self) -> SearchTier:
        """How it is searched, and how much of it is indexed; once a question was scored, how that
        was."""
        ...


@runtime_checkable
class StoredIndex(Index, Protocol):
    """An index on a disk, which may write some of what it knows after a load."""

    async def write(self) -> tuple[int, Sequence[str]]:
        """Writes what waits; how many texts the disk refused, and what went wrong since the last
        load."""
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
        """As `load`, for one question: where more is missing than can be embedded in time, that is
        embedded which looks most like the parts of it, and only what is embedded is found.
        `patience` includes the time for words, but half of it is for embedding in any case. All
        that counts is what is `among` these digests. `progress` is told where all that is missing
        is embedded, and else `comparing`: of how many at most, since it may end sooner."""
        ...

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = 512,
    ) -> int:
        """Embeds up to `most` of the texts that are not embedded yet, in this order, without haste
        and in nobody's way; says how many it did. Cancelled, it keeps what it made."""
        ...
