"""Prices requests: the price range before sending, the cost of the reported usage, of rewriting a
lost cache, and of keeping or summarising history.

Laws: if the price of a target is unknown, there is no cost: None, and never 0. A request never
exceeds its upper price, even if tokens are estimated.

Private: see `lamina` for what is public.
"""

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.ledger.cache_verdict import expected_cached_tokens
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.prices import MILLION, PriceTier
from lamina.core.values.request import BoundaryKind, HistoryPrice, RequestContext
from lamina.core.values.settings import Settings, Target, cache_rules
from lamina.core.values.totals import TargetUsage
from lamina.core.values.usage import Usage

HOUR_S = 3600


class CostRange(Struct, frozen=True, kw_only=True):
    """The minimum and maximum cost of a request, in US dollars."""

    low: float
    high: float


def cost_of(usage: Usage, target: Target) -> float | None:
    """Return the cost of a request, in US dollars; None if its target's price is unknown."""
    return None if target.prices is None else _pay(usage, target.prices.tier_for(usage.input))


def sum_cost(paid: TargetUsage, target: Target) -> float | None:
    """Return the cost of all requests in a sum; None if their target's price is unknown."""
    return (
        None if target.prices is None else _pay(paid.usage, target.prices.tier_for(paid.above + 1))
    )


def _pay(usage: Usage, tier: PriceTier) -> float:
    # A provider's figures may contradict one another; they are billed as reported.
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
    """Return the cost of storing an explicit cache for a while; None if the price is unknown."""
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
    """Return the possible cost of a request. Minimum: `cached` of its tokens are read from the
    cache, the others are fresh, and there is no answer. Maximum: nothing is read, everything is
    charged at the highest rate (written, for the longer lifetime if `writes_long`), and the answer
    uses its whole limit. None if the target's price is unknown."""
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


# How far a provider's count may exceed ours: a little for frames if we count as it does, more if we
# estimate.
EXACT_MARGIN, ESTIMATE_MARGIN = 1.02, 1.15
FRAME_TOKENS = 64
# Anthropic requires a limit; this is sent if none was set.
ANTHROPIC_OUTPUT = 8_192
# Boundaries after which the cache contains nothing of the earlier requests.
_COLD: tuple[BoundaryKind, ...] = ("first_request", "expired", "model_change")
# Boundaries that are necessary, because otherwise the request would not fit.
_NEEDED: tuple[BoundaryKind, ...] = ("first_request", "compaction", "window", "history")


class RequestPrice(Struct, frozen=True, kw_only=True):
    """The basis of a request's price: tokens, at the provider's highest possible count, and at our
    count (`counted`); how many of them it should find in its cache; the maximum length of the
    answer; and the maximum cost of storing an explicit cache, if that is being paid for."""

    target: Target
    tokens: int
    counted: int
    cached: int
    output_limit: int
    writes_long: bool = False
    storage: float = 0.0

    @property
    def range(self) -> CostRange | None:
        """The range from the best case to the maximum; None if the price is unknown."""
        return self.with_output(self.output_limit)

    def with_output(self, limit: int) -> CostRange | None:
        """Return the price range with another limit for the answer."""
        upper = cost_range(self.tokens, limit, self.target, writes_long=self.writes_long)
        lower = cost_range(self.counted, 0, self.target, cached=self.cached)
        if upper is None or lower is None:
            return None
        high = upper.high + self.storage
        return CostRange(low=min(lower.low, high), high=high)


def upper_tokens(tokens: int, target: Target) -> int:
    """Return the maximum tokens that a provider may count for `tokens` in our count."""
    margin = EXACT_MARGIN if target.exact_tokens else ESTIMATE_MARGIN
    return ceil(tokens * margin) + FRAME_TOKENS


def output_limit(options: Options, target: Target) -> int:
    """Return the maximum length of an answer."""
    if options.max_tokens is not None:
        return options.max_tokens
    if target.wire == "anthropic":
        return min(ANTHROPIC_OUTPUT, target.max_output)
    return target.max_output


def price_request(
    context: RequestContext, options: Options, settings: Settings, target: Target
) -> RequestPrice:
    """Return the price of a planned request."""
    rules = cache_rules(settings, target)
    cached = 0
    if not any(boundary.kind in _COLD for boundary in context.boundaries):
        agreeing = round(context.agreement.tokens * context.fit.calibration)
        cached = expected_cached_tokens(agreeing, agreeing, rules)
    return RequestPrice(
        target=target,
        tokens=upper_tokens(context.fit.tokens, target),
        counted=context.fit.tokens,
        cached=cached,
        output_limit=output_limit(options, target),
        writes_long=writes_long(settings, target),
    )


def writes_long(settings: Settings, target: Target) -> bool:
    """Return whether cache entries are written for the longer lifetime."""
    return settings.cache_ttl == "1h" and target.cache.long_lifetime_s is not None


class CacheRewrite(Struct, frozen=True, kw_only=True):
    """Cached content that is written again: the number of tokens, the reason, and the extra cost
    over reading them, in US dollars."""

    kind: BoundaryKind
    reason: str
    tokens: int
    price: float


def price_rewrite(
    context: RequestContext,
    settings: Settings,
    target: Target,
    sent: RequestEntry | None,
    sent_target: Target | None,
) -> CacheRewrite | None:
    """Return the part that a request writes again although it could have been read from the cache
    left by the last request, `sent`. None if there is none, if it is unavoidable, or if the price
    is unknown."""
    boundary = next((b for b in context.boundaries if b.kind not in _NEEDED), None)
    if boundary is None or sent is None or sent_target is None:
        return None
    is_cold = any(boundary.kind in _COLD for boundary in context.boundaries)
    calibration = context.fit.calibration
    agreeing = 0 if is_cold else context.agreement.tokens
    standing = min(sent.cached_tokens * calibration, context.fit.tokens)
    tokens = round(standing - agreeing * calibration)
    if tokens <= 0 or standing < sent_target.cache.minimum:
        return None
    written = tokens if target.cache.explicit else 0
    is_long = writes_long(settings, target)
    writing = cost_of(
        Usage(input=tokens, written=written, written_long=written if is_long else 0), target
    )
    reading = cost_of(Usage(input=tokens, cached=tokens), sent_target)
    if writing is None or reading is None:
        return None
    return CacheRewrite(
        kind=boundary.kind, reason=boundary.reason, tokens=tokens, price=max(0.0, writing - reading)
    )


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
    """Return the price of `history` in a request with `beside` other tokens, and of a `summary` in
    place of the first `dropped` of it: one made for `made_for` dollars, or one that `target` would
    make. Tokens are in our count; `calibration` is the provider's count of one."""
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
    # Without a cache, later requests read everything again as well.
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
