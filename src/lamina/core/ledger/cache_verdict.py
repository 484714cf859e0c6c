"""Interprets a provider's cache figures.

Law: the causes are tried in order, and the first that applies is the verdict. A difference of up to
5% or one step does not count.

Private: see `lamina` for what is public.
"""

from collections.abc import Callable

from msgspec import Struct

from lamina.core.values.request import Agreement, CacheMeaning, CacheVerdict, WarmStart
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage

# The smallest difference that counts.
_SLACK_TOKENS, _SLACK_SHARE = 16, 0.05
# Entries may expire a little early.
_NEAR_EXPIRY = 0.8


def expected_cached_tokens(tokens: int, written: int, rules: CacheRules) -> int:
    """Return the tokens a provider should find in its cache: the part that agrees and was written,
    in whole steps, and nothing below its minimum."""
    reachable = min(tokens, written) if rules.explicit else tokens
    if reachable < rules.minimum:
        return 0
    step = max(1, rules.step)
    return reachable // step * step


class _CacheReading(Struct, frozen=True, kw_only=True):
    """A provider's reported cache figures, beside the expected ones: at most `expected`, and at
    least `surely`."""

    agreement: Agreement
    written: int
    elapsed: float | None
    rules: CacheRules
    usage: Usage
    factor: float
    same_cache: bool
    explicit_before: bool
    expected: int
    surely: int
    warm: WarmStart | None = None
    # The age of the prefix that others sent and that is expected because of them.
    warm_age: float = 0.0

    @property
    def sender(self) -> str:
        """A description of the other sender."""
        own = self.warm is not None and self.warm.source == "branch"
        return "another branch" if own else "another session"

    @property
    def reported(self) -> int:
        return self.usage.cached

    @property
    def slack(self) -> int:
        share = round(_SLACK_SHARE * max(self.expected, self.reported))
        return max(self.rules.step, _SLACK_TOKENS, share)

    @property
    def is_near(self) -> bool:
        return abs(self.reported - self.expected) <= self.slack

    @property
    def is_unsure(self) -> bool:
        """Return whether less was read than others sent. This is never certain: another account may
        have sent it, or another machine may have received it."""
        return self.warm is not None and self.surely <= self.reported < self.expected - self.slack

    @property
    def age(self) -> float:
        return self.elapsed or self.warm_age

    @property
    def lifetime(self) -> float:
        return self.rules.lifetime_s or 0

    @property
    def reachable(self) -> int:
        """The tokens that could be in the cache."""
        tokens = self.agreement.tokens
        return round((min(tokens, self.written) if self.rules.explicit else tokens) * self.factor)

    @property
    def moved_at(self) -> str:
        return self.agreement.broke.source if self.agreement.broke else ""


def _is_older(elapsed: float | None, rules: CacheRules, share: float = 1.0) -> bool:
    """Return whether this share of a lifetime has passed."""
    lifetime = rules.lifetime_s
    return elapsed is not None and lifetime is not None and elapsed > share * lifetime


class _Cause(Struct, frozen=True):
    """A cause, its condition, and its description; `{r}` is the reading."""

    meaning: CacheMeaning
    holds: Callable[[_CacheReading], bool]
    detail: str


_EXPIRY = "{r.age:.0f} s since the last request; entries live {r.lifetime:.0f} s"

