"""Which items are taken: behaviours 13, 17 and 20."""

from collections.abc import Sequence
from random import Random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.scores import Scores, rank_documents
from lamina.core.values.item import ItemId, item_id
from lamina.core.values.selection import Document, Query, QueryPart, SearchSettings, SelectedItem

ONE = Query(parts=(QueryPart(text="q", whole=True),))
PLAIN = SearchSettings(floor=0.0)
COSINES = st.integers(-100, 100).map(lambda hundredths: hundredths / 100)


def rule(number: int) -> ItemId:
    return item_id("rule", f"r{number}")


def scored(*rows: Sequence[float], lexical: Sequence[Sequence[float]] | None = None) -> Scores:
    words = numpy.zeros((len(rows), len(rows[0]))) if lexical is None else numpy.array(lexical)
    return Scores(cosine=numpy.array(rows, numpy.float32), lexical=words.astype(numpy.float32))


def documents(number: int) -> list[Document]:
    return [Document(rule(place), (f"chunk {place}",)) for place in range(number)]


def choose(cosines: Sequence[float], settings: SearchSettings = PLAIN) -> list[float | None]:
    items = choose_items(documents(len(cosines)), scored(cosines), ONE, settings)
    return [item.score for item in items]


def test_all_at_or_above_the_score_are_taken_however_many() -> None:
    assert len(choose([0.9, 0.8, 0.75, 0.74, 0.73, 0.72, 0.7, 0.69])) == 7


def test_two_above_and_six_below_give_five() -> None:
    assert choose([0.1, 0.2, 0.9, 0.3, 0.4, 0.8, 0.5, 0.6]) == [0.9, 0.8, 0.6, 0.5, 0.4]


def test_exactly_at_the_score_is_in_and_exactly_at_the_floor_is_out() -> None:
    settings = SearchSettings(top_n=0, include_score=0.7, floor=0.3)
    assert choose([0.7, 0.699999], settings) == [0.7]
    assert choose([0.3, 0.300001, 0.2], SearchSettings(floor=0.3)) == [0.300001]
    assert choose([0.0, -0.5]) == []


def test_ties_keep_the_order_of_the_candidates() -> None:
    items = choose_items(documents(8), scored([0.5] * 8), ONE, PLAIN)
    assert [item.item for item in items] == [rule(number) for number in range(5)]


def test_an_empty_question_and_a_search_that_is_off_give_nothing() -> None:
    empty = Scores(lexical=numpy.zeros((0, 1), numpy.float32))
    assert choose_items(documents(1), empty, Query(), PLAIN) == ()
    assert choose_items(documents(1), scored([0.9]), ONE, SearchSettings(search=False)) == ()
    assert choose_items((), scored([]), ONE, PLAIN) == ()
    assert rank_documents((), scored([]), ONE) == ()


def test_only_the_items_of_the_best_chunks_are_looked_at() -> None:
    two = [Document(rule(0), ("a", "b")), Document(rule(1), ("c",))]
    items = choose_items(two, scored([0.6, 0.5, 0.4]), ONE, SearchSettings(top_k=2, floor=0.0))
    assert [(item.item, item.score, item.chunk) for item in items] == [(rule(0), 0.6, "a")]


def test_many_chunks_of_one_item_do_not_hide_another_that_is_sure() -> None:
    long = Document(rule(0), tuple(f"part {number}" for number in range(20)))
    cosines = [0.95 - 0.005 * number for number in range(20)]
    items = choose_items([long, Document(rule(1), ("b",))], scored([*cosines, 0.75]), ONE, PLAIN)
    assert [(item.item, item.score) for item in items] == [(rule(0), 0.95), (rule(1), 0.75)]
    # Below the score, `top_k` decides: no chunk of it is among the best.
    items = choose_items([long, Document(rule(1), ("b",))], scored([*cosines, 0.69]), ONE, PLAIN)
    assert [item.item for item in items] == [rule(0)]


