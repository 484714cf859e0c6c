"""What a request costs, and caches that keep answers, too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.providers import saying
from tests.fakes.sessions import run, words
from tests.strategies import thorough

from lamina.core.ledger import cost_of, cost_range, judge_cache
from lamina.core.values.event import UsageReported
from lamina.core.values.prices import FREE, CostSum, Prices, PriceTier, flat_prices, price_step
from lamina.core.values.request import Agreement, Break, CacheVerdict
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage

PRICED = replace(SMALL, prices=flat_prices(3.0, 15.0, read=0.1, write=1.25))
KEEPS = CacheRules(lifetime_s=None, keeps_answers=True)
figures = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(), 0.0),
        (Usage(input=1_000_000), 3.0),
        (Usage(input=1_000_000, cached=1_000_000), 0.3),
        (Usage(input=1_000_000, written=1_000_000), 3.75),
        (Usage(output=1_000_000), 15.0),
        (Usage(input=1_000_000, cached=500_000, written=250_000, output=100_000), 3.3375),
    ],
)
def test_what_was_cached_costs_less_and_what_was_written_more(usage: Usage, dollars: float) -> None:
    assert cost_of(usage, PRICED) == pytest.approx(dollars)


@thorough
@given(figures, figures, figures, figures)
def test_no_figures_of_a_provider_make_a_cost_below_nothing(
    input: int, cached: int, written: int, output: int
) -> None:
    usage = Usage(input=input, cached=cached, written=written, output=output)
    cost = cost_of(usage, PRICED)
    assert cost is not None
    assert cost >= 0
    assert cost_of(usage, SMALL) is None
    assert cost_of(usage, replace(SMALL, prices=FREE)) == 0


LONG = replace(
    SMALL,
    prices=Prices(
        tiers=(
            PriceTier(input=2.0, output=10.0, read=0.2, write=2.5, write_long=4.0),
            PriceTier(above=200_000, input=4.0, output=15.0, read=0.4, write=5.0, write_long=8.0),
        )
    ),
    cache=CacheRules(long_lifetime_s=3_600.0),
)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input=200_000, output=1_000), 0.41),
        # All of it costs more, with what was read, written and answered.
        (Usage(input=200_001, cached=200_001, output=1_000), 0.0800004 + 0.015),
        (Usage(input=250_000, written=250_000, written_long=250_000), 2.0),
    ],
)
def test_a_long_prompt_costs_more_from_its_first_token_on(usage: Usage, dollars: float) -> None:
    assert cost_of(usage, LONG) == pytest.approx(dollars)


def test_before_it_is_sent_a_request_has_a_least_and_a_most_price() -> None:
    cost = cost_range(100_000, 8_000, LONG, cached=90_000)
    assert cost is not None
    assert cost.low == pytest.approx((90_000 * 0.2 + 10_000 * 2.0) / 1e6)
    assert cost.high == pytest.approx((100_000 * 4.0 + 8_000 * 10.0) / 1e6)
    shorter = cost_range(100_000, 8_000, LONG, writes_long=False)
    assert shorter is not None
    assert shorter.high == pytest.approx((100_000 * 2.5 + 8_000 * 10.0) / 1e6)
    longer = cost_range(200_001, 0, LONG)
    assert longer is not None
    assert longer.low == pytest.approx(200_001 * 4.0 / 1e6)
    assert cost_range(1, 1, SMALL) is None


@thorough
@given(st.data(), st.integers(0, 400_000), st.integers(0, 9_000))
def test_whatever_is_read_written_and_answered_costs_what_was_foreseen(
    data: st.DataObject, prompt: int, limit: int
) -> None:
    cached = data.draw(st.integers(0, prompt))
    written = data.draw(st.integers(0, prompt - cached))
    usage = Usage(
        input=prompt, cached=cached, written=written,
        written_long=data.draw(st.integers(0, written)), output=data.draw(st.integers(0, limit)),
    )  # fmt: skip
    foreseen, cost = cost_range(prompt, limit, LONG, cached=cached), cost_of(usage, LONG)
    assert foreseen is not None
    assert cost is not None
    assert foreseen.low <= cost + 1e-12
    assert cost <= foreseen.high + 1e-12


@thorough
@given(st.integers(0, 1_200_000))
def test_prompts_between_two_steps_have_one_price(prompt: int) -> None:
    prices = LONG.prices
    assert prices is not None
    assert prices.tier_for(prompt) == prices.tier_for(price_step(prompt) + 1)


def test_a_sum_says_what_it_leaves_out() -> None:
    assert CostSum().known == 0.0
    assert CostSum().plus(None).known is None
    mixed = CostSum().plus(0.5).plus(None, 2)
    assert (mixed.known, mixed.priced, mixed.unpriced) == (0.5, 1, 2)


def judge(reported: int, *, held: int | None = 1_180, agree: int = 1_000,
          broke: Break | None = None, input: int = 1_300) -> CacheVerdict:  # fmt: skip
    agreement = Agreement(tokens=agree, segments=3, broke=broke)
    usage = Usage(input=input, cached=reported, output=10)
    return judge_cache(agreement, agree, 5.0, KEEPS, usage, 1.0, held=held)


def test_an_answer_that_is_still_held_is_expected_to_be_found() -> None:
    verdict = judge(1_180)
    assert (verdict.meaning, verdict.expected) == ("as_expected", 1_180)


def test_an_answer_that_is_read_again_is_no_fault() -> None:
    verdict = judge(1_000)
    assert (verdict.meaning, verdict.expected) == ("as_expected", 1_180)
    assert "read again" in verdict.detail


def test_less_than_was_sent_means_that_the_server_lost_it_whatever_is_held() -> None:
    assert judge(200).meaning == "lifetime_passed"


def test_no_more_is_held_than_the_request_has() -> None:
    assert judge(1_099, held=5_000, input=1_100).expected == 1_099


def test_behind_a_break_nothing_of_the_answer_counts() -> None:
    moved = Break(layer="L1", segment=0, source="system", reason="new")
    verdict = judge(400, agree=400, broke=moved)
    assert (verdict.meaning, verdict.expected) == ("prefix_moved", 400)


def test_where_answers_are_not_kept_nothing_changes() -> None:
    assert judge(1_000, held=None).expected == 1_000


def test_a_session_expects_the_answer_it_was_given_and_one_token_less() -> None:
    async def body() -> None:
        target = replace(SMALL, cache=KEEPS)
        first = saying(words(400, "answer"), usage=Usage(input=100, cached=0, output=400))
        second = saying("Nine.", usage=Usage(input=520, cached=499, output=2))
        async with Scene(first, second, chat=True, target=target) as scene:
            await scene.ask(words(95, "question"))
            await scene.ask("Which berth?")
            (reported,) = scene.told(UsageReported)
            assert reported.verdict.expected == 499
            assert reported.verdict.meaning == "as_expected"

    run(body())
