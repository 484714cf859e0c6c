"""Model prices, in US dollars.

Law: an unknown price is None, which is neither zero nor another model's price.
"""

from bisect import bisect_left

from msgspec import Struct
from msgspec.structs import replace

MILLION = 1_000_000
# The source given for prices of zero.
NO_CHARGE = "no charge"
# The prompt lengths above which a price may change. Usage is summed between these steps, so that a
# sum costs the same as its requests.
PROMPT_STEPS = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)


class PriceTier(Struct, frozen=True, kw_only=True):
    """Prices per million tokens, for prompts of more than `above` tokens."""

    above: int = 0
    input: float
    output: float
    # Prices of tokens read from the cache and of tokens written to it: for the usual lifetime and
    # for the longer one. If a vendor has no such price, they cost as much as fresh ones.
    read: float
    write: float
    write_long: float


class Prices(Struct, frozen=True, kw_only=True):
    """A model's prices by prompt length, their source, and their date."""

    # The first applies to any length; the others follow by length.
    tiers: tuple[PriceTier, ...]
    # Per million tokens kept for an hour in an explicitly created cache.
    storage: float = 0.0
    source: str = ""
    date: str = ""

    def tier_for(self, prompt_tokens: int) -> PriceTier:
        """Return the prices for a prompt of that length, for all of its tokens and those of its
        answer."""
        return next(
            tier for tier in reversed(self.tiers) if prompt_tokens > tier.above or not tier.above
        )

    @property
    def is_free(self) -> bool:
        """Whether all its prices are zero."""
        return not self.storage and not any(
            (tier.input, tier.output, tier.read, tier.write, tier.write_long) != (0.0,) * 5
            for tier in self.tiers
        )


def price_step(prompt_tokens: int) -> int:
    """Return the highest step that a prompt exceeds; 0 if there is none."""
    at = bisect_left(PROMPT_STEPS, prompt_tokens)
    return PROMPT_STEPS[at - 1] if at else 0


class CostSum(Struct, frozen=True, kw_only=True):
    """The combined cost of requests: those with a known price, and the number of others."""

    dollars: float = 0.0
    priced: int = 0
    unpriced: int = 0

    def plus(self, cost: float | None, requests: int = 1) -> "CostSum":
        """Return the sum with more requests; `cost` None means that their price is unknown."""
        if cost is None:
            return replace(self, unpriced=self.unpriced + requests)
        return replace(self, dollars=self.dollars + cost, priced=self.priced + requests)

    @property
    def known(self) -> float | None:
        """The amount in dollars, if any price is known."""
        return None if self.unpriced and not self.priced else self.dollars


def flat_prices(
    input_price: float,
    output_price: float,
    *,
    read: float = 1.0,
    write: float = 1.0,
    write_long: float = 1.0,
    storage: float = 0.0,
    source: str = "",
    date: str = "",
) -> Prices:
    """Return prices that are the same for any length; prices of cached tokens are factors of the
    first."""
    tier = PriceTier(
        input=input_price,
        output=output_price,
        read=input_price * read,
        write=input_price * write,
        write_long=input_price * write_long,
    )
    return Prices(tiers=(tier,), storage=storage, source=source, date=date)


FREE = flat_prices(0.0, 0.0, source=NO_CHARGE)
