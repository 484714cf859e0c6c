"""Amounts of money for people."""


def dollars(amount: float) -> str:
    """US dollars with as many digits as tell something: $12.50, $0.0430, $0.000120."""
    if amount >= 0.0995:
        return f"${amount:,.2f}"
    if amount >= 0.00095:
        return f"${amount:.4f}"
    return f"${amount:.6f}" if amount else "$0"


def dollar_range(low: float, high: float) -> str:
    """A price that is not known exactly."""
    return dollars(high) if low == high else f"{dollars(low)} to {dollars(high)}"
