"""Comparing a prompt with the one sent before it, and what a provider's cache figures mean.

Private: see `lamina` for what is public.
"""

from lamina.ledger.agreement import (
    SentPrompt,
    compare,
    require_reason,
    shared_digests,
    shared_links,
    shared_prefix,
)
from lamina.ledger.cache_verdict import expected_cached_tokens, judge_cache
from lamina.ledger.cost import cost_of

__all__ = [
    "SentPrompt",
    "compare",
    "cost_of",
    "expected_cached_tokens",
    "judge_cache",
    "require_reason",
    "shared_digests",
    "shared_links",
    "shared_prefix",
]
