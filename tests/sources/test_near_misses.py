"""What was only just not chosen, in words."""

from lamina.sources.agent_choice import near_miss
from lamina.values.selection import SearchSettings


def test_a_score_a_little_below_zero_is_no_less_than_nothing() -> None:
    miss = near_miss("tool:/write", -0.001, SearchSettings(), "now")
    assert miss.why == "0.00 is not above 0.15, the least that is chosen"
