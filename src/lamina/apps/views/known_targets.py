"""The targets listed in the book of models, as plain records."""

from collections.abc import Sequence

from msgspec import Struct

from lamina.adapters.providers.model_book import ModelBook
from lamina.adapters.providers.price_table import PricePeriod
from lamina.core.values.prices import Prices
from lamina.core.values.settings import Target
from lamina.errors import UsageError


class TargetRow(Struct, frozen=True, kw_only=True):
    """One target. Without `prices` its cost is unknown; without `limits_source` its limits are the
    defaults assumed for any model of its provider."""

    target: str
    prices: Prices | None
    # Announced prices, and the day they start.
    later: tuple[PricePeriod, ...]
    window: int
    max_input: int | None
    max_output: int
    limits_source: str
    # Minimum length of a cached prefix, its step size and lifetime in seconds; None: as long as
    # the server's process lives.
    minimum: int
    step: int
    lifetime_s: float | None
    long_lifetime_s: float | None
    # Whether a cache is written only at markers, and whether token counts match the model's.
    explicit: bool
    exact_tokens: bool


def list_targets(words: Sequence[str], book: ModelBook) -> list[TargetRow]:
    """Return the targets whose names contain all of these words. A full target name returns that
    target alone, even if its model is unknown.

    Raises:
        UsageError: no target matches.
    """
    names = book.names()
    if len(words) == 1 and _is_target(words[0], book) and "*" not in words[0]:
        names = [words[0]]
    else:
        names = [name for name in names if all(word.lower() in name.lower() for word in words)]
    if not names:
        shown = " and ".join(repr(word) for word in words)
        hint = "`lamina targets` lists all; PROVIDER:MODEL shows the defaults for any model"
        raise UsageError(f"no known target contains {shown} in its name; {hint}")
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
