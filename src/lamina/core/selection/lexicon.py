"""Scores how well chunks match a text by shared words (BM25), and stores these words as hashed
terms with their counts.

Laws: scores depend only on the chunks of one lexicon and on the text, and on nothing else that was
ever indexed. A chunk's stored data is a function of its text alone. Many chunks are packed together
because a single one costs more than its words do.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log1p
from zlib import crc32

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.core.selection.terms import LONGEST_WORD, find_terms, word_terms

# The version of `pack_texts` results: chunks of another version have to be packed again.
TERMS_VERSION = 1

# A term by its hash and its count in the chunk, five bytes.
PACKED = numpy.dtype([("term", "<u4"), ("count", "u1")])
_HASH = numpy.dtype("<u4")
_MAX_OFTEN = 255
_TEXT = numpy.uint64(32)
# ASCII characters that are in no word end every word, in any script: the stretch between two of
# them has the same terms everywhere.
_APART = bytes(
    code if code > 127 or chr(code).isalnum() or code == ord("_") else ord(" ")
    for code in range(256)
)
# About 14 MB.
_MAX_KEPT = 1 << 16


def hash_term(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))


class _Hashes(dict[bytes, bytes]):
    """The hashes of the terms of a stretch without spaces, computed once, four bytes each."""

    def __missing__(self, stretch: bytes) -> bytes:
        text = stretch.decode("utf-8", "surrogatepass")
        is_long = len(stretch) > LONGEST_WORD
        # A short stretch in ASCII is one word, as most are.
        terms = find_terms(text) if is_long or not text.isascii() else word_terms(text)
        hashes = b"".join([hash_term(term).to_bytes(_HASH.itemsize, "little") for term in terms])
        # Long stretches rarely recur.
        if not is_long:
            self[stretch] = hashes
        return hashes


_hashes = _Hashes()


def pack_texts(texts: Sequence[str]) -> list[bytes]:
    """Return the terms of each text, sorted by their hashes, each with its count."""
    if len(_hashes) > _MAX_KEPT:
        _hashes.clear()
    hashes_of = _hashes.__getitem__
    # Bytes are joined directly: a number for each word would cost more than finding it.
    hashes = [
        b"".join(map(hashes_of, text.encode("utf-8", "surrogatepass").translate(_APART).split()))
        for text in texts
    ]
    sizes = numpy.fromiter(map(len, hashes), numpy.int64, len(texts)) // _HASH.itemsize
    # The text and its term are in one number: a single sort groups them.
    firsts = numpy.arange(len(texts) + 1, dtype=numpy.uint64) << _TEXT
    numbers = numpy.repeat(firsts[:-1], sizes)
    numbers |= numpy.frombuffer(b"".join(hashes), _HASH)
    numbers.sort()
    begins = numpy.flatnonzero(numpy.diff(numbers, prepend=numbers[:1] ^ numpy.uint64(1)))
    terms = numbers[begins]
    records = numpy.empty(len(terms), PACKED)
    records["term"] = terms.astype(_HASH)
    records["count"] = numpy.minimum(numpy.diff(begins, append=len(numbers)), _MAX_OFTEN)
    content = records.tobytes()
    places = (numpy.searchsorted(terms, firsts) * PACKED.itemsize).tolist()
    return [content[start:end] for start, end in pairwise(places)]


# One integer per chunk.
Times = NDArray[numpy.int64]

MAX_CHUNKS = 1 << 24
# How many chunks are sorted together: about 3 million terms of passages, 25 MB.
PART = 1 << 15
# How soon repetition stops counting, and how much long chunks are penalised.
SATURATION, LENGTH_SHARE = 1.5, 0.75


class _Part(Struct, frozen=True):
    """Terms with the chunks they occur in: those of the n-th term start at `bounds[n]`. `size` is
    the number of chunks."""

    size: int
    terms: NDArray[numpy.uint32]
    bounds: NDArray[numpy.int64]
    chunks: NDArray[numpy.int32]
    counts: NDArray[numpy.uint8]

    def of(self, term: int) -> slice:
        place = int(numpy.searchsorted(self.terms, numpy.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return slice(0, 0)
        return slice(int(self.bounds[place]), int(self.bounds[place + 1]))

    def join(self, other: "_Part") -> "_Part":
        """Return both joined; the other's chunks come after this one's."""
        return _sort(numpy.concatenate((self._numbers(), other._numbers())), self.size + other.size)

    def _numbers(self) -> NDArray[numpy.uint64]:
        terms = numpy.repeat(self.terms, numpy.diff(self.bounds))
        return _pack_numbers(terms, self.chunks, self.counts)


class Postings(Struct, frozen=True):
    """The terms of chunks, which are numbered in order of arrival, and the number of terms in each.
    Immutable: extended copies share its parts. No part is large, so that none needs much memory or
    time to sort; and there are few small ones, so that searches look at few."""

    parts: tuple[_Part, ...]
    lengths: Times

    def __len__(self) -> int:
        return len(self.lengths)

    def extended(self, packs: Sequence[bytes]) -> "Postings":
        """Return a copy with these chunks added after the others."""
        first, size = len(self), len(self) + len(packs)
        if size > MAX_CHUNKS:
            raise ValueError(f"a lexicon holds up to {MAX_CHUNKS:,} chunks, not {size:,}")
        parts, lengths = list(self.parts), [self.lengths]
        for start in range(0, len(packs), PART):
            part, part_lengths = _gather(packs[start : start + PART], first + start)
            lengths.append(part_lengths)
            while parts and parts[-1].size < 2 * part.size <= 2 * (PART - parts[-1].size):
                part = parts.pop().join(part)
            parts.append(part)
        return Postings(tuple(parts), numpy.concatenate(lengths))


NO_POSTINGS = Postings((), numpy.zeros(0, numpy.int64))


def _gather(packs: Sequence[bytes], first: int) -> tuple[_Part, Times]:
    """Return a part with chunks numbered from `first`, and their lengths."""
    sizes = numpy.fromiter(map(len, packs), numpy.int64, len(packs)) // PACKED.itemsize
    records = numpy.frombuffer(b"".join(packs), PACKED)
    chunks = numpy.repeat(numpy.arange(len(packs), dtype=numpy.int32), sizes)
    lengths = numpy.bincount(chunks, records["count"], len(packs)).astype(numpy.int64)
    chunks += numpy.int32(first)
    return _sort(_pack_numbers(records["term"], chunks, records["count"]), len(packs)), lengths


def _pack_numbers(
    terms: NDArray[numpy.uint32], chunks: NDArray[numpy.int32], counts: NDArray[numpy.uint8]
) -> NDArray[numpy.uint64]:
    """Return term, chunk and count in one number: a plain sort is far cheaper than one of
    places."""
    numbers = terms.astype(numpy.uint64)
    numbers <<= numpy.uint64(24)
    numbers |= chunks.view(numpy.uint32)
    numbers <<= numpy.uint64(8)
    numbers |= counts
    return numbers


def _sort(numbers: NDArray[numpy.uint64], size: int) -> _Part:
    numbers.sort()
    terms = (numbers >> numpy.uint64(32)).astype(numpy.uint32)
    begins = numpy.flatnonzero(numpy.diff(terms, prepend=terms[:1] ^ 1))
    return _Part(
        size,
        terms[begins],
        numpy.append(begins, len(terms)),
        (numbers >> numpy.uint64(8)).astype(numpy.int32) & (MAX_CHUNKS - 1),
        numbers.astype(numpy.uint8),
    )


class Lexicon:
    """Chunks by their terms. `times` is how often each is in the corpus, by default once; a chunk
    that is not in it counts for nothing."""

    def __init__(self, postings: Postings, times: Times | None = None) -> None:
        lengths = postings.lengths
        self._parts = postings.parts
        self._times = numpy.ones(len(lengths), numpy.int64) if times is None else times
        # Integers up to this point: the order of addition makes no difference.
        self._count = int(self._times.sum())
        mean = float(lengths @ self._times) / max(1, self._count) or 1.0
        share = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean
        self._length_penalty = (SATURATION * share).astype(numpy.float32)

    def __len__(self) -> int:
        return len(self._times)

    def has(self, text: str) -> bool:
        """Return whether any chunk shares a term with the text."""
        hashes = {hash_term(term) for term in find_terms(text)}
        return any(part.of(term).stop for term in hashes for part in self._parts)

    def score(self, text: str) -> NDArray[numpy.float32]:
        """Return the score of each chunk; 0 where it shares no term with the text."""
        scores = numpy.zeros(len(self), numpy.float32)
        for term, count in Counter(hash_term(term) for term in find_terms(text)).items():
            places = [(part, at) for part in self._parts if (at := part.of(term)).stop]
            frequency = sum(int(self._times[part.chunks[at]].sum()) for part, at in places)
            rarity = numpy.float32(log1p((self._count - frequency + 0.5) / (frequency + 0.5)))
            for part, at in places:
                chunks, counts = part.chunks[at], part.counts[at].astype(numpy.float32)
                shares = counts * (SATURATION + 1) / (counts + self._length_penalty[chunks])
                scores[chunks] += count * rarity * shares
        return scores
