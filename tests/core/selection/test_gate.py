"""A question that finds nothing brings nothing."""

from collections.abc import Sequence

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.core.selection.chosen_items import WORD, choose_items, judge_items, worth_of_word
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import FLUENT, HALTING, Scores
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, Query, SearchSettings

USUAL, OPEN = SearchSettings(), SearchSettings(gate=False)
NOTHING_SHARED = "plover"
# Below what is sure to be taken.
COSINES = st.integers(-100, 69).map(lambda hundredths: hundredths / 100)
POOLS = st.lists(COSINES, min_size=1, max_size=30)


def guides(*texts: str) -> list[Document]:
    return [Document(ItemId(f"rule:{place}"), (text,)) for place, text in enumerate(texts)]


def tools(*texts: str) -> list[Document]:
    return [Document(ItemId(f"tool:s{place}/t"), (text,)) for place, text in enumerate(texts)]


def alike(cosines: Sequence[float], query: Query, fluency: float = FLUENT) -> Scores:
    """The same likeness to all parts, no word by number: words are looked for in the texts."""
    rows = len(query.parts)
    cosine = numpy.array([cosines] * rows, numpy.float32)
    return Scores(
        lexical=numpy.zeros_like(cosine), cosine=cosine, fluency=numpy.full(rows, fluency)
    )


def chosen(
    documents: Sequence[Document],
    cosines: Sequence[float],
    question: str = "q",
    settings: SearchSettings = USUAL,
    fluency: float = FLUENT,
) -> set[str]:
    query = split_question(question)
    scores = alike(cosines, query, fluency)
    return {item.item for item in choose_items(documents, scores, query, settings)}


# -- behaviours ------------------------------------------------------------------------------------


def test_small_talk_brings_nothing_though_something_is_always_nearest() -> None:
    candidates = guides("How commits are worded", "How pages are cached")
    query = split_question("Thanks, that was great!")
    choice = judge_items(candidates, alike([0.24, 0.19], query), query, USUAL)
    assert choice.items == ()
    assert choice.lacking is not None
    assert choice.lacking.verdict == (
        "nothing stood out for this question: the evidence for the best is 0.24, and 0.30 is needed"
    )
    assert choice.best == "rule:0"
    assert chosen(candidates, [0.24, 0.19], "Thanks, that was great!", OPEN) == {"rule:0", "rule:1"}


def test_what_stands_out_brings_the_next_best_along() -> None:
    assert chosen(guides("a", "b", "c"), [0.4, 0.2, 0.1]) == {"rule:0", "rule:1"}


def test_a_word_in_common_speaks_for_a_candidate_and_an_everyday_one_does_not() -> None:
    candidates = guides("How commits are worded and what to tell people")
    assert chosen(candidates, [0.24], "Word the commit for me") == {"rule:0"}
    assert chosen(candidates, [0.24], "Tell me what people like") == set()


@pytest.mark.parametrize("size", [1, 5, 19, 500])
def test_one_of_a_few_needs_no_more_than_one_of_many(size: int) -> None:
    cosines = [0.33] + [0.0] * (size - 1)
    assert chosen(guides(*["a"] * size), cosines) == {"rule:0"}
    assert chosen(tools(*["a"] * size), cosines) == {"tool:s0/t"}


def test_from_the_include_score_on_nothing_else_has_to_speak_for_an_item() -> None:
    assert chosen(tools("a"), [0.7]) == {"tool:s0/t"}
    assert chosen(tools("a"), [0.45], settings=SearchSettings(include_score=0.45)) != set()


@pytest.mark.parametrize("settings", [OPEN, SearchSettings(floor=0.1), SearchSettings(floor=0.2)])
def test_whoever_switches_it_off_or_sets_a_floor_decides_alone(settings: SearchSettings) -> None:
    assert chosen(tools("a", "b"), [0.25, 0.05], settings=settings) == {"tool:s0/t"}


def test_a_question_that_leans_on_the_one_before_has_its_evidence() -> None:
    query = split_question("And tomorrow?", recent=["Will it rain in Berlin?"])
    rows = numpy.array([[0.05] if not part.recent else [0.4] for part in query.parts])
    scores = Scores(lexical=numpy.zeros_like(rows), cosine=rows.astype(numpy.float32))
    (item,) = choose_items(guides("How to read the sky"), scores, query, USUAL)
    assert item.score == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("question", "places"), [("Which migration comes first?", 1), ("What a good day", 0)]
)
def test_by_words_alone_one_that_is_not_everyday_is_enough(question: str, places: int) -> None:
    texts = ("A migration is written by hand", "What makes a good day")
    query = split_question(question)
    lexical = numpy.array([[1.0, 0.0] if places else [0.0, 1.0]] * len(query.parts), numpy.float32)
    items = choose_items(guides(*texts), Scores(lexical=lexical), query, USUAL)
    assert [item.item for item in items] == ["rule:0"] * places


def test_the_less_an_encoder_knows_a_language_the_more_a_word_speaks() -> None:
    assert worth_of_word(FLUENT) == WORD < worth_of_word((FLUENT + HALTING) / 2)
    candidates = guides("Kuinka muutokset kirjataan")
    assert chosen(candidates, [0.16], "muutokset", fluency=FLUENT) == set()
    assert chosen(candidates, [0.16], "muutokset", fluency=HALTING) == {"rule:0"}


# -- laws ------------------------------------------------------------------------------------------


@given(POOLS, st.integers(0, 29), COSINES)
def test_a_better_likeness_never_closes_the_gate(
    cosines: list[float], place: int, better: float
) -> None:
    candidates = tools(*[NOTHING_SHARED] * len(cosines))
    assume(chosen(candidates, cosines))
    place %= len(cosines)
    raised = [*cosines[:place], max(cosines[place], better), *cosines[place + 1 :]]
    assert chosen(candidates, raised)


@given(st.lists(COSINES, min_size=2, max_size=12, unique=True), st.randoms())
def test_the_order_of_candidates_makes_no_difference(cosines: list[float], random: object) -> None:
    texts = [f"{NOTHING_SHARED} {place}" for place in range(len(cosines))]
    pairs = list(zip(tools(*texts), cosines, strict=True))
    expected = chosen([document for document, _ in pairs], cosines)
    random.shuffle(pairs)  # type: ignore[attr-defined]
    shuffled = chosen([document for document, _ in pairs], [cosine for _, cosine in pairs])
    assert shuffled == expected


@given(POOLS, st.integers(1, 200))
def test_further_unrelated_candidates_change_nothing(cosines: list[float], more: int) -> None:
    before = chosen(tools(*[NOTHING_SHARED] * len(cosines)), cosines)
    every = [*cosines, *[-1.0] * more]
    assert chosen(tools(*[NOTHING_SHARED] * len(every)), every) == before


@given(POOLS, st.booleans())
def test_the_gate_takes_all_or_nothing(cosines: list[float], is_tool: bool) -> None:
    texts = [NOTHING_SHARED] * len(cosines)
    candidates = tools(*texts) if is_tool else guides(*texts)
    gated = chosen(candidates, cosines)
    assert gated in (set(), chosen(candidates, cosines, settings=OPEN))


@given(st.lists(st.sampled_from(["oak", "elm", "ash", "fir", "yew"]), unique=True), COSINES)
def test_more_words_in_common_never_close_the_gate(words: list[str], cosine: float) -> None:
    for count in range(len(words)):
        fewer, more = (guides(" ".join(["x", *words[:number]])) for number in (count, count + 1))
        question = "oak elm ash fir yew"
        assert chosen(fewer, [cosine], question) <= chosen(more, [cosine], question)
