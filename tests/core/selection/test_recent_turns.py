"""When the questions before this one count, and when they do not."""

import numpy
import pytest

from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.question import leans_on_before, split_question
from lamina.core.selection.scores import Scores
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, Query, SearchSettings

DOCUMENTS = [Document(ItemId("rule:a"), ("a",)), Document(ItemId("rule:b"), ("b",))]


def chosen(query: Query, *rows: tuple[float, float]) -> list[str]:
    """What is taken, given the likeness of each part to `a` and to `b`."""
    assert len(query.parts) == len(rows)
    cosine = numpy.array(rows, numpy.float32)
    scores = Scores(lexical=numpy.zeros_like(cosine), cosine=cosine)
    return [item.item for item in choose_items(DOCUMENTS, scores, query, SearchSettings())]


@pytest.mark.parametrize(
    "text", ["And in Berlin?", "Do it again", "Add that to the report as a new chapter", "那个呢"]
)
def test_a_short_or_pointing_question_leans_on_those_before(text: str) -> None:
    assert leans_on_before(text)


@pytest.mark.parametrize(
    "text",
    [
        "How do I roll back the deployment on the cluster?",
        "Write a poem about autumn leaves falling slowly into cold rivers of this northern country",
    ],
)
def test_a_question_that_speaks_for_itself_does_not(text: str) -> None:
    assert not leans_on_before(text)
    assert split_question(text, recent=["How should I name functions?"]) == split_question(text)


def test_a_question_that_finds_nothing_gets_what_those_before_found() -> None:
    query = split_question("And in Berlin?", recent=["What is the weather?"])
    assert chosen(query, (0.1, 0.0), (0.8, 0.1)) == ["rule:a"]


def test_a_question_that_finds_something_gets_nothing_from_those_before() -> None:
    query = split_question("And in Berlin?", recent=["What is the weather?"])
    assert chosen(query, (0.1, 0.6), (0.8, 0.1)) == ["rule:b"]
