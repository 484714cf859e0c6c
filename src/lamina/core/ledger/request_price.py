"""What a request may cost before it is sent, and what it costs to write again what a cache had.

Laws: the upper price is one that the request does not pass, also where tokens are estimated. What
nobody knows the price of has none.

Private: see `lamina` for what is public.
"""

from math import ceil

from msgspec import Struct

from lamina.core.ledger.cache_verdict import expected_cached_tokens
from lamina.core.ledger.cost import CostRange, cost_of, cost_range
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.request import BoundaryKind, RequestContext
from lamina.core.values.settings import Settings, Target, cache_rules
from lamina.core.values.usage import Usage

# What a provider may count beyond us: a little for frames where we count as it does, more where we
# estimate.
EXACT_MARGIN, ESTIMATE_MARGIN = 1.02, 1.15
FRAME_TOKENS = 64
# Anthropic wants to be told a limit; this is what it is told if nobody said one.
ANTHROPIC_OUTPUT = 8_192
# Boundaries at which nothing of what was sent is in a cache any more.
_COLD: tuple[BoundaryKind, ...] = ("first_request", "expired", "model_change")
# Those that have to be, or what was sent would not fit.
_NEEDED: tuple[BoundaryKind, ...] = ("first_request", "compaction", "window", "history")


class RequestPrice(Struct, frozen=True, kw_only=True):
    """What goes into the price of a request: tokens, as many as a provider may count, and as many
    as we do (`counted`); how many of them it should find in its cache; how long the answer may be;
    and what storing an explicit cache costs at most, if that is what is paid for."""

    target: Target
    tokens: int
    counted: int
    cached: int
    output_limit: int
    writes_long: bool = False
    storage: float = 0.0

    @property
    def range(self) -> CostRange | None:
        """From what it costs if everything goes well to what it cannot pass; None if nobody knows
        the price."""
        return self.with_output(self.output_limit)

    def with_output(self, limit: int) -> CostRange | None:
        """The same with another limit for the answer."""
        upper = cost_range(self.tokens, limit, self.target, writes_long=self.writes_long)
        lower = cost_range(self.counted, 0, self.target, cached=self.cached)
        if upper is None or lower is None:
            return None
        high = upper.high + self.storage
        return CostRange(low=min(lower.low, high), high=high)


def upper_tokens(tokens: int, target: Target) -> int:
    """As many tokens as a provider may count where we count `tokens`."""
    margin = EXACT_MARGIN if target.exact_tokens else ESTIMATE_MARGIN
    return ceil(tokens * margin) + FRAME_TOKENS


def output_limit(options: Options, target: Target) -> int:
    """How long an answer may be."""
    if options.max_tokens is not None:
        return options.max_tokens
    if target.wire == "anthropic":
        return min(ANTHROPIC_OUTPUT, target.max_output)
    return target.max_output


def price_request(
    context: RequestContext, options: Options, settings: Settings, target: Target
) -> RequestPrice:
    """The price of a request that is planned."""
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
    """Whether entries of the cache are written for the longer lifetime."""
    return settings.cache_ttl == "1h" and target.cache.long_lifetime_s is not None


class CacheRewrite(Struct, frozen=True, kw_only=True):
    """What a cache had and is written once more: how many tokens, for which reason, and what that
    costs over reading them, in US dollars."""

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
    """What a request writes again of what the last one, `sent`, left in a cache, and could have
    been read there. None if nothing is, if it has to be, or if nobody knows the price."""
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
