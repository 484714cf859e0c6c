"""What history costs after a pause: kept, or summed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fakes.book import SMALL
from tests.strategies import thorough

from lamina.core.ledger import price_history
from lamina.core.values.prices import FREE, Prices, PriceTier, flat_prices
from lamina.core.values.request import HistoryPrice
from lamina.core.values.settings import CacheRules, Settings, Target

PRICED = replace(SMALL, prices=flat_prices(3.0, 15.0, read=0.1, write=1.25, write_long=2.0))
tokens = st.integers(0, 10**6)


def priced(target: Target = PRICED, calibration: float = 1.0, **settings: object) -> HistoryPrice:
    """A hundred thousand tokens, of which eighty thousand could give way to a thousand."""
    return price_history(
        target, Settings(**settings), calibration,  # type: ignore[arg-type]
        beside=10_000, history=100_000, dropped=80_000, summary=1_000,
    )  # fmt: skip


def test_keeping_costs_what_history_costs_to_write_anew() -> None:
    assert priced().keep_cost == pytest.approx(0.1 * 3 * 1.25)


def test_a_summary_costs_its_own_request_and_what_stands_then() -> None:
    asked = 0.09 * 3 * 1.25 + 0.001 * 15
    assert priced().summary_cost == pytest.approx(asked + 0.021 * 3 * 1.25)


def test_a_summary_saves_what_is_no_longer_read_from_the_cache() -> None:
    assert priced().summary_saving == pytest.approx(0.079 * 3 * 0.1)


def test_where_nothing_is_cached_later_requests_would_read_all_of_it_afresh() -> None:
    assert priced(cache_lifetime_s=0).summary_saving == pytest.approx(0.079 * 3 * 1.25)


def test_entries_that_live_longer_cost_more_to_write() -> None:
    target = replace(PRICED, cache=CacheRules(long_lifetime_s=3_600.0))
    assert priced(target, cache_ttl="1h").keep_cost == pytest.approx(0.1 * 3 * 2)
    assert priced(cache_ttl="1h").keep_cost == priced().keep_cost


def test_a_summary_that_was_made_costs_what_was_paid_for_it() -> None:
    price = price_history(
        PRICED, Settings(), 1.0,
        beside=0, history=1_000, dropped=900, summary=100, made_for=2.0, is_made=True,
    )  # fmt: skip
    assert price.summary_cost == pytest.approx(2 + 0.0002 * 3 * 1.25)
    assert price.is_summarised


def test_a_summary_whose_cost_nobody_said_has_none() -> None:
    price = price_history(
        PRICED, Settings(), 1.0, beside=0, history=1_000, dropped=900, summary=100, is_made=True
    )
    assert price.summary_cost is None
    assert price.summary_saving is not None


def test_keeping_may_lift_a_request_above_a_price_step() -> None:
    cheap = PriceTier(input=1.0, output=1.0, read=1.0, write=1.0, write_long=1.0)
    dear = PriceTier(above=50_000, input=2.0, output=2.0, read=2.0, write=2.0, write_long=2.0)
    price = priced(replace(SMALL, prices=Prices(tiers=(cheap, dear))))
    assert price.keep_cost == pytest.approx(0.11 * 2 - 0.01)


def test_tokens_are_those_that_the_provider_counts() -> None:
    price = priced(calibration=1.5)
    assert (price.tokens, price.older_tokens, price.summary_tokens) == (150_000, 120_000, 1_500)


@thorough
@given(tokens, tokens, tokens, tokens)
def test_what_nobody_knows_has_no_price_and_what_is_free_costs_nothing(
    beside: int, history: int, dropped: int, summary: int
) -> None:
    for target, cost in ((SMALL, None), (replace(SMALL, prices=FREE), 0.0)):
        price = price_history(
            target, Settings(), 1.0,
            beside=beside, history=history, dropped=min(dropped, history), summary=summary,
        )  # fmt: skip
        assert price.keep_cost == cost
        assert price.summary_cost == (cost if price.older_tokens else None)
