"""What comes along with what was chosen."""

import numpy
import pytest

from lamina.core.selection.expansion import (
    build_similarity_graph,
    expand_by_graph,
    expand_by_search,
    expansion_query,
    find_related,
    result_query,
)
from lamina.core.selection.scores import Scores
from lamina.core.values.item import item_id
from lamina.core.values.selection import (
    Document,
    Query,
    QueryPart,
    SearchSettings,
    SelectedItem,
    preset,
)
from lamina.errors import InvalidSetting

A, B, C, D = (item_id("tool", f"fs/{name}") for name in "abcd")
DOCUMENTS = (Document(A, ("a1", "a2", "a3")), Document(B, ("b1",)), Document(C, ("c1",)))
CHOSEN = (SelectedItem(item=A, score=0.8, chunk="a3"),)


def test_the_second_search_asks_with_the_chunks_of_what_was_chosen() -> None:
    query = expansion_query(DOCUMENTS, CHOSEN, SearchSettings(expansion_chunks=2))
    assert [(part.text, part.source, part.claims) for part in query.parts] == [
        ("a3", A, False),
        ("a1", A, False),
    ]


def scores(*rows: list[float]) -> Scores:
    return Scores(
        cosine=numpy.array(rows, numpy.float32),
        lexical=numpy.zeros((len(rows), len(rows[0])), numpy.float32),
    )


def test_what_is_alike_comes_along_and_says_from_what() -> None:
    query = Query(parts=(QueryPart(text="a1", source=A), QueryPart(text="x", source="other")))
    items = expand_by_search(
        DOCUMENTS,
        scores([1, 1, 1, 0.75, 0.74], [0, 0, 0, 0.1, 0.9]),
        query,
        CHOSEN,
        SearchSettings(),
    )
    assert items == (
        SelectedItem(item=C, score=0.9, origin="expansion", source="other", chunk="c1"),
        SelectedItem(item=B, score=0.75, origin="expansion", source=A, chunk="b1"),
    )
    single = SearchSettings(expansion_top_n=1)
    assert len(expand_by_search(DOCUMENTS, scores([0, 0, 0, 0.8, 0.9]), query, CHOSEN, single)) == 1


def test_without_vectors_nothing_is_expanded() -> None:
    query = expansion_query(DOCUMENTS, CHOSEN, SearchSettings())
    words = Scores(lexical=numpy.ones((len(query.parts), 5), numpy.float32))
    assert expand_by_search(DOCUMENTS, words, query, CHOSEN, SearchSettings()) == ()
    no_vectors = scores(*([[numpy.nan] * 5] * len(query.parts)))
    assert expand_by_search(DOCUMENTS, no_vectors, query, CHOSEN, SearchSettings()) == ()


def test_results_of_tools_are_searched_from_too() -> None:
    query = result_query([("search", "One thing. Another."), ("empty", " ")], SearchSettings())
    assert [(part.text, part.source) for part in query.parts] == [
        ("One thing.", "search"),
        ("Another.", "search"),
    ]


def test_relations_bring_what_is_known_and_not_in_yet() -> None:
    relations: dict[str, tuple[str, ...]] = {A: (B, C, D), B: (A,)}
    assert find_related(CHOSEN, relations, {A, B, C}, {C}) == (
        SelectedItem(item=B, origin="relation", source=A),
    )


def test_a_graph_holds_the_most_alike_and_takes_the_place_of_a_second_search() -> None:
    vectors = numpy.array([[1, 0], [0, 1], [0, 1], [0.8, 0.6], [0.6, -0.8]], numpy.float32)
    graph = build_similarity_graph(DOCUMENTS, vectors, 0.5, 5)
    assert graph == {A: ((B, 0.8), (C, 0.6)), B: ((A, 0.8),), C: ((A, 0.6),)}
    assert build_similarity_graph(DOCUMENTS, vectors, 0.5, 1)[A] == ((B, 0.8),)
    assert expand_by_graph(graph, CHOSEN, (), SearchSettings()) == (
        SelectedItem(item=B, score=0.8, origin="expansion", source=A),
    )
    assert expand_by_graph(graph, CHOSEN, (SelectedItem(item=B),), SearchSettings()) == ()


def test_a_graph_in_blocks_is_the_graph_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = numpy.random.default_rng(5).normal(size=(60, 8)).astype(numpy.float32)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    rows[7] = numpy.nan
    sizes = [1, 4, 0, 7, 2, 1, 15, 30]
    documents = [
        Document(item_id("rule", f"r{number}"), ("c",) * size) for number, size in enumerate(sizes)
    ]
    whole = build_similarity_graph(documents, rows, 0.3, 4)
    monkeypatch.setattr("lamina.core.selection.expansion._BLOCK", 300)
    assert build_similarity_graph(documents, rows, 0.3, 4) == whole
    assert build_similarity_graph([], numpy.zeros((0, 8), numpy.float32), 0.3, 4) == {}


def test_presets_go_from_few_to_many() -> None:
    few, usual, many = (preset(name) for name in ("conservative", "normal", "aggressive"))
    assert usual == SearchSettings()
    assert few.top_n < usual.top_n < many.top_n
    assert few.top_k < usual.top_k < many.top_k


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="conservative, normal, aggressive"):
        preset("wild")  # type: ignore[arg-type]