_CAUSES = (
    _Cause(
        "not_reported",
        lambda r: not r.usage.cache_reported,
        "the provider said nothing of its cache",
    ),
    _Cause(
        "as_expected",
        lambda r: bool(r.usage.explicit) and r.reported >= r.expected - r.slack,
        "the explicit cache was read",
    ),
    _Cause(
        "lifetime_passed",
        lambda r: (
            r.explicit_before and r.same_cache and not r.usage.explicit and r.reported <= r.slack
        ),
        "the explicit cache was not used again: all was sent",
    ),
    _Cause(
        "as_expected",
        lambda r: r.warm is not None and r.is_near,
        "{r.sender} sent the same {r.warm_age:.0f} s before, and it was found",
    ),
    # As much was read as expected: the reasons for that amount.
    _Cause(
        "nothing_sent_before",
        lambda r: r.is_near and r.agreement.first,
        "the first request of this session",
    ),
    _Cause(
        "model_changed",
        lambda r: r.is_near and not r.same_cache,
        "another model has a cache of its own",
    ),
    _Cause("lifetime_passed", lambda r: r.is_near and _is_older(r.elapsed, r.rules), _EXPIRY),
    _Cause(
        "prefix_moved",
        lambda r: r.is_near and r.agreement.broke is not None,
        "moved at {r.moved_at}: as expected",
    ),
    _Cause(
        "below_minimum",
        lambda r: r.is_near and r.expected == 0 and r.agreement.tokens > 0,
        "{r.reachable:,} tokens could be in the cache; nothing under {r.rules.minimum:,} is kept",
    ),
    _Cause("as_expected", lambda r: r.is_near, "the prefix was found in the cache"),
    # Prefixes that others sent are read from their caches if possible; their account is unknown.
    _Cause(
        "as_expected",
        lambda r: (
            r.warm is not None and r.surely > 0 and r.surely - r.slack <= r.reported < r.expected
        ),
        "what was sent on this branch was found, and not all that {r.sender} sent",
    ),
    _Cause(
        "nothing_sent_before",
        lambda r: r.is_unsure and r.agreement.first,
        "the first request of this session; {r.reported:,} of the {r.expected:,} tokens that "
        "{r.sender} sent {r.warm_age:.0f} s before were found",
    ),
    _Cause(
        "model_changed",
        lambda r: r.is_unsure and not r.same_cache,
        "another model has a cache of its own; {r.reported:,} of the {r.expected:,} tokens that "
        "{r.sender} sent {r.warm_age:.0f} s before were found",
    ),
    # Text occasionally comes back as tokens other than those it was written in.
    _Cause(
        "as_expected",
        lambda r: r.surely - r.slack <= r.reported < r.expected,
        "the prefix was found; the answer was read again",
    ),
    # No entry ends at the place of the change.
    _Cause(
        "prefix_moved",
        lambda r: (
            r.rules.explicit and r.agreement.broke is not None and 0 < r.reported < r.expected
        ),
        "moved at {r.moved_at}; what was kept in front of it ends at a marker",
    ),
    _Cause(
        "more_than_expected",
        lambda r: r.reported > r.expected and r.agreement.first,
        "another session wrote the same prefix",
    ),
    _Cause("more_than_expected", lambda r: r.reported > r.expected, "more was still cached"),
    # Less was read than expected: possible causes.
    _Cause("lifetime_passed", lambda r: _is_older(r.elapsed, r.rules, _NEAR_EXPIRY), _EXPIRY),
    # One server with memory of its own: there is no other machine.
    _Cause(
        "lifetime_passed",
        lambda r: r.rules.keeps_answers,
        "the model was started anew since, or its memory served others",
    ),
    # Parts before that place may be gone as well, but the bytes do not all agree.
    _Cause(
        "prefix_moved",
        lambda r: r.agreement.broke is not None,
        "moved at {r.moved_at}; {r.reported:,} of the {r.expected:,} tokens in front of it were "
        "found",
    ),
    _Cause(
        "routed_elsewhere",
        lambda _: True,
        "the bytes agree and are {r.age:.0f} s old: the request met another machine, or the entry "
        "was evicted",
    ),
)


def judge_cache(
    agreement: Agreement, written: int, elapsed: float | None, rules: CacheRules, usage: Usage,
    factor: float, *, same_cache: bool = True, held: int | None = None,
    explicit_before: bool = False, warm: WarmStart | None = None, warm_age: float = 0.0,
) -> CacheVerdict:  # fmt: skip
    """Return the verdict on the cached tokens that the provider reported. Counts are ours scaled by
    `factor`. `held` is the part of the previous request and its answer that a server with stored
    answers has, as it counted them itself. From an explicit cache at least its tokens are read;
    `explicit_before` says whether the previous request had one. `warm` is the prefix that others
    sent, `warm_age` seconds before."""
    expected = 0
    if not agreement.first and same_cache and not _is_older(elapsed, rules):
        tokens, stored = round(agreement.tokens * factor), round(written * factor)
        expected = expected_cached_tokens(tokens, stored, rules)
    surely = expected
    if held is not None and expected and not agreement.broke:
        # Entries written at markers end at one; prefixes that a server keeps automatically may be
        # longer.
        in_cache = min(held, usage.input - 1)
        expected = in_cache if rules.explicit else max(expected, in_cache)
    if usage.explicit:
        expected = surely = min(usage.explicit, usage.input)
    elif explicit_before:
        # Its content was sent in full now; nobody else has kept it.
        expected = surely = 0
    if usage.explicit:
        warm = None
    if warm is not None:
        tokens = round(warm.tokens * factor)
        tokens = expected_cached_tokens(min(tokens, usage.input), tokens, rules)
        warm = warm if tokens > expected else None
        # For this session's own branches, sender and account are known.
        if warm is not None and warm.source == "branch" and agreement.first:
            surely = tokens
        expected = max(expected, tokens)
    reading = _CacheReading(
        agreement=agreement, written=written, elapsed=elapsed, rules=rules, usage=usage,
        factor=factor, same_cache=same_cache, explicit_before=explicit_before,
        expected=expected, surely=surely, warm=warm, warm_age=warm_age,
    )  # fmt: skip
    cause = next(cause for cause in _CAUSES if cause.holds(reading))
    return CacheVerdict(
        expected=expected,
        reported=reading.reported,
        meaning=cause.meaning,
        detail=cause.detail.format(r=reading),
    )
