"""What is packed of texts is what their terms are, one by one or together."""

from collections import Counter
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.lexicon import pack_texts
from lamina.core.selection.terms import find_terms

# What is cut in more than one way: scripts, joints, accents, blanks that are not ASCII.
PIECES = (
    "read", "readFile", "HTTPServer", "PDFs", "sha256", "_", "__a__", "don\u2019t", "na\u00efve",
    "e\u0301t\u00e9", "\u65e5\u672c\u8a9e\u30c6\u30ad\u30b9", "\u0939\u093f\u0928\u094d\u0926",
    "\ud55c\uad6d\uc5b4", "\ufb01", "\u0130", "\u00df", "\u0663\u0664", "\u00b2", "\ud800", "the",
    " ", "\u00a0", "\u2028", "\x1c", "\x85", "\x00", "-", "\n", "x" * 200, "a" * 64,
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


def packed(text: str) -> bytes:
    counts = Counter(crc32(term.encode("utf-8", "surrogatepass")) for term in find_terms(text))
    rows = (term.to_bytes(4, "little") + bytes([min(n, 255)]) for term, n in sorted(counts.items()))
    return b"".join(rows)


@given(st.lists(TEXTS, max_size=6))
def test_texts_are_packed_together_as_each_is_alone(texts: list[str]) -> None:
    assert pack_texts(texts) == [packed(text) for text in texts]
    assert [pack_texts([text])[0] for text in texts] == [packed(text) for text in texts]


def test_a_word_counts_no_more_often_than_a_byte_holds() -> None:
    texts = ["word " * 400, "", "word"]
    assert pack_texts(texts) == [packed(text) for text in texts]
