"""What costs and prices are called, where they are known and where they are not."""

import pytest

from lamina.apps.views.plain_text import (
    write_dollars,
    write_dollars_per_million,
    write_price,
    write_sum,
)
from lamina.core.values.prices import FREE, flat_prices


@pytest.mark.parametrize(
    ("cost", "words"),
    [(None, "cost unknown"), (0.0, "free"), (0.00213, "$0.0021"), (0.1, "$0.10"), (12.5, "$12.50")],
)
def test_a_cost_in_words(cost: float | None, words: str) -> None:
    assert write_dollars(cost) == words


@pytest.mark.parametrize(
    ("cost", "unpriced", "words"),
    [
        (0.5, 0, "$0.50"),
        (None, 3, "cost unknown"),
        (0.5, 1, "$0.50 and 1 request of unknown price"),
        (0.0, 2, "free and 2 requests of unknown price"),
    ],
)
def test_a_sum_in_words_says_what_it_leaves_out(
    cost: float | None, unpriced: int, words: str
) -> None:
    assert write_sum(cost, unpriced) == words


def test_prices_in_words() -> None:
    assert write_price(None) == "price unknown"
    assert write_price(FREE) == "free"
    assert write_price(flat_prices(2.5, 10.0)) == "$2.5 in, $10 out per million tokens"
    figures = (0.01875, 0.3, 2.5, 15.0, 15.625, 112.5)
    assert [write_dollars_per_million(figure) for figure in figures] == [
        "0.01875", "0.30", "2.50", "15", "15.625", "112.50",
    ]  # fmt: skip
