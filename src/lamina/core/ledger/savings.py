"""Suggests ways to make a request cheaper that a limit refuses, based on its contents.

Private: see `lamina` for what is public.
"""

from collections.abc import Iterable, Iterator

from lamina.core.ledger.cost import RequestPrice, cost_range
from lamina.core.text.money import dollars
from lamina.core.values.prompt import LayerSize
from lamina.core.values.request import RequestContext
from lamina.core.values.settings import Target
from lamina.core.values.spend_limits import ReachedLimit

# An answer shorter than this is useless.
LEAST_ANSWER = 200
# Less than this share of the price is not worth mentioning.
LEAST_SHARE = 0.1


def find_savings(
    reached: ReachedLimit,
    price: RequestPrice,
    context: RequestContext | None = None,
    layers: Iterable[LayerSize] = (),
    others: Iterable[Target] = (),
) -> tuple[str, ...]:
    """Return the changes that would let a request through, the closest first: a shorter answer, a
    smaller request, another model of `others`, clearing a reservation, another limit."""
    room = reached.limit - reached.sum.counted
    return (
        *_shorter_answer(price, room),
        *_less_input(price, context, layers),
        *_other_model(price, room, others),
        *_waiting(reached),
        f"raise the limit (spend_{reached.scope})"
        + (", or go on tomorrow" if reached.scope == "day" else ""),
    )


def _shorter_answer(price: RequestPrice, room: float) -> Iterator[str]:
    without, whole = price.with_output(0), price.range
    if without is None or whole is None or not price.output_limit:
        return
    per_token = (whole.high - without.high) / price.output_limit
    if per_token <= 0:
        return
    tokens = int((room - without.high) / per_token)
    if LEAST_ANSWER <= tokens < price.output_limit:
        yield (
            f"an answer of at most {tokens:,} tokens would fit (max_tokens={tokens}; now "
            f"{price.output_limit:,})"
        )


def _less_input(
    price: RequestPrice, context: RequestContext | None, layers: Iterable[LayerSize]
) -> Iterator[str]:
    whole, without = price.range, price.with_output(0)
    if whole is None or without is None or not price.tokens:
        return
    per_token = without.high / price.tokens

    def is_worth_it(tokens: int) -> bool:
        return tokens * per_token >= LEAST_SHARE * whole.high

    fresh = [item for item in context.items if item.placement == "message"] if context else []
    largest = max(fresh, key=lambda item: item.tokens, default=None)
    if largest is not None and is_worth_it(largest.tokens):
        yield f"{largest.label} is {dollars(largest.tokens * per_token)} of it: attach less"
    history = sum(size.tokens for size in layers if size.layer == "L4")
    if is_worth_it(history):
        yield f"history is {dollars(history * per_token)} of it: compact it"


def _other_model(price: RequestPrice, room: float, others: Iterable[Target]) -> Iterator[str]:
    """Yield the most expensive model of the same provider that would fit, as the closest
    alternative."""
    fitting: dict[str, float] = {}
    for other in others:
        if other.provider != price.target.provider or other.window < price.tokens:
            continue
        limit = min(price.output_limit, other.max_output)
        cost = cost_range(price.tokens, limit, other)
        if cost is not None and 0 < cost.high <= room:
            fitting[other.name] = cost.high
    if fitting:
        name = max(fitting, key=lambda name: fitting[name])
        yield f"{name} would cost at most {dollars(fitting[name])}"


def _waiting(reached: ReachedLimit) -> Iterator[str]:
    if count := reached.sum.waiting:
        answers = "an answer that has" if count == 1 else f"{count} answers that have"
        yield (
            f"{dollars(reached.sum.reserved)} is reserved for {answers} not come: "
            f"`lamina spend clear --all` frees it"
        )
