"""What a turn came to, in a line: tokens, the cache, time and money."""

from collections.abc import Sequence

from msgspec import Struct

from lamina.cli.recorder import VERDICT_MEANINGS
from lamina.values.event import UsageReported
from lamina.values.request import CacheVerdict
from lamina.values.usage import Usage

# Nothing that a person has to be told, or not twice.
EXPECTED = ("as_expected", "nothing_sent_before", "more_than_expected", "not_reported")
# Something that was to be expected in the cache was not there.
MISSES = ("routed_elsewhere", "lifetime_passed")


class TurnCost(Struct, frozen=True, kw_only=True):
    """The requests of a turn together."""

    usage: Usage
    cost: float = 0.0
    first_s: float | None = None
    requests: int = 1


def sum_reports(reports: Sequence[UsageReported]) -> TurnCost:
    usages = [report.usage for report in reports]
    return TurnCost(
        usage=Usage(
            input=sum(usage.input for usage in usages),
            cached=sum(usage.cached for usage in usages),
            output=sum(usage.output for usage in usages),
            cache_reported=all(usage.cache_reported for usage in usages),
        ),
        cost=sum(report.cost for report in reports),
        first_s=reports[0].first_s if reports else None,
        requests=len(reports),
    )


def status_line(spent: TurnCost) -> str:
    """As `prompt 1,204 · 91% cached · 108 re-processed · answer 45 · first word 0.3 s · free`."""
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
    parts.append(money(spent.cost))
    return " · ".join(parts)


def money(cost: float) -> str:
    if not cost:
        return "free"
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.4f}"


def cache_line(verdict: CacheVerdict | None, *, loaded_anew: bool) -> str:
    """What the cache did, in words, if it is not what was to be expected. A model that runs in this
    process begins with an empty cache: that is no miss."""
    if verdict is None or verdict.meaning in EXPECTED:
        return ""
    if verdict.meaning in MISSES and loaded_anew:
        return "the model was loaded anew, so its cache was empty"
    return f"{VERDICT_MEANINGS[verdict.meaning]} ({verdict.detail})"
