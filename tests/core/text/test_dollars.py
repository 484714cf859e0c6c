"""Amounts of money; the web app has the same table (`web/src/lib/numbers.test.ts`)."""

import pytest

from lamina.core.text.money import dollar_range, dollars

CASES = [
    (0.0, "$0"),
    (0.00000004, "under $0.000001"),
    (0.00012, "$0.000120"),
    (0.0009, "$0.000900"),
    (0.00213, "$0.0021"),
    (0.0421, "$0.0421"),
    (0.0994, "$0.0994"),
    (0.0996, "$0.10"),
    (12.5, "$12.50"),
    (1234.5, "$1,234.50"),
    (-0.0421, "-$0.0421"),
    (-3.0, "-$3.00"),
]


@pytest.mark.parametrize(("amount", "text"), CASES)
def test_an_amount_has_as_many_digits_as_tell_something(amount: float, text: str) -> None:
    assert dollars(amount) == text


def test_a_range_that_is_one_price_is_written_once() -> None:
    assert dollar_range(0.0421, 0.0421) == "$0.0421"
    assert dollar_range(0.0021, 1.5) == "$0.0021 to $1.50"
