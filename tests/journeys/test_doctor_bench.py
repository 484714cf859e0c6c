"""DoctorBench with few sessions: what was planted is found, and nothing else is."""

from collections import Counter
from itertools import pairwise

import pytest

from doctor import MOVES, RECORDERS, judge_group
from doctor_sessions import CAUSES, WIRES, first_difference, play_group


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_planted_cause_is_found_with_its_place(cause: str, wire: str) -> None:
    outcome = judge_group(cause, wire, play_group(cause, wire, 2))
    bodies, transcript = outcome["B"], outcome["T"]
    assert bodies["planted"] >= 1
    assert bodies["right cause"] == bodies["right place"] == bodies["planted"]
    assert transcript["right place"] == transcript["planted"]
    everything = sum(outcome.values(), Counter[str]())
    for wrong in ("proven and wrong", "proven without bytes", "false breaks"):
        assert everything[wrong] == 0
    if cause != "other_machine":
        assert bodies["proven"] == bodies["planted"]


def test_the_bench_plants_what_it_says() -> None:
    assert len(CAUSES) == 16
    assert set(RECORDERS) == {"B", "T", "U"}
    for cause in MOVES:
        (session,) = play_group(cause, "openai", 1)
        places = [request for request in session.requests if request.planted]
        assert places
        assert any(request.place for request in places)
    (session,) = play_group("idle", "anthropic", 1)
    bodies = [request.body for request in session.requests]
    pairs = pairwise(bodies)
    assert all(first_difference(one, other, "anthropic") == ("", None) for one, other in pairs)
