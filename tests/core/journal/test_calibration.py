"""What a provider counts, over what we count.

Point 9: a figure that no tokenizer explains moves nothing, whatever a damaged line says.
"""

import pytest

from lamina.core.journal.calibration import calibrate, is_believable

HUGE = 10**400


@pytest.mark.parametrize(
    ("reported", "counted"), [(HUGE, 10), (10, HUGE), (HUGE, HUGE), (1, 10), (31, 10)]
)
def test_a_figure_that_no_tokenizer_explains_moves_nothing(reported: int, counted: int) -> None:
    assert not is_believable(reported, counted)
    assert calibrate(1.5, reported, counted) == 1.5


def test_of_a_believable_figure_half_is_taken() -> None:
    assert calibrate(None, 20, 10) == 2.0
    assert calibrate(1.0, 20, 10) == 1.5
