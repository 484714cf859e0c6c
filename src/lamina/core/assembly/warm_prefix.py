"""Predicts the parts of a request that are in a provider's cache because of other sessions.

Laws: sessions with the same beginning are routed alike, as long as no key gets more requests than
its vendor serves from one cache. A key stays while anything sent under it may still be read. A
predicted prefix was sent to this target, with this key and these options, and is alive; it reaches
the vendor's minimum and ends where the vendor's entries do.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from lamina.core.assembly.request_draft import Draft
from lamina.core.assembly.wire_parameters import former_key
from lamina.core.codec import digest_value
from lamina.core.journal import State, options_for_request
from lamina.core.ledger import expected_cached_tokens
from lamina.core.values.entry import WIRE_FORM, RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import Agreement, WarmStart
from lamina.core.values.sent_prefix import DIGEST_DIGITS, RecentPrefixes, SentPrefix
from lamina.core.values.settings import CacheRules, Target, cache_rules

# A vendor serves about 15 requests a minute for one prefix and key from one cache; the excess goes
# to another machine. A session joins a key that had fewer than half as many, which leaves room for
# its own requests; if there is none, it uses the next key.
JOINABLE_RATE = 8
# Sessions with the same beginning share at most this many keys: 240 requests a minute in all.
MAX_KEYS = 16
_KEY_DIGITS = 32


class Routing(Struct, frozen=True, kw_only=True):
    """A request's routing key, empty for the session's own name, and the prefix that it may find in
    the cache because of others."""

    key: str
    warm: WarmStart | None = None


def plan_routing(
    state: State, prompt: Prompt, draft: Draft, agreement: Agreement, now: float
) -> Routing:
    """Return the routing key of a request to be sent at `now`, and the tokens its target should
    read because of others."""
    target, last = draft.target, state.requests.sent
    rules = cache_rules(state.settings, target)
    alive = last is not None and last.target == target.name and not _is_over(state, rules, now)
    key = choose_routing_key(state, prompt, target, agreement, draft.recent, alive=alive)
    least = 0
    if last is not None and alive:
        least = expected_cached_tokens(agreement.tokens, last.cached_tokens, rules)
    warm = predict_warm_start(
        prompt, last.id if last else None, rules, draft.recent,
        form=cache_form(options_for_request(state), target),
        key=key if target.routes_by_key else "", now=now, least=least,
    )  # fmt: skip
    return Routing(key="" if key == state.session.session else key, warm=warm)


def _is_over(state: State, rules: CacheRules, now: float) -> bool:
    """Return whether the cache entries of the last request have expired."""
    lifetime, used_at = rules.lifetime_s, state.requests.cached_at
    return lifetime is not None and used_at is not None and now - used_at > lifetime


def choose_routing_key(
    state: State,
    prompt: Prompt,
    target: Target,
    agreement: Agreement,
    recent: RecentPrefixes,
    *,
    alive: bool,
) -> str:
    """Return a request's routing key; the session's own name if nothing can be shared. `alive` says
    whether the last request on the path may still be in the cache of `target`."""
    own = state.session.session
    if not target.routes_by_key:
        return own
    minimum, last = target.cache.minimum, state.requests.sent
    if last is not None and alive and agreement.tokens >= minimum:
        return sent_key(last, state)
    if prompt.tokens_until(prompt.shared_run()) < minimum:
        return own
    warm_keys: dict[str, int] = {}
    for prefix in recent.prefixes:
        tokens = prompt.tokens_until(prefix.agreeing(_digests(prompt)))
        if tokens >= minimum:
            if prefix.source == "branch":
                return prefix.key
            warm_keys[prefix.key] = max(tokens, warm_keys.get(prefix.key, 0))
    return _choose(_shared_keys(prompt), warm_keys, recent.rates)


def _shared_keys(prompt: Prompt) -> list[str]:
    """Return the keys of sessions with the same beginning. They depend on the tools and the first
    text, by which vendors route themselves: projects, folders and rules after them may differ, and
    the beginning is still read."""
    segments = [link.segment for link in prompt.front]
    tools = [segment.digest for segment in segments if segment.layer == "tools"]
    texts = [segment.digest for segment in segments if segment.layer != "tools"]
    stem = digest_value([*tools, *texts[:1]])[:_KEY_DIGITS]
    return [stem, *(f"{stem}-{number}" for number in range(2, MAX_KEYS + 1))]


def _choose(keys: list[str], warm: Mapping[str, int], rates: Mapping[str, int]) -> str:
    """Return the key with the longest warm prefix and room for another session; if none has room,
    the key with the fewest requests."""
    free = [key for key in keys if rates.get(key, 0) < JOINABLE_RATE]
    if free:
        return max(free, key=lambda key: warm.get(key, 0))
    return min(keys, key=lambda key: rates.get(key, 0))


def sent_key(request: RequestEntry, state: State) -> str:
    """Return the key that a sent request was routed by."""
    return request.routing_key or request.cache_key or former_key(request, state)


def predict_warm_start(
    prompt: Prompt, base: str | None, rules: CacheRules, recent: RecentPrefixes,
    *, form: str, key: str, now: float, least: int,
) -> WarmStart | None:  # fmt: skip
    """Return the prefix that the provider should read because of others; None if it is not more
    than `least`, which is expected anyway."""
    best: WarmStart | None = None
    if not recent.prefixes:
        return None
    digests = _digests(prompt)
    for prefix in recent.prefixes:
        if (prefix.form, prefix.key) != (form, key) or now > prefix.expires:
            continue
        shared = prefix.agreeing(digests)
        end = shared
        if rules.explicit:
            marks = _common_marks(prompt, base, prefix)
            end = max((mark for mark in marks if mark <= shared), default=0)
        tokens = prompt.tokens_until(end)
        tokens = expected_cached_tokens(tokens, tokens, rules)
        if tokens > max(least, best.tokens if best else 0):
            best = WarmStart(tokens=tokens, at=prefix.at, source=prefix.source)
    return best


def _common_marks(prompt: Prompt, base: str | None, prefix: SentPrefix) -> Iterator[int]:
    """Return the places where both requests have a marker, so that one finds the entries written by
    the other."""
    if prefix.source == "session":
        yield from set(prefix.marks) & set(front_marks(prompt))
        return
    yield from front_marks(prompt)
    if prefix.base == base and base is not None:
        # Both continue from the same answer, so their histories end alike.
        yield prompt.ends[1]
    if prefix.cached_run == prompt.cached_run():
        yield prefix.cached_run


def front_marks(prompt: Prompt) -> tuple[int, ...]:
    """Return the ends of the shared part and of the whole front, which all wires with markers mark;
    a first request has one marker left for the shared part of L1."""
    run = prompt.shared_run()
    ends = {run, len(prompt.front)}
    if not prompt.history:
        layers = [link.segment.layer for link in prompt.front.since(0)[:run]]
        ends.add(sum(1 for layer in layers if layer != "L2"))
    return tuple(sorted(ends))


def _digests(prompt: Prompt) -> tuple[str, ...]:
    return tuple(segment.digest[:DIGEST_DIGITS] for segment in prompt)


def cache_form(options: Options, target: Target) -> str:
    """Return the values, apart from the prefix and its key, that separate providers' caches."""
    facts = (target.wire, WIRE_FORM, target.base_url, options.reasoning, options.schema)
    return digest_value(facts)[:DIGEST_DIGITS]


def describe_prefix(
    request: RequestEntry, prompt: Prompt, state: State, target: Target, rules: CacheRules,
    form: str,
) -> SentPrefix | None:  # fmt: skip
    """Return the part of an answered request that other sessions may find; None if there is
    none."""
    front = prompt.front
    if rules.lifetime_s is None or not front or front[-1].tokens < rules.minimum:
        return None
    return SentPrefix(
        target=request.target,
        form=form,
        key=sent_key(request, state) if target.routes_by_key else "",
        digests=tuple(link.segment.digest[:DIGEST_DIGITS] for link in front),
        at=request.at,
        expires=request.at + rules.lifetime_s,
        marks=front_marks(prompt),
    )
