"""Estimates the ratio of a provider's token counts to ours.

Laws: a figure that no tokenizer explains changes nothing. Other figures count half: one odd request
(an image, a cut stream) must not swing the budget.
"""

# Tokenizers differ from our estimates by less than this factor, in either direction.
MIN_RATIO, MAX_RATIO = 0.5, 3.0
# No request is larger; a higher figure is an error.
MAX_TOKENS = 1 << 40


def is_believable(reported: int, counted: int) -> bool:
    """Return whether a provider may have counted `reported` tokens where we count `counted`."""
    if max(reported, counted) > MAX_TOKENS:
        return False
    return MIN_RATIO * counted <= reported <= MAX_RATIO * counted


def calibrate(factor: float | None, reported: int, counted: int) -> float | None:
    """Return the factor after one more request; unchanged if nothing believable was reported."""
    if not reported or not counted or not is_believable(reported, counted):
        return factor
    ratio = reported / counted
    return ratio if factor is None else (factor + ratio) / 2
