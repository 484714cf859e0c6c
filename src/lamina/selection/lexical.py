"""How well chunks fit a text by the words they share: BM25.

Law: scores depend on the chunks of one lexicon and on the text, and on nothing else that was ever
indexed. What is kept of a chunk is a function of its text alone and can be stored.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy
from numpy.typing import NDArray

from lamina.selection.terms import find_terms

# Of what `pack_terms` gives: packed chunks of another version have to be packed again.
TERMS_VERSION = 1

# A term by its hash and how often it occurs in the chunk, five bytes.
_PACKED = numpy.dtype([("term", "<u4"), ("count", "u1")])
_MOST_OFTEN = 255
MOST_CHUNKS = 1 << 24
# How soon repetition stops to count, and how much long chunks are held back.
SATURATION, LENGTH_SHARE = 1.5, 0.75


def pack_terms(text: str) -> bytes:
    """The terms of a chunk, sorted by their hashes, each with its count."""
    counts = sorted(Counter(_hashed(term) for term in find_terms(text)).items())
    packed = numpy.empty(len(counts), _PACKED)
    packed["term"] = [term for term, _ in counts]
    packed["count"] = [min(count, _MOST_OFTEN) for _, count in counts]
    return packed.tobytes()


@lru_cache(maxsize=1 << 16)
def _hashed(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))


class Lexicon:
    """Chunks by their terms."""

    def __init__(self, packed: Sequence[bytes]) -> None:
        if len(packed) > MOST_CHUNKS:
            raise ValueError(f"a lexicon holds up to {MOST_CHUNKS:,} chunks, not {len(packed):,}")
        self._size = len(packed)
        sizes = numpy.fromiter((len(each) for each in packed), numpy.int64, self._size)
        records = numpy.frombuffer(b"".join(packed), _PACKED)
        chunks = numpy.repeat(numpy.arange(self._size), sizes // _PACKED.itemsize)
        # Term, chunk and count in one number: a plain sort is far cheaper than one of places.
        postings = records["term"].astype(numpy.uint64) << numpy.uint64(32)
        postings |= chunks.astype(numpy.uint64) << numpy.uint64(8)
        postings |= records["count"]
        postings.sort()
        counts = (postings & numpy.uint64(0xFF)).astype(numpy.float32)
        self._chunks = (postings >> numpy.uint64(8)).astype(numpy.int32) & (MOST_CHUNKS - 1)
        terms = (postings >> numpy.uint64(32)).astype(numpy.uint32)
        begins = numpy.flatnonzero(numpy.diff(terms, prepend=terms[:1] ^ 1))
        self._terms = terms[begins]
        self._bounds = numpy.append(begins, len(terms))
        lengths = numpy.bincount(self._chunks, counts, self._size)
        self._weights = self._weigh(counts, lengths.astype(numpy.float32))

    def _weigh(
        self, counts: NDArray[numpy.float32], lengths: NDArray[numpy.float32]
    ) -> NDArray[numpy.float32]:
        """What each posting adds to its chunk's score if its term is asked for."""
        mean = lengths.mean() if lengths.any() else 1.0
        held_back = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean)
        often = numpy.diff(self._bounds)
        rarity = numpy.log1p((self._size - often + 0.5) / (often + 0.5)).astype(numpy.float32)
        shares = counts * (SATURATION + 1) / (counts + held_back[self._chunks])
        weights: NDArray[numpy.float32] = shares * numpy.repeat(rarity, often)
        return weights

    def __len__(self) -> int:
        return self._size

    def score(self, text: str) -> NDArray[numpy.float32]:
        """The score of each chunk; 0 where it shares no term with the text."""
        scores = numpy.zeros(self._size, numpy.float32)
        for term, count in Counter(_hashed(each) for each in find_terms(text)).items():
            place = int(numpy.searchsorted(self._terms, numpy.uint32(term)))
            if place < len(self._terms) and self._terms[place] == term:
                found = slice(self._bounds[place], self._bounds[place + 1])
                scores[self._chunks[found]] += count * self._weights[found]
        return scores
