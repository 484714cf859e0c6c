"""What a request costs: before it is sent, and from what its provider reported.

Law: where the price of a target is not known, there is no cost; that is not the same as none.

Private: see `lamina` for what is public.
"""

from msgspec import Struct

from lamina.core.values.prices import MILLION, PriceTier
from lamina.core.values.settings import Target
from lamina.core.values.totals import TargetUsage
from lamina.core.values.usage import Usage

HOUR_S = 3600


class CostRange(Struct, frozen=True, kw_only=True):
    """The least and the most that a request can cost, in US dollars."""

    low: float
    high: float


def cost_of(usage: Usage, target: Target) -> float | None:
    """What a request cost, in US dollars; None if nobody knows the price of its target."""
    return None if target.prices is None else _pay(usage, target.prices.tier_for(usage.input))


def sum_cost(paid: TargetUsage, target: Target) -> float | None:
    """What all requests of a sum cost; None if nobody knows the price of their target."""
    return (
        None if target.prices is None else _pay(paid.usage, target.prices.tier_for(paid.above + 1))
    )


def _pay(usage: Usage, tier: PriceTier) -> float:
    # A provider's figures may contradict one another; they are paid for as they stand.
    fresh = max(0, usage.input - usage.cached - usage.written)
    price = (
        fresh * tier.input
        + usage.cached * tier.read
        + max(0, usage.written - usage.written_long) * tier.write
        + usage.written_long * tier.write_long
        + usage.output * tier.output
    )
    return price / MILLION


def storage_cost(tokens: int, seconds: float, target: Target) -> float | None:
    """What it costs to store an explicit cache for a while; None if nobody knows the price."""
    if target.prices is None:
        return None
    return tokens * max(0.0, seconds) / HOUR_S * target.prices.storage / MILLION


def cost_range(
    input_tokens: int,
    output_limit: int,
    target: Target,
    *,
    cached: int = 0,
    writes_long: bool = True,
) -> CostRange | None:
    """What a request may cost. At least: `cached` of its tokens are read from the cache, the others
    are fresh, and no answer comes. At most: nothing is read, everything is paid for as what is
    dearest (written, for the longer lifetime if `writes_long`), and the answer takes all of its
    limit. None if nobody knows the price of the target."""
    if target.prices is None:
        return None
    tier = target.prices.tier_for(input_tokens)
    cached = min(max(cached, 0), input_tokens)
    is_long = writes_long and target.cache.long_lifetime_s is not None
    dearest = max(tier.input, tier.read, tier.write, tier.write_long if is_long else 0.0)
    least = min(tier.read, tier.input, tier.write)
    return CostRange(
        low=(cached * least + (input_tokens - cached) * min(tier.input, tier.write)) / MILLION,
        high=(input_tokens * dearest + output_limit * tier.output) / MILLION,
    )
