"""What history costs where the cached prefix is dead: kept as it stands, or summed up.

Law: what is not known is None, and never 0.
"""

from msgspec.structs import replace

from lamina.core.ledger.cost import cost_of
from lamina.core.values.request import HistoryPrice
from lamina.core.values.settings import Settings, Target, cache_rules
from lamina.core.values.usage import Usage


def price_history(
    target: Target,
    settings: Settings,
    calibration: float,
    *,
    beside: int,
    history: int,
    dropped: int = 0,
    summary: int = 0,
    made_for: float | None = None,
    is_made: bool = False,
) -> HistoryPrice:
    """The price of `history` in a request with `beside` other tokens, and of a `summary` in place
    of the first `dropped` of it: one that was made for `made_for` dollars, or that `target` would
    make. Tokens are as we count them; `calibration` is what a provider makes of one."""
    beside, history, dropped, summary = (
        round(tokens * calibration) for tokens in (beside, history, dropped, summary)
    )
    left = history - dropped + summary
    rules = cache_rules(settings, target)
    is_long = settings.cache_ttl == "1h" and target.cache.long_lifetime_s is not None

    def cost(tokens: int, *, fresh: bool = True, output: int = 0) -> float | None:
        usage = Usage(input=tokens, cached=tokens, output=output)
        if fresh:
            usage = replace(usage, cached=0, written=tokens, written_long=tokens * is_long)
        return cost_of(usage, target)

    keep = _difference(cost(beside + history), cost(beside))
    price = HistoryPrice(tokens=history, keep_cost=keep, is_summarised=is_made)
    if not dropped:
        return price
    if not is_made:
        made_for = cost(beside + dropped, output=summary)
    rest = _difference(cost(beside + left), cost(beside))
    # Without a cache, later requests read everything afresh as well.
    uncached = rules.lifetime_s == 0
    with_all, with_summary = (
        cost(beside + history, fresh=uncached),
        cost(beside + left, fresh=uncached),
    )
    return replace(
        price,
        older_tokens=dropped,
        summary_tokens=summary,
        summary_cost=None if made_for is None or rest is None else made_for + rest,
        summary_saving=_difference(with_all, with_summary),
    )


def _difference(larger: float | None, smaller: float | None) -> float | None:
    return None if larger is None or smaller is None else larger - smaller
