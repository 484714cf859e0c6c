"""More eager is more, never other."""

from itertools import pairwise
from typing import get_args

import numpy
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.scores import Scores, lay_out_chunks, measure_fits, rank_documents
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, Preset, Query, QueryPart, SearchSettings, preset

IDS = ("note:{}", "tool:sky/{}", "tool:post/{}")
SIZES = st.lists(st.tuples(st.sampled_from(IDS), st.integers(0, 4)), min_size=1, max_size=40)


def drawn(
    sizes: list[tuple[str, int]], seed: int, digits: int
) -> tuple[list[Document], Scores, Query]:
    """Documents with scores that are often alike, sometimes unknown, and a question of parts."""
    documents = [
        Document(ItemId(form.format(number)), tuple(f"{number}.{n}" for n in range(size)))
        for number, (form, size) in enumerate(sizes)
    ]
    random = numpy.random.default_rng(seed)
    parts = int(random.integers(1, 5))
    shape = (parts, sum(size for _, size in sizes))
    cosine = numpy.round(random.random(shape), digits).astype(numpy.float32)
    cosine[:, random.random(shape[1]) < 0.1] = numpy.nan
    lexical = numpy.round(random.random(shape), digits) * (random.random(shape) > 0.5)
    query = Query(
        parts=tuple(
            QueryPart(text=str(row), whole=row == 0, claims=bool(random.integers(2)))
            for row in range(parts)
        )
    )
    return documents, Scores(lexical=lexical.astype(numpy.float32), cosine=cosine), query


@given(SIZES, st.integers(0, 2**32), st.integers(1, 4))
def test_the_more_eager_takes_all_that_the_less_eager_takes(
    sizes: list[tuple[str, int]], seed: int, digits: int
) -> None:
    documents, scores, query = drawn(sizes, seed, digits)
    choices = [
        {item.item for item in choose_items(documents, scores, query, preset(name))}
        for name in get_args(Preset)
    ]
    for less, more in pairwise(choices):
        assert less <= more


def test_presets_differ_in_how_much_and_never_ask_for_more_of_the_eager() -> None:
    for less, more in pairwise(preset(name) for name in get_args(Preset)):
        assert less.top_n < more.top_n
        assert less.top_k < more.top_k
        assert less.floor >= more.floor
        assert less.expansion_depth <= more.expansion_depth


@given(SIZES, st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 50))
def test_what_is_measured_once_serves_every_answer(
    sizes: list[tuple[str, int]], seed: int, digits: int, most: int
) -> None:
    documents, scores, query = drawn(sizes, seed, digits)
    settings = SearchSettings()
    laid_out = Scores(
        lexical=scores.lexical, cosine=scores.cosine, layout=lay_out_chunks(documents)
    )
    fits = measure_fits(documents, laid_out, query)
    ranking = rank_documents(documents, scores, query, settings)
    assert rank_documents(documents, scores, query, settings, fits=fits) == ranking
    assert rank_documents(documents, scores, query, settings, most=most) == ranking[:most]
    choice = choose_items(documents, scores, query, settings)
    assert choose_items(documents, laid_out, query, settings, fits=fits) == choice


@given(SIZES, st.integers(0, 2**32))
def test_the_ranking_is_that_of_a_plain_loop(sizes: list[tuple[str, int]], seed: int) -> None:
    documents, scores, query = drawn(sizes, seed, 6)
    fits = measure_fits(documents, scores, query)
    expected = []
    column = 0
    for place, document in enumerate(documents):
        fit = [float(value) for value in fits.chunk_fit[column : column + len(document.chunks)]]
        if fit:
            expected.append((-max(fit), place, document.chunks[fit.index(max(fit))]))
        column += len(document.chunks)
    ids = {document.item for document in rank_documents(documents, scores, query)}
    assert [
        (document.item, document.chunk) for document in rank_documents(documents, scores, query)
    ] == [
        (documents[place].id, chunk)
        for _, place, chunk in sorted(expected)
        if documents[place].id in ids
    ]