@given(st.lists(st.lists(COSINES, min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_no_limit_on_chunks_hides_an_item_that_is_sure(
    rows: list[list[float]], data: st.DataObject
) -> None:
    top_k, top_n = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 3))
    items = [
        Document(rule(at), tuple(f"{at} {n}" for n in range(len(rows[at]))))
        for at in range(len(rows))
    ]
    settings = SearchSettings(top_k=top_k, top_n=top_n, floor=0.0, include_score=0.5)
    cosines = [cosine for row in rows for cosine in row]
    chosen_ids = {item.item for item in choose_items(items, scored(cosines), ONE, settings)}
    assert chosen_ids >= {rule(at) for at, row in enumerate(rows) if max(row) >= 0.5}
    assert len(chosen_ids) <= max(top_n, sum(max(row) >= 0.5 for row in rows), 1)


def test_words_order_what_is_taken_but_scores_decide_what_is_sure() -> None:
    lexical = [[0.0] * 6 + [9.0]]
    scores = scored([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.45], lexical=lexical)
    items = choose_items(documents(7), scores, ONE, PLAIN)
    assert rule(6) in [item.item for item in items]
    assert [item.score for item in items] == [0.5, 0.5, 0.5, 0.5, 0.45]
    assert rank_documents(documents(7), scores, ONE)[0] == SelectedItem(
        item=rule(6), score=0.45, chunk="chunk 6"
    )


def test_every_part_of_a_question_gets_its_item() -> None:
    query = Query(
        parts=(
            QueryPart(text="a and b", whole=True, claims=False),
            QueryPart(text="a"),
            QueryPart(text="b"),
        )
    )
    whole = [0.6, 0.6, 0.6, 0.6, 0.6, 0.1]
    scores = scored(whole, [0.65, 0.6, 0.6, 0.6, 0.6, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    items = choose_items(documents(6), scores, query, PLAIN)
    assert len(items) == 5
    assert {rule(0), rule(5)} <= {item.item for item in items}
    above = choose_items(documents(6), scores, query, SearchSettings(floor=0.3))
    assert rule(5) not in {item.item for item in above}


def test_parts_that_outnumber_the_places_get_their_items_all_the_same() -> None:
    query = Query(parts=(QueryPart(text="a"), QueryPart(text="b"), QueryPart(text="c")))
    scores = scored([0.5, 0, 0, 0.4], [0, 0.5, 0, 0.4], [0, 0, 0.5, 0.4])
    items = choose_items(documents(4), scores, query, SearchSettings(top_n=1, floor=0.0))
    assert [item.item for item in items] == [rule(0), rule(1), rule(2)]


def test_a_recent_turn_counts_by_its_weight() -> None:
    recent = QueryPart(text="before", weight=0.5, recent=True, claims=False)
    query = Query(parts=(QueryPart(text="q", whole=True), recent))
    items = choose_items(documents(2), scored([0.1, 0.2], [0.8, 0.2]), query, PLAIN)
    assert [(item.item, item.score) for item in items] == [(rule(0), 0.4), (rule(1), 0.2)]


def test_an_item_without_a_vector_is_found_by_its_words() -> None:
    scores = scored([0.5, numpy.nan, numpy.nan], lexical=[[1.0, 2.0, 0.0]])
    items = choose_items(documents(3), scores, ONE, PLAIN)
    assert [(item.item, item.score, item.origin) for item in items] == [
        (rule(0), 0.5, "search"),
        (rule(1), None, "lexical"),
    ]


def test_without_vectors_the_best_words_are_taken_without_a_score() -> None:
    scores = Scores(lexical=numpy.array([[1, 0, 3, 2, 5, 4, 6]], numpy.float32))
    items = choose_items(documents(7), scores, ONE, PLAIN)
    assert [item.item for item in items] == [rule(number) for number in (6, 4, 5, 2, 3)]
    assert {(item.score, item.origin) for item in items} == {(None, "lexical")}


def test_a_part_that_could_not_be_embedded_does_not_hide_the_others() -> None:
    query = Query(parts=(QueryPart(text="a", whole=True), QueryPart(text="b")))
    items = choose_items(documents(1), scored([0.5], [numpy.nan]), query, PLAIN)
    assert [item.score for item in items] == [0.5]


def test_an_item_without_text_is_never_taken() -> None:
    candidates = [Document(rule(0), ()), Document(rule(1), ("text",)), Document(rule(2), ())]
    assert [item.item for item in choose_items(candidates, scored([0.5]), ONE, PLAIN)] == [rule(1)]
    assert [document.item for document in rank_documents(candidates, scored([0.5]), ONE)] == [
        rule(1)
    ]


def test_tools_of_the_server_that_fits_best_come_before_their_equals() -> None:
    ids = [item_id("tool", key) for key in ("mail/list", "disk/list", "disk/read")]
    candidates = [Document(id_, (id_,)) for id_ in ids]
    ranking = rank_documents(candidates, scored([0.4, 0.4, 0.6]), ONE)
    assert [item.item for item in ranking] == [ids[2], ids[1], ids[0]]


def test_a_ranking_may_keep_to_the_floor() -> None:
    scores = scored([0.4, 0.05, -0.2])
    assert [document.score for document in rank_documents(documents(3), scores, ONE)] == [
        0.4,
        0.05,
        -0.2,
    ]
    above = rank_documents(documents(3), scores, ONE, SearchSettings(floor=0.1))
    assert [item.score for item in above] == [0.4]


@given(st.lists(COSINES, min_size=1, max_size=15), st.integers(0, 6), COSINES, COSINES)
def test_choosing_never_misses_and_never_exceeds(
    cosines: list[float], top_n: int, include: float, floor: float
) -> None:
    settings = SearchSettings(top_n=top_n, include_score=include, floor=floor)
    items = choose(cosines, settings)
    sure = [cosine for cosine in cosines if cosine >= include and cosine > floor]
    above = [cosine for cosine in cosines if cosine > floor]
    expected = max(len(sure), min(top_n, len(above)))
    assert items == sorted(above, reverse=True)[:expected]


@given(st.lists(COSINES, min_size=2, max_size=10, unique=True), st.randoms())
def test_another_order_of_candidates_changes_nothing_but_ties(
    cosines: list[float], chance: Random
) -> None:
    order = list(range(len(cosines)))
    chance.shuffle(order)
    candidates = documents(len(cosines))
    there = choose_items(candidates, scored(cosines), ONE, PLAIN)
    back = choose_items(
        [candidates[at] for at in order], scored([cosines[at] for at in order]), ONE, PLAIN
    )
    assert there == back


@given(
    st.lists(st.lists(COSINES, min_size=6, max_size=6), min_size=1, max_size=5),
    st.integers(1, 4),
    COSINES,
)
def test_every_part_that_has_a_match_is_represented(
    rows: list[list[float]], top_n: int, floor: float
) -> None:
    query = Query(parts=tuple(QueryPart(text=str(row)) for row in range(len(rows))))
    settings = SearchSettings(top_n=top_n, floor=floor)
    chosen_ids = {item.item for item in choose_items(documents(6), scored(*rows), query, settings)}
    for row in rows:
        if max(row) > floor:
            assert rule(row.index(max(row))) in chosen_ids


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_score_is_the_best_of_any_chunk(chunks: int) -> None:
    candidates = [Document(rule(0), tuple(f"c{number}" for number in range(chunks)))]
    cosines = [0.2 + number / 10 for number in range(chunks)]
    (items,) = choose_items(candidates, scored(cosines), ONE, PLAIN)
    assert items.score == pytest.approx(max(cosines))
    assert items.chunk == f"c{chunks - 1}"
