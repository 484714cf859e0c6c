"""What is kept of the words of texts: their terms by hash, each with its count.

Law: it is a function of the text alone and can be stored. Many are packed together because each by
itself costs more than its words do.
"""

from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

import numpy

from lamina.core.selection.terms import LONGEST_WORD, find_terms, word_terms

# The version of what `pack_texts` returns: chunks of another version have to be packed again.
TERMS_VERSION = 1

# A term by its hash and how often it occurs in the chunk, five bytes.
PACKED = numpy.dtype([("term", "<u4"), ("count", "u1")])
_HASH = numpy.dtype("<u4")
_MOST_OFTEN = 255
_TEXT = numpy.uint64(32)
# Characters of ASCII that are in no word end every word, in any script: what stands between two of
# them has the same terms wherever it stands.
_APART = bytes(
    code if code > 127 or chr(code).isalnum() or code == ord("_") else ord(" ")
    for code in range(256)
)
# Some 14 MB.
_MOST_KEPT = 1 << 16


def hash_term(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))


class _Hashes(dict[bytes, bytes]):
    """The hashes of the terms of a stretch without spaces, worked out once, four bytes each."""

    def __missing__(self, stretch: bytes) -> bytes:
        text = stretch.decode("utf-8", "surrogatepass")
        is_long = len(stretch) > LONGEST_WORD
        # A short one in ASCII is one word, as most are.
        terms = find_terms(text) if is_long or not text.isascii() else word_terms(text)
        hashes = b"".join([hash_term(term).to_bytes(_HASH.itemsize, "little") for term in terms])
        # Long ones hardly come again.
        if not is_long:
            self[stretch] = hashes
        return hashes


_hashes = _Hashes()


def pack_texts(texts: Sequence[str]) -> list[bytes]:
    """The terms of each text, sorted by their hashes, each with its count."""
    if len(_hashes) > _MOST_KEPT:
        _hashes.clear()
    hashes_of = _hashes.__getitem__
    # Bytes are joined as they are: a number for each word would cost more than finding it.
    hashes = [
        b"".join(map(hashes_of, text.encode("utf-8", "surrogatepass").translate(_APART).split()))
        for text in texts
    ]
    sizes = numpy.fromiter(map(len, hashes), numpy.int64, len(texts)) // _HASH.itemsize
    # The text and its term in one number: a single sort brings together what belongs together.
    firsts = numpy.arange(len(texts) + 1, dtype=numpy.uint64) << _TEXT
    numbers = numpy.repeat(firsts[:-1], sizes)
    numbers |= numpy.frombuffer(b"".join(hashes), _HASH)
    numbers.sort()
    begins = numpy.flatnonzero(numpy.diff(numbers, prepend=numbers[:1] ^ numpy.uint64(1)))
    terms = numbers[begins]
    records = numpy.empty(len(terms), PACKED)
    records["term"] = terms.astype(_HASH)
    records["count"] = numpy.minimum(numpy.diff(begins, append=len(numbers)), _MOST_OFTEN)
    content = records.tobytes()
    places = (numpy.searchsorted(terms, firsts) * PACKED.itemsize).tolist()
    return [content[start:end] for start, end in pairwise(places)]
