"""What a model charges, in US dollars.

Law: what nobody knows has no price, which is neither zero nor somebody else's price.
"""

from bisect import bisect_left

from msgspec import Struct
from msgspec.structs import replace

MILLION = 1_000_000
# The source of prices of zero.
NO_CHARGE = "no charge"
# The prompt lengths above which a price may change: what was used is summed up between them, so
# that sums cost what their requests cost.
PROMPT_STEPS = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)


class PriceTier(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens each, for prompts of more than `above` tokens."""

    above: int = 0
    input: float
    output: float
    # Tokens that are read from the cache, and those that are written to it: for the usual lifetime
    # and for the longer one. Where a vendor has no such price, they cost as much as fresh ones.
    read: float
    write: float
    write_long: float


class Prices(Struct, frozen=True, kw_only=True):
    """What a model charges by the length of a prompt, who says so, and as of when."""

    # The first is for any length; the others follow by length.
    tiers: tuple[PriceTier, ...]
    # For a million tokens that are kept for an hour in a cache that was made by hand.
    storage: float = 0.0
    source: str = ""
    date: str = ""

    def tier_for(self, prompt_tokens: int) -> PriceTier:
        """The prices of a prompt of that length, for all of its tokens and those of its answer."""
        return next(
            tier for tier in reversed(self.tiers) if prompt_tokens > tier.above or not tier.above
        )

    @property
    def is_free(self) -> bool:
        """Whether nothing of it is charged for."""
        return not self.storage and not any(
            (tier.input, tier.output, tier.read, tier.write, tier.write_long) != (0.0,) * 5
            for tier in self.tiers
        )


def price_step(prompt_tokens: int) -> int:
    """The last of the steps that a prompt is longer than; 0 if it is longer than none."""
    at = bisect_left(PROMPT_STEPS, prompt_tokens)
    return PROMPT_STEPS[at - 1] if at else 0


class CostSum(Struct, frozen=True, kw_only=True):
    """What requests cost together: those with a known price, and how many others it leaves out."""

    dollars: float = 0.0
    priced: int = 0
    unpriced: int = 0

    def plus(self, cost: float | None, requests: int = 1) -> "CostSum":
        """The sum with more requests; None if nobody knows what those cost."""
        if cost is None:
            return replace(self, unpriced=self.unpriced + requests)
        return replace(self, dollars=self.dollars + cost, priced=self.priced + requests)

    @property
    def known(self) -> float | None:
        """The dollars, if the price of anything is known."""
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
    """Prices that are the same for any length; those of cached tokens are factors on the first."""
    tier = PriceTier(
        input=input_price,
        output=output_price,
        read=input_price * read,
        write=input_price * write,
        write_long=input_price * write_long,
    )
    return Prices(tiers=(tier,), storage=storage, source=source, date=date)


FREE = flat_prices(0.0, 0.0, source=NO_CHARGE)
