"""Formats amounts of money for display.

Law: an amount is displayed the same everywhere, here and in the web app (`lib/numbers.ts`).
"""

# Smaller amounts would round to zero at six digits.
MIN_SHOWN = 5e-7


def dollars(amount: float) -> str:
    """Return US dollars with as many digits as are useful: $12.50, $0.0430, $0.000120."""
    if not amount:
        return "$0"
    sign, size = "-" if amount < 0 else "", abs(amount)
    if size >= 0.0995:
        return f"{sign}${size:,.2f}"
    if size >= 0.00095:
        return f"{sign}${size:.4f}"
    return f"{sign}${size:.6f}" if size >= MIN_SHOWN else f"under {sign}$0.000001"


def dollar_range(low: float, high: float) -> str:
    """Return a price range, for a price that is not known exactly."""
    return dollars(high) if low == high else f"{dollars(low)} to {dollars(high)}"
