"""Comparing what is about to be sent with what was sent.

Law: a later request extends the cached segments of the earlier one, all up to its first uncached
one, unless a reason was recorded. The check is the last act before encoding.
"""

from lamina.errors import PrefixMoved
from lamina.journal import State
from lamina.values.collections import Chain
from lamina.values.entry import Entry, RequestEntry
from lamina.values.prompt import Prompt, SegmentLink
from lamina.values.request import Agreement, Break, CacheVerdict
from lamina.values.settings import CacheRules, Target
from lamina.values.usage import Usage


def cost_of(usage: Usage, target: Target) -> float:
    """What a request cost, in US dollars."""
    prices = target.cache
    tokens = max(0, usage.input - usage.cached - usage.written) + usage.cached * prices.read_price
    writes = max(0, usage.written - usage.written_long) * prices.write_price
    tokens += writes + usage.written_long * prices.long_write_price
    price = tokens * target.input_price + usage.output * target.output_price
    return price / 1_000_000


def shared_links(before: Chain[SegmentLink], after: Chain[SegmentLink]) -> int:
    """How many leading segments agree: at once where the buffer is shared, else by halving on
    the running digests."""
    if count := before.shared_with(after):
        return count
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[middle - 1].running == after[middle - 1].running:
            low = middle
        else:
            high = middle - 1
    return low


def shared_prefix(before: Prompt, after: Prompt) -> int:
    """How many leading segments of two prompts are the same bytes on the wire."""
    shared = shared_links(before.front, after.front)
    if shared < before.ends[0] or shared < after.ends[0]:
        # One front is longer: behind the shorter stand messages, whose roles differ from it.
        return shared
    shared += shared_links(before.history, after.history)
    old_turn, new_turn = before.ends[1], after.ends[1]
    if shared < old_turn and shared < new_turn:
        return shared
    if old_turn == new_turn and _digests(before) == _digests(after):
        # The same turn goes on: its steps are a chain of their own.
        shared += len(before.asked) + shared_links(before.steps, after.steps)
    for old, new in zip(before.since(shared), after.since(shared), strict=False):
        if old.digest != new.digest:
            break
        shared += 1
    return shared


def _digests(prompt: Prompt) -> list[str]:
    return [segment.digest for segment in prompt.asked]


def compare(before: Prompt | None, after: Prompt, reasons: tuple[str, ...]) -> Agreement:
    """How far `after` extends `before`, and what broke it first."""
    if before is None:
        return Agreement(first=True, reprocessed=after.tokens)
    shared = shared_prefix(before, after)
    tokens = after.tokens_until(shared)
    broke = None
    if shared < before.cached_run():
        old, new = next(before.since(shared), None), next(after.since(shared), None)
        place = new or old
        assert place is not None
        broke = Break(
            layer=place.layer,
            segment=shared,
            source=place.source,
            before=old.source if old else "",
            reason="; ".join(dict.fromkeys(reason for reason in reasons if reason.strip())),
        )
    return Agreement(segments=shared, tokens=tokens, reprocessed=after.tokens - tokens, broke=broke)


def require_reason(agreement: Agreement) -> None:
    """Refuses a request that moves bytes without a reason.

    Raises:
        PrefixMoved: naming layer, segment and source.
    """
    broke = agreement.broke
    if broke and not broke.reason:
        same = broke.before == broke.source
        change = "its content changed" if same else f"was {broke.before}"
        raise PrefixMoved(broke.layer, broke.segment, broke.source, change)


def expected_cached_tokens(tokens: int, written: int, rules: CacheRules) -> int:
    """Tokens a provider should find in its cache: what agrees and was written, in its steps, and
    nothing below its minimum."""
    reachable = min(tokens, written) if rules.explicit else tokens
    if reachable < rules.minimum:
        return 0
    step = max(1, rules.step)
    return reachable // step * step


