"""Thirty turns with notes, edits, tools, a compaction and pauses, on every emulated vendor: the
conversation of `bench/providers.py` with shorter answers, and what is promised of it."""

import anyio
import pytest

from lamina.core.values.settings import Settings
from thirty_turns import KEPT_TURNS, TURNS, Outcome, make_plan, play_lamina

PLAN = make_plan(answer_tokens=40)
TARGETS = (
    "openai:gpt-4o",
    "openai:gpt-5.6",
    "anthropic:claude-sonnet-5",
    "gemini:gemini-2.5-flash",
)
# Those whose caches are written at markers.
MARKED = TARGETS[1:3]


def play(target: str, settings: Settings) -> Outcome:
    return anyio.run(play_lamina, target, settings, PLAN)


def meanings(outcome: Outcome) -> set[str]:
    return {verdict.meaning for verdict in outcome.verdicts if verdict}


@pytest.mark.parametrize("target", TARGETS)
def test_thirty_turns_read_what_the_rules_allow_and_the_ledger_knew_it(target: str) -> None:
    outcome = play(target, Settings())
    # Six turns called tools, and one request was for the summary.
    assert len(outcome.rows) == TURNS + 6 + 1
    assert outcome.of_allowed >= 0.95
    assert outcome.markers <= 4
    assert (outcome.markers > 0) == (target in MARKED)
    assert outcome.error <= 0.01
    # Not by sending little that could be read: with five pauses it is most of the input.
    assert outcome.share > 0.7
    assert {"as_expected", "prefix_moved", "lifetime_passed"} <= meanings(outcome)
    assert "routed_elsewhere" not in meanings(outcome)


@pytest.mark.parametrize("target", MARKED)
def test_a_library_that_changes_on_the_way_is_found_up_to_a_marker(target: str) -> None:
    outcome = play(target, Settings(promotion="eager"))
    # A note that is edited stands in the middle of the library, where no marker is: what agrees
    # in front of it is allowed, and not found.
    assert outcome.of_allowed >= 0.9
    assert outcome.markers <= 4
    # Each request is the only one there is: nobody else could have had it.
    assert "routed_elsewhere" not in meanings(outcome)


def test_the_plan_has_what_it_says() -> None:
    said = [answer for turn in PLAN.turns for answer in turn.answers]
    assert len(PLAN.turns) == TURNS
    assert max(len(answer.calls) for answer in said) == 18
    edited = [turn for turn in PLAN.turns if set(turn.written) & set(_attached_before(turn.number))]
    assert len(edited) == 4
    assert sum(turn.idle > 300 for turn in PLAN.turns) == 4
    assert len(PLAN.answers()) == len(said) + 1
    assert KEPT_TURNS < TURNS


def _attached_before(number: int) -> tuple[str, ...]:
    return PLAN.turns[number - 2].attached if number > 1 else ()
