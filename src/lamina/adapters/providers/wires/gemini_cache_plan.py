"""When an explicit cache pays with Gemini.

Law: a plan depends on the request alone, and its key on what the cache would hold and for whom:
the session, the model, and the digests of tools, L1 and library.
"""

from math import ceil
from typing import Any

from lamina.core.codec import digest_texts
from lamina.core.values.prompt import Prompt, total_tokens
from lamina.core.values.settings import Target
from lamina.core.values.wire import WireRequest

# The key in a request that holds the plan; our client removes it.
PLAN_FIELD = "explicit_cache"
TTL_S = 3600


def plan_cache(request: WireRequest) -> dict[str, Any] | None:
    """What would identify an explicit cache for this request; None where it does not pay.

    It pays if the front reaches the model's minimum; if it is at least as large as what follows,
    which implicit caching covers as well, and would save more even if it hit only every other time;
    and if the session has had as many answers as it takes to earn the cache back, since the best
    guess is that as many will follow.
    """
    prompt, target = request.prompt, request.target
    front = total_tokens(prompt.front)
    if not request.explicit_cache or not request.cache_key or not front:
        return None
    if front < max(target.cache.minimum, prompt.tokens - front):
        return None
    break_even = requests_to_break_even(target, prompt.tokens)
    if break_even is None or _count_answers(prompt, break_even) < break_even:
        return None
    running = prompt.front[len(prompt.front) - 1].running
    key = digest_texts((request.cache_key, target.model, running))
    return {"session": request.cache_key, "key": key, "tokens": front}


def requests_to_break_even(target: Target, prompt_tokens: int = 0) -> int | None:
    """How many requests of that length earn a cache back within its lifetime: what each saves,
    against filling it once and storing it to the end. None if they never do, or nobody knows."""
    if target.prices is None:
        return None
    tier = target.prices.tier_for(prompt_tokens)
    cost = tier.input + target.prices.storage * TTL_S / 3600
    saving = tier.input - tier.read
    return ceil(cost / saving) if saving > 0 else None


def _count_answers(prompt: Prompt, enough: int) -> int:
    """How many messages the model wrote, counted up to `enough`."""
    messages: set[str] = set()
    for segment in prompt.since(len(prompt.front)):
        if segment.role == "assistant":
            messages.add(segment.message)
            if len(messages) >= enough:
                break
    return len(messages)
