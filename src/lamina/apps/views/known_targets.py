"""The targets that the book of models knows, as plain records."""

from collections.abc import Sequence

from msgspec import Struct

from lamina.adapters.providers.model_book import ModelBook
from lamina.adapters.providers.price_table import PricePeriod
from lamina.core.values.prices import Prices
from lamina.core.values.settings import Target
from lamina.errors import UsageError


class TargetRow(Struct, frozen=True, kw_only=True):
    """One target. Without `prices` nobody knows what it costs; without `limits_source` its limits
    are those that any model of its provider is expected to have."""

    target: str
    prices: Prices | None
    # What it is going to charge, from which day on.
    later: tuple[PricePeriod, ...]
    window: int
    max_input: int | None
    max_output: int
    limits_source: str
    # From how many tokens on prefixes are cached, in which steps, for how long; None: as long as
    # the server's process lives.
    minimum: int
    step: int
    lifetime_s: float | None
    long_lifetime_s: float | None
    # Whether a cache is written at markers only, and whether tokens are counted as the model does.
    explicit: bool
    exact_tokens: bool


def list_targets(words: Sequence[str], book: ModelBook) -> list[TargetRow]:
    """The targets with all of these words in their names; one that is named whole stands alone,
    whether its model is known or not.

    Raises:
        UsageError: there are none.
    """
    names = book.names()
    if len(words) == 1 and _is_target(words[0], book) and "*" not in words[0]:
        names = [words[0]]
    else:
        names = [name for name in names if all(word.lower() in name.lower() for word in words)]
    if not names:
        shown = " and ".join(repr(word) for word in words)
        hint = "`lamina targets` lists all; PROVIDER:MODEL shows what would be taken for any model"
        raise UsageError(f"no known target has {shown} in its name; {hint}")
    return [_row(book.find(name), book) for name in names]


def _is_target(name: str, book: ModelBook) -> bool:
    provider, _, model = name.partition(":")
    return bool(model) and f"{provider}:*" in book.names()


def _row(target: Target, book: ModelBook) -> TargetRow:
    rules = target.cache
    return TargetRow(
        target=target.name,
        prices=target.prices,
        later=book.later_prices(target.name),
        window=target.window,
        max_input=target.max_input,
        max_output=target.max_output,
        limits_source=target.limits_source,
        minimum=rules.minimum,
        step=rules.step,
        lifetime_s=rules.lifetime_s,
        long_lifetime_s=rules.long_lifetime_s,
        explicit=rules.explicit,
        exact_tokens=target.exact_tokens,
    )
