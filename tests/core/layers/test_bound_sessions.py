"""Thinking that is bound to what stood before it, in drawn sessions."""

from pathlib import Path

import pytest
from tests.core.layers.bound_sessions import VENDORS, play_many

SESSIONS = range(60)


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_request_is_refused_for_its_thinking_and_none_that_is_valid_is_left_out(
    vendor: str, tmp_path: Path
) -> None:
    tally, problems = play_many(SESSIONS, VENDORS[vendor](), tmp_path)

    assert problems == []
    assert tally.refused == tally.valid_left_out == 0
    # There was something to decide.
    assert tally.kept > 100
    assert tally.left_out > 100
    assert tally.reported > 20
