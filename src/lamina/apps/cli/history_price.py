"""What history costs where a cache has died, in words."""

from lamina.apps.views.money import write_dollars
from lamina.core.values.request import HistoryPrice

# Below this a person is not told unasked that history is read afresh, in US dollars.
NOTABLE = 0.01


def is_price_news(price: HistoryPrice | None) -> bool:
    """Whether a person is told unasked: of every summary, and of what costs something to keep."""
    return price is not None and (price.is_summarised or (price.keep_cost or 0.0) >= NOTABLE)


def describe_history_price(price: HistoryPrice | None) -> list[str]:
    """What it costs to keep history, and what a summary in its place, as a sentence each."""
    if price is None:
        return []
    kept = f"{price.tokens:,} tokens{_for(price.keep_cost)}"
    if not price.older_tokens:
        return [f"History is read afresh: {kept}."]
    older, length = f"{price.older_tokens:,} tokens", f"{price.summary_tokens:,}"
    if price.is_summarised:
        return [
            f"A summary of {length} tokens stands for {older} of history"
            f"{_now_and_later(price, 'it costs', 'saves')}.",
            f"Read afresh as it was: {kept}.",
        ]
    kept = f"History is read afresh: {kept}."
    if not price.summary_cost:
        return [kept]
    return [kept, f"A summary of {older} of it{_now_and_later(price, 'would cost', 'save')}."]


def _now_and_later(price: HistoryPrice, costs: str, saves: str) -> str:
    if not price.summary_cost:
        return ""
    colon = ": " if price.is_summarised else " "
    now, later = _dollars(price.summary_cost), _dollars(price.summary_saving)
    return f"{colon}{costs} {now} now and {saves} {later} a request"


def _for(cost: float | None) -> str:
    if cost is None:
        return ", cost unknown"
    return f" for {_dollars(cost)}" if cost else ""


def _dollars(cost: float | None) -> str:
    return "under $0.0001" if cost and 0 < cost < 0.0001 else write_dollars(cost)
