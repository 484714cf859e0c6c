"""What a request cost, from what its provider reported and charges.

Private: see `lamina` for what is public.
"""

from lamina.values.settings import Target
from lamina.values.usage import Usage


def cost_of(usage: Usage, target: Target) -> float:
    """What a request cost, in US dollars."""
    prices = target.cache
    tokens = max(0, usage.input - usage.cached - usage.written) + usage.cached * prices.read_price
    writes = max(0, usage.written - usage.written_long) * prices.write_price
    tokens += writes + usage.written_long * prices.long_write_price
    price = tokens * target.input_price + usage.output * target.output_price
    return price / 1_000_000
