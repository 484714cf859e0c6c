"""The figures of a turn in a line: tokens, the cache, time and money."""

from lamina.apps.views.answer_json import EXPECTED, MISSES, TurnCost
from lamina.apps.views.plain_text import write_sum
from lamina.apps.views.sent_requests import VERDICT_MEANINGS
from lamina.core.values.request import CacheVerdict


def status_line(spent: TurnCost) -> str:
    """Such as `prompt 1,204 · 91% cached · 108 re-processed · answer 45 · first word 0.3 s ·
    free`."""
    usage = spent.usage
    parts = [f"{spent.requests} requests"] if spent.requests > 1 else []
    parts.append(f"prompt {usage.input:,}")
    if usage.cache_reported:
        share = round(100 * usage.cached / usage.input) if usage.input else 0
        parts.append(f"{share}% cached")
        parts.append(f"{usage.input - usage.cached:,} re-processed")
    else:
        parts.append("cache not reported")
    parts.append(f"answer {usage.output:,}")
    if spent.first_s is not None:
        parts.append(f"first word {spent.first_s:.1f} s")
    parts.append(write_sum(spent.cost.known, spent.cost.unpriced))
    return " · ".join(parts)


def cache_line(verdict: CacheVerdict | None, *, loaded_anew: bool) -> str:
    """What the cache did, in words, if that was unexpected. A model in this process starts with an
    empty cache, which is not a miss."""
    if verdict is None or verdict.meaning in EXPECTED:
        return ""
    if verdict.meaning in MISSES and loaded_anew:
        return "the model was reloaded, so its cache was empty"
    return f"{VERDICT_MEANINGS[verdict.meaning]} ({verdict.detail})"
