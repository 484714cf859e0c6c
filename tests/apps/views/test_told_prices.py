"""The price of history as people read it."""

from lamina.apps.cli.report_text import describe_history_price, is_price_news
from lamina.core.values.request import HistoryPrice

SMALL = HistoryPrice(tokens=1_200, keep_cost=0.0036)
LARGE = HistoryPrice(
    tokens=21_300, keep_cost=0.0639, older_tokens=15_000, summary_tokens=900,
    summary_cost=0.0712, summary_saving=0.00004,
)  # fmt: skip
MADE = HistoryPrice(
    tokens=21_300, keep_cost=1.5, older_tokens=15_000, summary_tokens=900,
    summary_cost=1.25, summary_saving=0.2, is_summarised=True,
)  # fmt: skip


def test_what_is_kept_has_a_price_and_so_has_the_other_way() -> None:
    assert describe_history_price(SMALL) == [
        "History is processed again: 1,200 tokens for $0.0036."
    ]
    assert describe_history_price(LARGE) == [
        "History is processed again: 21,300 tokens for $0.0639.",
        "A summary of 15,000 tokens of it would cost $0.0712 now and save $0.000040 per request.",
    ]


def test_a_summary_says_what_it_cost_and_what_keeping_would_have() -> None:
    assert describe_history_price(MADE) == [
        "A summary of 900 tokens replaces 15,000 tokens of history: it costs $1.25 now and saves "
        "$0.20 per request.",
        "Without it, history would be processed again: 21,300 tokens for $1.50.",
    ]


def test_what_is_not_known_is_called_unknown_and_what_is_free_has_no_price() -> None:
    unknown = HistoryPrice(tokens=21_300, older_tokens=15_000, summary_tokens=900)
    assert describe_history_price(unknown) == [
        "History is processed again: 21,300 tokens, cost unknown."
    ]
    free = HistoryPrice(tokens=21_300, keep_cost=0.0, older_tokens=15_000, summary_cost=0.0)
    assert describe_history_price(free) == ["History is processed again: 21,300 tokens."]
    assert describe_history_price(None) == []


def test_a_person_is_told_unasked_of_summaries_and_of_what_costs_a_cent() -> None:
    news = [is_price_news(price) for price in (None, SMALL, LARGE, MADE)]
    assert news == [False, False, True, True]
