"""What was only just not chosen, in words."""

import anyio
import pytest
from msgspec.structs import replace
from tests.fakes.index import IndexFake
from tests.fakes.tools import tool

from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.engine.runners.agent_search import choose_candidates, near_miss
from lamina.engine.sources.candidates import Candidates, offered_candidate


def test_a_score_a_little_below_zero_is_no_less_than_nothing() -> None:
    miss = near_miss("tool:/write", -0.001, SearchSettings(), "now")
    assert miss.why == "0.00 is not above 0.15, the least that is chosen"


@pytest.mark.parametrize(
    ("top_n", "taken", "words"),
    [
        (5, 5, "the best 5 and all from 0.7 on are taken"),
        (5, 6, "the best 5 and all from 0.7 on are taken"),
        (1, 1, "only the best one and all from 0.7 on are taken"),
        # Four places were left: others have all of the texts that are looked at.
        (5, 1, "no text of it is among the 20 that fit best"),
    ],
)
def test_a_near_miss_says_how_many_others_were_taken(top_n: int, taken: int, words: str) -> None:
    miss = near_miss("rule:late", 0.4, SearchSettings(top_n=top_n), "now", taken=taken)
    assert miss.why == f"others fit better: {words}"


def test_a_request_of_before_counts_nothing_that_it_does_not_know() -> None:
    assert near_miss("rule:late", 0.4, SearchSettings(), "request").why == "others fit better"


@pytest.mark.parametrize("top", [1, 2])
def test_just_the_best_are_in_order_and_near_misses_know_how_many_there_were(top: int) -> None:
    async def body() -> None:
        tools = [tool(name) for name in ("sail", "row", "moor")]
        # Words rank them differently than likeness does.
        alike = {"moor": {"tool:fake/sail": 0.5, "tool:fake/row": 0.3, "tool:fake/moor": 0.45}}
        candidates = Candidates(
            candidates=tuple(
                offered_candidate(replace(t, include="agent"), Settings()) for t in tools
            )
        )
        choice = await choose_candidates("moor", candidates, IndexFake(alike), len, top=top)
        scores = [item.score or 0.0 for item in choice.items]
        assert len(scores) == top
        assert scores == sorted(scores, reverse=True)
        assert {miss.most for miss in choice.near} == {top}
        for miss in choice.near:
            assert ("only the best one is taken" in miss.why) == (top == 1)
            assert ("the best 2 are taken" in miss.why) == (top == 2)

    anyio.run(body)
