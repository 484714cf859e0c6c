"""Plain text that every app writes the same way: JSON, shortened lines, and prices in words.

Law: an unknown price is called unknown, never free; a sum says what it excludes.
"""

from typing import Any

import msgspec

from lamina.core.text.money import dollars
from lamina.core.values.prices import Prices


def format_json(value: Any) -> str:
    """Format JSON for printing and for files: indented, for people and machines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def shorten(line: str, width: int) -> str:
    """Shorten a line to at most `width` characters."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def write_dollars(cost: float | None) -> str:
    """Format a cost for people: `$0.0021`, `$1.20`, `free`, `cost unknown`."""
    if cost is None:
        return "cost unknown"
    return dollars(cost) if cost else "free"


def write_sum(cost: float | None, unpriced: int) -> str:
    """Format the combined cost of requests, such as `$0.0021 and 2 requests of unknown price`."""
    if not unpriced or cost is None:
        return write_dollars(cost)
    return f"{write_dollars(cost)} and {unpriced} request{'s' * (unpriced > 1)} of unknown price"


def write_price(prices: Prices | None) -> str:
    """Format a price per million tokens: `$3 in, $15 out per million tokens`."""
    if prices is None:
        return "price unknown"
    if prices.is_free:
        return "free"
    first = prices.tiers[0]
    return f"${first.input:g} in, ${first.output:g} out per million tokens"


def write_dollars_per_million(price: float) -> str:
    """Format a price for a column: `0.075`, `2.50`, `15`."""
    if price == round(price):
        return f"{price:.0f}"
    return f"{price:.2f}" if round(price, 2) == price else f"{price:.5g}"
