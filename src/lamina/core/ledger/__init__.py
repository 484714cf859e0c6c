"""Compares a prompt with the one sent before it (`agreement`), interprets a provider's cache
figures, and prices requests.

Private: see `lamina` for what is public.
"""

from lamina.core.ledger.cache_verdict import expected_cached_tokens, judge_cache
from lamina.core.ledger.cost import CostRange, cost_of, cost_range, price_history, sum_cost

__all__ = [
    "CostRange",
    "cost_of",
    "cost_range",
    "expected_cached_tokens",
    "judge_cache",
    "price_history",
    "sum_cost",
]