def judge_cache(
    agreement: Agreement, written: int, elapsed: float | None, rules: CacheRules, usage: Usage,
    factor: float, *, same_cache: bool = True, held: int | None = None,
    explicit_before: bool = False,
) -> CacheVerdict:  # fmt: skip
    """What the cached tokens that the provider reported mean. Counts are ours scaled by `factor`;
    a difference within 5% or one step does not count. `held` is what a server that keeps answers
    has of the request before and its answer, as it counted them itself. Of a cache made by hand at
    least its tokens are read; `explicit_before` says that the request before had one."""
    expired = elapsed is not None and rules.lifetime_s is not None and elapsed > rules.lifetime_s
    expected, reported = 0, usage.cached
    if not agreement.first and not expired and same_cache:
        tokens, stored = round(agreement.tokens * factor), round(written * factor)
        expected = expected_cached_tokens(tokens, stored, rules)
    surely = expected
    if held is not None and expected and not agreement.broke:
        # What is written at markers ends at one; what a server keeps by itself may be more.
        in_cache = min(held, usage.input - 1)
        expected = in_cache if rules.explicit else max(expected, in_cache)
    if usage.explicit:
        expected = surely = min(usage.explicit, usage.input)
    elif explicit_before:
        # What stood in it was sent whole now; nobody else has kept it.
        expected = surely = 0

    def verdict(meaning: str, detail: str) -> CacheVerdict:
        return CacheVerdict(expected=expected, reported=reported, meaning=meaning, detail=detail)  # type: ignore[arg-type]

    if not usage.cache_reported:
        return verdict("not_reported", "the provider said nothing of its cache")
    slack = max(rules.step, 16, round(0.05 * max(expected, reported)))
    if usage.explicit and reported >= expected - slack:
        return verdict("as_expected", "the explicit cache was read")
    if explicit_before and same_cache and not usage.explicit and reported <= slack:
        return verdict("lifetime_passed", "the explicit cache was not used again: all was sent")
    if abs(reported - expected) <= slack:
        if agreement.first:
            return verdict("nothing_sent_before", "the first request of this session")
        if not same_cache:
            return verdict("model_changed", "another model has a cache of its own")
        if expired:
            return verdict("lifetime_passed", _expiry(elapsed, rules))
        if agreement.broke:
            return verdict("prefix_moved", f"moved at {agreement.broke.source}: as expected")
        if expected == 0 and agreement.tokens:
            tokens = min(agreement.tokens, written) if rules.explicit else agreement.tokens
            most = f"{round(tokens * factor):,} tokens could be in the cache"
            return verdict("below_minimum", f"{most}; nothing under {rules.minimum:,} is kept")
        return verdict("as_expected", "the prefix was found in the cache")
    if surely - slack <= reported < expected:
        # Text comes back as other tokens than it was written in, now and then.
        return verdict("as_expected", "the prefix was found; the answer was read again")
    if rules.explicit and agreement.broke and 0 < reported < expected:
        # Nothing ends where the change happens to be.
        rest = "what was kept in front of it ends at a marker"
        return verdict("prefix_moved", f"moved at {agreement.broke.source}; {rest}")
    if reported > expected:
        others = "another session wrote the same prefix"
        detail = others if agreement.first else "more was still cached"
        return verdict("more_than_expected", detail)
    if elapsed is not None and rules.lifetime_s is not None and elapsed > 0.8 * rules.lifetime_s:
        return verdict("lifetime_passed", _expiry(elapsed, rules))
    if rules.keeps_answers:
        # One server with memory of its own: there is no elsewhere.
        detail = "the model was started anew since, or its memory served others"
        return verdict("lifetime_passed", detail)
    return verdict(
        "routed_elsewhere",
        f"the bytes agree and are {elapsed or 0:.0f} s old: the request met another machine, "
        f"or the entry was evicted",
    )


def _expiry(elapsed: float | None, rules: CacheRules) -> str:
    age = f"{elapsed or 0:.0f} s since the last request"
    return f"{age}; entries live {rules.lifetime_s or 0:.0f} s"


def previous_reply(state: State, target: Target) -> str:
    """What the target's provider calls its last answer on this path."""
    last = state.last_sent
    if last is None or last.target.partition(":")[0] != target.provider:
        return ""
    return state.last_reply


def left_in_cache(request: RequestEntry, base: Entry | None) -> int:
    """How many leading segments of a request the one before it, `base`, left in the cache."""
    if not isinstance(base, RequestEntry):
        return 0
    return min(request.context.agreement.segments, base.cached_run)
