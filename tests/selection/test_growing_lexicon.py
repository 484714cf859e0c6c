"""A lexicon that grows is the one that was built at once."""

import numpy
from hypothesis import given
from hypothesis import strategies as st

from lamina.selection.lexical import Lexicon, pack_terms

TEXTS = st.lists(
    st.lists(st.sampled_from(["read", "file", "stock", "price"]), max_size=6).map(" ".join),
    max_size=6,
)


@given(TEXTS, TEXTS, TEXTS, st.data())
def test_a_lexicon_that_grew_scores_as_one_built_at_once(
    first: list[str], second: list[str], third: list[str], data: st.DataObject
) -> None:
    texts = first + second + third
    times = numpy.array([data.draw(st.integers(0, 3)) for _ in texts], numpy.int64)
    packed = [pack_terms(text) for text in texts]
    begin, middle = len(first), len(first) + len(second)
    base = Lexicon(packed[:begin])
    before = base.score("read file")
    grown = base.grown(packed[begin:middle], times[:middle]).grown(packed[middle:], times)
    assert len(grown) == len(texts)
    assert (
        grown.score("read a file").tolist() == Lexicon(packed, times).score("read a file").tolist()
    )
    assert base.score("read file").tolist() == before.tolist()


@given(TEXTS, st.data())
def test_a_text_that_stands_there_often_counts_as_often(
    texts: list[str], data: st.DataObject
) -> None:
    times = [data.draw(st.integers(0, 3)) for _ in texts]
    rows = [row for row, often in enumerate(times) for _ in range(often)]
    once = Lexicon([pack_terms(text) for text in texts], numpy.array(times, numpy.int64))
    all_of_them = Lexicon([pack_terms(texts[row]) for row in rows])
    found = once.score("stock price")
    assert [float(found[row]) for row in rows] == all_of_them.score("stock price").tolist()
