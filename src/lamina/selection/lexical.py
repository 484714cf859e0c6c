"""How well chunks fit a text by the words they share: BM25.

Law: scores depend on the chunks of one lexicon and on the text, and on nothing else that was ever
indexed. What is kept of a chunk is a function of its text alone and can be stored.
"""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from math import log1p
from zlib import crc32

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.selection.terms import find_terms

# Of what `pack_terms` gives: packed chunks of another version have to be packed again.
TERMS_VERSION = 1

# A whole number for each chunk.
Times = NDArray[numpy.int64]

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


class _Postings(Struct, frozen=True):
    """Terms with the chunks they occur in: those of the n-th term from `bounds[n]` on."""

    terms: NDArray[numpy.uint32]
    bounds: NDArray[numpy.int64]
    chunks: NDArray[numpy.int32]
    counts: NDArray[numpy.uint8]

    def of(self, term: int) -> slice:
        place = int(numpy.searchsorted(self.terms, numpy.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return slice(0, 0)
        return slice(int(self.bounds[place]), int(self.bounds[place + 1]))


def _gather(packed: Sequence[bytes], first: int) -> tuple[_Postings, Times]:
    """The postings of chunks, of which the first has the number `first`; and their lengths."""
    if first + len(packed) > MOST_CHUNKS:
        size = first + len(packed)
        raise ValueError(f"a lexicon holds up to {MOST_CHUNKS:,} chunks, not {size:,}")
    sizes = numpy.fromiter(map(len, packed), numpy.int64, len(packed)) // _PACKED.itemsize
    records = numpy.frombuffer(b"".join(packed), _PACKED)
    numbers = numpy.repeat(numpy.arange(len(packed), dtype=numpy.uint64), sizes)
    # Term, chunk and count in one number: a plain sort is far cheaper than one of places.
    postings = records["term"].astype(numpy.uint64) << numpy.uint64(32)
    postings |= (numbers + numpy.uint64(first)) << numpy.uint64(8)
    postings |= records["count"]
    postings.sort()
    terms = (postings >> numpy.uint64(32)).astype(numpy.uint32)
    begins = numpy.flatnonzero(numpy.diff(terms, prepend=terms[:1] ^ 1))
    lengths = numpy.bincount(numbers.astype(numpy.int64), records["count"], len(packed))
    return (
        _Postings(
            terms[begins],
            numpy.append(begins, len(terms)),
            (postings >> numpy.uint64(8)).astype(numpy.int32) & (MOST_CHUNKS - 1),
            postings.astype(numpy.uint8),
        ),
        lengths.astype(numpy.int64),
    )


class Lexicon:
    """Chunks by their terms. `times` says how often each stands in the corpus, once if not said;
    one that stands there no more counts for nothing. It never changes: what has `grown` from it
    shares its postings, so that a chunk more does not cost as much as all of them."""

    def __init__(self, packed: Sequence[bytes], times: Times | None = None) -> None:
        part, lengths = _gather(packed, 0)
        self._parts: tuple[_Postings, ...] = (part,)
        # One large part, and one of what came since: that one is small, and gathered anew.
        self._first = len(packed)
        self._recent: tuple[bytes, ...] = ()
        self._weigh(lengths, times)

    def grown(self, packed: Sequence[bytes], times: Times) -> "Lexicon":
        """A lexicon with these chunks, too, behind the others."""
        other = copy(self)
        other._recent = (*self._recent, *packed)
        part, lengths = _gather(other._recent, self._first)
        other._parts = (self._parts[0], part)
        other._weigh(numpy.append(self._lengths[: self._first], lengths), times)
        return other

    def _weigh(self, lengths: Times, times: Times | None) -> None:
        self._lengths = lengths
        self._times = numpy.ones(len(lengths), numpy.int64) if times is None else times
        # Whole numbers until here: in which order they are added up makes no difference.
        self._count = int(self._times.sum())
        mean = float(lengths @ self._times) / max(1, self._count) or 1.0
        share = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean
        self._held_back = (SATURATION * share).astype(numpy.float32)

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def recent(self) -> int:
        """How many chunks came since the large part was gathered."""
        return len(self._recent)

    def score(self, text: str) -> NDArray[numpy.float32]:
        """The score of each chunk; 0 where it shares no term with the text."""
        scores = numpy.zeros(len(self), numpy.float32)
        for term, count in Counter(_hashed(each) for each in find_terms(text)).items():
            found = [(part, part.of(term)) for part in self._parts]
            often = sum(int(self._times[part.chunks[at]].sum()) for part, at in found)
            rarity = numpy.float32(log1p((self._count - often + 0.5) / (often + 0.5)))
            for part, at in found:
                chunks, counts = part.chunks[at], part.counts[at].astype(numpy.float32)
                shares = counts * (SATURATION + 1) / (counts + self._held_back[chunks])
                scores[chunks] += count * rarity * shares
        return scores
