"""Which passages answer a question."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.chosen_passages import ChosenPassage, choose_passages
from lamina.core.selection.expansion import expand_by_search, expansion_query
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import Scores, measure_fits, rank_documents
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, Query, QueryPart, SearchSettings, SelectedItem

ASKED = Query(parts=(QueryPart(text="pier", whole=True),))


def notes(*sizes: int) -> list[Document]:
    """Documents by digest, with so many chunks each."""
    return [
        Document(ItemId(f"note:{number}"), digests=(bytes(32),) * size)
        for number, size in enumerate(sizes)
    ]


def alike(*cosines: float) -> Scores:
    return Scores(
        lexical=numpy.zeros((1, len(cosines)), numpy.float32),
        cosine=numpy.array([cosines], numpy.float32),
    )


def words(*shared: float) -> Scores:
    return Scores(lexical=numpy.array([shared], numpy.float32))


def places(passages: tuple[ChosenPassage, ...]) -> list[tuple[int, int]]:
    return [(passage.document, passage.place) for passage in passages]


def choose(
    documents: list[Document],
    scores: Scores,
    *,
    top: int = 10,
    share: int = 3,
    floor: float = 0.15,
    allowed: list[bool] | None = None,
) -> tuple[ChosenPassage, ...]:
    return choose_passages(
        documents,
        scores,
        ASKED,
        top=top,
        per_document=share,
        floor=floor,
        allowed=None if allowed is None else numpy.array(allowed, bool),
    )


def test_passages_come_best_first_with_their_places_and_scores() -> None:
    passages = choose(notes(2, 0, 2), alike(0.2, 0.6, 0.9, 0.1))
    assert places(passages) == [(2, 0), (0, 1), (0, 0)]
    assert [passage.score for passage in passages] == pytest.approx([0.9, 0.6, 0.2])
    assert [passage.fit for passage in passages] == sorted(
        (passage.fit for passage in passages), reverse=True
    )


def test_a_document_gives_no_more_than_its_share_and_others_move_up() -> None:
    scores = alike(0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    assert places(choose(notes(4, 2), scores, top=3, share=2)) == [(0, 0), (0, 1), (1, 0)]
    assert places(choose(notes(4, 2), scores, top=2, share=2)) == [(0, 0), (0, 1)]
    assert choose(notes(4, 2), scores, top=0) == choose(notes(4, 2), scores, share=0) == ()


def test_a_long_document_in_front_does_not_hide_the_others() -> None:
    scores = alike(*[0.9] * 500, 0.5, 0.4)
    assert places(choose(notes(500, 1, 1), scores, top=3, share=1)) == [(0, 0), (1, 0), (2, 0)]


def test_nothing_at_or_below_the_floor_is_chosen() -> None:
    assert places(choose(notes(3), alike(0.15, 0.16, -0.2))) == [(0, 1)]
    assert choose(notes(), alike()) == ()


def test_by_words_alone_something_has_to_be_shared() -> None:
    passages = choose(notes(2, 2), words(0.0, 2.0, 1.0, 0.0), floor=0.9)
    assert places(passages) == [(0, 1), (1, 0)]
    assert [passage.score for passage in passages] == [None, None]


def test_a_passage_without_a_vector_is_chosen_by_its_words() -> None:
    nan = float("nan")
    scores = Scores(
        lexical=numpy.array([[0.0, 3.0, 0.0]], numpy.float32),
        cosine=numpy.array([[0.5, nan, nan]], numpy.float32),
    )
    passages = choose(notes(1, 1, 1), scores)
    assert sorted((passage.document, passage.score) for passage in passages) == [
        (0, 0.5),
        (1, None),
    ]


def test_equals_keep_the_order_of_their_documents() -> None:
    scores = alike(*[0.5] * 60)
    assert places(choose(notes(*[1] * 60), scores, top=4)) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_marks_for_other_documents_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 marks for 2 documents"):
        choose(notes(1, 1), alike(0.5, 0.5), allowed=[True])


@given(st.data())
def test_a_mask_is_as_good_as_searching_the_allowed_documents_alone(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 3), max_size=6))
    allowed = [data.draw(st.booleans()) for _ in sizes]
    owners = [number for number, size in enumerate(sizes) for _ in range(size)]
    number = st.integers(0, 9).map(lambda tenths: tenths / 10)
    lexical = numpy.array([[data.draw(number) for _ in owners] for _ in range(2)], numpy.float32)
    cosine = numpy.array([[data.draw(number) for _ in owners] for _ in range(2)], numpy.float32)
    query = Query(
        parts=(QueryPart(text="a", whole=True), QueryPart(text="b", recent=True, weight=0.5))
    )
    columns = [column for column, owner in enumerate(owners) if allowed[owner]]
    inside = [number for number, may in enumerate(allowed) if may]
    documents = notes(*sizes)
    for vectors in (True, False):
        by_mask = choose_passages(
            documents,
            Scores(lexical=lexical, cosine=cosine if vectors else None),
            query,
            top=4,
            per_document=2,
            floor=0.15,
            allowed=numpy.array(allowed, bool),
        )
        alone = choose_passages(
            [documents[number] for number in inside],
            Scores(lexical=lexical[:, columns], cosine=cosine[:, columns] if vectors else None),
            query,
            top=4,
            per_document=2,
            floor=0.15,
        )
        assert [
            (passage.document, passage.place, passage.fit, passage.score) for passage in by_mask
        ] == [
            (inside[passage.document], passage.place, passage.fit, passage.score)
            for passage in alone
        ]


@given(
    st.lists(st.integers(0, 9).map(lambda tenths: tenths / 10), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_the_best_passages_are_those_that_fit_best_of_all(cosines: list[float], top: int) -> None:
    documents = notes(*[1] * len(cosines))
    scores = alike(*cosines)
    fit = measure_fits(documents, scores, ASKED).chunk_fit
    above = [place for place, cosine in enumerate(cosines) if round(cosine, 6) > 0.15]
    best = sorted(above, key=lambda place: (-fit[place], place))[:top]
    assert [passage.document for passage in choose(documents, scores, top=top)] == best


# -- documents by digest elsewhere -----------------------------------------------------------------


def test_items_by_digest_are_ranked_and_chosen_by_place_and_without_a_text() -> None:
    documents = notes(2, 3)
    scores = alike(0.1, 0.2, 0.3, 0.4, 0.9)
    best = SelectedItem(item=documents[1].id, score=pytest.approx(0.9), place=2)  # type: ignore[arg-type]
    assert rank_documents(documents, scores, ASKED, most=1) == (best,)
    assert choose_items(documents, scores, ASKED, SearchSettings(top_n=1)) == (best,)
    (item,) = expand_by_search(documents, scores, ASKED, (), SearchSettings())
    assert (item.item, item.place, item.chunk) == (documents[1].id, 2, "")
    # What has no text at hand is not searched from.
    assert expansion_query(documents, (item,), SearchSettings()).parts == ()


def test_the_place_of_what_fitted_best_goes_along_with_its_text() -> None:
    document = Document(ItemId("note:a"), ("one", "two"))
    (item,) = rank_documents([document], alike(0.3, 0.6), split_question("pier"))
    assert (item.chunk, item.place) == ("two", 1)
    assert (document.size, notes(3)[0].size, Document(ItemId("note:b")).size) == (2, 3, 0)
